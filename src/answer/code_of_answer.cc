#include "answer/code_of_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "answer/apply_diff.h"
#include "answer/text.h"

namespace assay {
namespace {

struct Block {
  std::string language;
  std::string text;
  bool is_cut_off = false;
};

std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

size_t IndentOf(std::string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

// A line that begins or ends a block: three or more of ` or ~, then a word.
struct Fence {
  char mark = 0;
  size_t length = 0, indent = 0;
  std::string_view word;
};
std::optional<Fence> FenceOf(std::string_view line) {
  Fence fence;
  fence.indent = IndentOf(line);
  line.remove_prefix(fence.indent);
  if (line.empty() || (line[0] != '`' && line[0] != '~')) return std::nullopt;
  fence.mark = line[0];
  fence.length = std::min(line.find_first_not_of(fence.mark), line.size());
  if (fence.length < 3) return std::nullopt;
  const std::string_view rest = Trimmed(line.substr(fence.length));
  if (fence.mark == '`' && rest.find('`') != std::string_view::npos) return std::nullopt;
  fence.word = rest.substr(0, rest.find_first_of(" \t{,:"));
  return fence;
}

std::vector<Block> BlocksOf(std::string_view text) {
  std::vector<Block> blocks;
  std::optional<Fence> open;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    const std::optional<Fence> fence = FenceOf(line);
    if (!open) {
      if (!fence || fence->word == "markdown" || fence->word == "md") continue;
      open = fence;
      blocks.push_back({std::string(fence->word), "", true});
    } else if (fence && fence->mark == open->mark && fence->length >= open->length &&
               fence->word.empty()) {
      blocks.back().is_cut_off = false;
      open.reset();
    } else {
      // A block within a list is indented as a whole.
      Block& block = blocks.back();
      block.text.append(line.substr(std::min(IndentOf(line), open->indent))).push_back('\n');
    }
  }
  return blocks;
}

bool HasWord(std::string_view text, std::string_view word) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if ((at == 0 || !is_part(text[at - 1])) &&
        (at + word.size() == text.size() || !is_part(text[at + word.size()])))
      return true;
  return false;
}

CodeForm FormOf(std::string_view text) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = Trimmed(TakeLine(rest));
    if (line.starts_with("//! launch")) return CodeForm::kDevice;
    if (line.starts_with("class ModelNew") && !HasWord(text, "ASSAY_KERNEL"))
      return CodeForm::kPython;
  }
  for (const std::string_view word : {"ASSAY_KERNEL", "ASSAY_KERNEL_C", "assay_kernel_v1"})
    if (HasWord(text, word)) return CodeForm::kNative;
  return CodeForm::kAny;
}

bool Fits(CodeForm form, CodeForm wanted) {
  return form != CodeForm::kAny && (wanted == CodeForm::kAny || form == wanted);
}

std::string_view MarkOf(CodeForm form) {
  switch (form) {
    case CodeForm::kNative:
      return "ASSAY_KERNEL(...)";
    case CodeForm::kDevice:
      return "a '//! launch' line";
    case CodeForm::kPython:
      return "class ModelNew";
    case CodeForm::kAny:
      break;
  }
  return "ASSAY_KERNEL(...), a '//! launch' line, or class ModelNew";
}

// The last complete block that fits, else the last one, excerpts left out; nullptr: none fits.
const Block* Chosen(const std::vector<Block>& blocks, CodeForm wanted) {
  size_t longest = 0;
  for (const Block& block : blocks)
    if (Fits(FormOf(block.text), wanted)) longest = std::max(longest, block.text.size());
  const Block* chosen = nullptr;
  for (const Block& block : blocks) {
    if (!Fits(FormOf(block.text), wanted) || 2 * block.text.size() < longest) continue;
    if (chosen == nullptr || chosen->is_cut_off || !block.is_cut_off) chosen = &block;
  }
  return chosen;
}

// A line that only code begins with, in the language of the form.
bool OpensCode(std::string_view line, CodeForm form) {
  constexpr std::string_view kC[] = {
      "#include", "#define",   "#pragma",      "//",     "/*",         "extern ",    "static ",
      "template", "namespace", "ASSAY_KERNEL", "using ", "__global__", "constexpr ", "inline "};
  constexpr std::string_view kPython[] = {"import ", "from ",  "class ", "@",
                                          "def ",    "\"\"\"", "#!"};
  const auto begins = [line](std::string_view word) { return line.starts_with(word); };
  if (form == CodeForm::kPython)
    // "From here on" is prose.
    return std::ranges::any_of(kPython, begins) &&
           (!line.starts_with("from ") || line.find(" import ") != std::string_view::npos);
  return std::ranges::any_of(kC, begins);
}

bool ClosesCode(std::string_view line, CodeForm form) {
  if (form == CodeForm::kPython)  // anything indented, or a statement of the module
    return !Trimmed(line).empty() && (line[0] == ' ' || line[0] == '\t' || OpensCode(line, form) ||
                                      line[0] == ')' || line.find(" = ") != std::string_view::npos);
  return line.ends_with('}') || line.starts_with('}') || line.starts_with("#endif") ||
         line.ends_with(';');
}

// The part of a text without fences that is code; empty: none.
std::string Bare(std::string_view text, CodeForm form) {
  std::optional<size_t> begin;
  size_t end = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto at = static_cast<size_t>(rest.data() - text.data());
    const std::string_view line = TakeLine(rest);
    if (!begin && OpensCode(line, form)) begin = at;
    if (begin && ClosesCode(line, form)) end = static_cast<size_t>(rest.data() - text.data());
    if (begin && rest.empty() && ClosesCode(line, form)) end = text.size();
  }
  if (!begin || end <= *begin) return "";
  std::string code;
  std::string_view part = text.substr(*begin, end - *begin);
  while (!part.empty()) code.append(TakeLine(part)).push_back('\n');
  return code;
}

std::expected<AnsweredCode, std::string> Edited(const std::vector<Block>& blocks,
                                                std::string_view text, CodeForm wanted,
                                                std::string_view parent) {
  std::string edits;
  bool is_cut_off = false;
  for (const Block& block : blocks)
    if (LooksLikeEdits(block.text)) {
      edits += block.text;
      is_cut_off = block.is_cut_off;
    }
  if (edits.empty()) edits = text;
  if (parent.empty() && edits.find("--- /dev/null") == std::string::npos)
    return std::unexpected(
        "The answer is a diff, and there is no source to apply it to. Give the whole file.");
  auto source = ApplyEdits(parent, edits);
  if (!source) return std::unexpected(std::move(source).error());
  const CodeForm form = FormOf(*source);
  if (!Fits(form, wanted))
    return std::unexpected(
        fmt::format("The edited source lacks {}. Give the whole file.", MarkOf(wanted)));
  return AnsweredCode{*std::move(source), form, "", is_cut_off, true};
}

std::string WhatLacks(const std::vector<Block>& blocks, CodeForm wanted) {
  size_t longest = 0;
  CodeForm other = CodeForm::kAny;
  for (const Block& block : blocks) {
    longest = std::max(longest, block.text.size());
    if (const CodeForm form = FormOf(block.text); form != CodeForm::kAny) other = form;
  }
  if (longest == 0)
    return "The answer has no code. Give the whole source file in one fenced block.";
  if (other != CodeForm::kAny)
    return fmt::format(
        "The answer's code has {}, and a source file with {} was asked for. Give the whole source "
        "file in one fenced block.",
        MarkOf(other), MarkOf(wanted));
  return fmt::format("The answer's code lacks {}. Give the whole source file in one fenced block.",
                     MarkOf(wanted));
}

}  // namespace

std::expected<AnsweredCode, std::string> CodeOfAnswer(std::string_view answer, CodeForm wanted,
                                                      std::string_view parent) {
  const SplitText split = SplitReasoning(answer);
  const std::string_view text = Trimmed(split.rest);
  if (text.empty())
    return std::unexpected(split.reasoning.empty()
                               ? "The answer is empty. Give the whole source file in one fenced "
                                 "block."
                               : "The answer has reasoning alone, and no code. Reason less, and "
                                 "give the whole source file in one fenced block.");
  const std::vector<Block> blocks = BlocksOf(text);
  if (const Block* block = Chosen(blocks, wanted); block != nullptr && !LooksLikeEdits(block->text))
    return AnsweredCode{block->text, FormOf(block->text), block->language, block->is_cut_off,
                        false};
  const auto is_edit = [](const Block& block) { return LooksLikeEdits(block.text); };
  if (std::ranges::any_of(blocks, is_edit) || (blocks.empty() && LooksLikeEdits(text)))
    return Edited(blocks, text, wanted, parent);
  if (blocks.empty() && Fits(FormOf(text), wanted)) {
    if (std::string code = Bare(text, FormOf(text)); Fits(FormOf(code), wanted)) {
      const CodeForm form = FormOf(code);
      return AnsweredCode{std::move(code), form, "", false, false};
    }
  }
  return std::unexpected(WhatLacks(blocks, wanted));
}

CodeForm MarkedForm(std::string_view source) { return FormOf(source); }

}  // namespace assay
