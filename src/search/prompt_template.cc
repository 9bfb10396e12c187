#include "search/prompt_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/files.h"
#include "problem/nearest.h"
#include "sandbox/sandbox.h"
#include "toolchain/lines.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTemplateBytesMax = 256 << 10;
constexpr std::array<std::string_view, 15> kTemplates{
    "ablate",      "crossover",   "example_device", "example_native", "example_python",
    "form_device", "form_native", "form_python",    "idea",           "implement",
    "port",        "refine",      "repair",         "rules",          "system"};

// {{name}}, {{#name}} or {{/name}}.
struct Tag {
  size_t begin = 0, end = 0;  // in the text, with its braces
  char mark = ' ';            // '#', '/', or ' ' of a value
  std::string_view name;
};

std::optional<Tag> NextTag(std::string_view text, size_t from) {
  const size_t begin = text.find("{{", from);
  const size_t close = begin == std::string_view::npos ? begin : text.find("}}", begin);
  if (close == std::string_view::npos) return std::nullopt;
  Tag tag{begin, close + 2, ' ', TrimSpace(text.substr(begin + 2, close - begin - 2))};
  if (tag.name.starts_with('#') || tag.name.starts_with('/')) {
    tag.mark = tag.name.front();
    tag.name = TrimSpace(tag.name.substr(1));
  }
  return tag;
}

// A section's tag that stands alone on its line takes the line's end with it.
size_t EndOfTag(std::string_view text, const Tag& tag) {
  const bool alone = tag.mark != ' ' && (tag.begin == 0 || text[tag.begin - 1] == '\n') &&
                     tag.end < text.size() && text[tag.end] == '\n';
  return alone ? tag.end + 1 : tag.end;
}

std::vector<std::string> KnownParts() { return {kPromptParts.begin(), kPromptParts.end()}; }

}  // namespace

Result<void> CheckTemplate(std::string_view text, const std::string& file) {
  std::vector<std::string_view> open;
  size_t at = 0;
  while (const auto tag = NextTag(text, at)) {
    at = tag->end;
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(tag->begin), '\n');
    const auto fault = [&](const std::string& what) {
      return UsageError(fmt::format("{} line {}: {}", file, line, what));
    };
    if (std::find(kPromptParts.begin(), kPromptParts.end(), tag->name) == kPromptParts.end())
      return fault(fmt::format("there is no part '{}' of a prompt{}",
                               tag->name.substr(0, std::min<size_t>(tag->name.size(), 40)),
                               Suggestion(tag->name, KnownParts())));
    if (tag->mark == '#') open.push_back(tag->name);
    if (tag->mark != '/') continue;
    if (open.empty() || open.back() != tag->name)
      return fault(fmt::format("{{{{/{}}}}} closes no open section", tag->name));
    open.pop_back();
  }
  if (!open.empty())
    return UsageError(fmt::format("{}: {{{{#{}}}}} is not closed", file, open.back()));
  return {};
}

std::string FillTemplate(std::string_view text, const PromptParts& parts) {
  const auto part = [&](std::string_view name) {
    const auto found = parts.find(name);
    return found == parts.end() ? std::string_view() : std::string_view(found->second);
  };
  std::string filled;
  size_t at = 0, hidden = 0;  // hidden: sections around this place that are not shown
  while (const auto tag = NextTag(text, at)) {
    if (hidden == 0) filled += text.substr(at, tag->begin - at);
    const bool empty = part(tag->name).empty();
    if (tag->mark == '#' && (hidden > 0 || empty)) ++hidden;
    if (tag->mark == '/' && hidden > 0) --hidden;
    if (tag->mark == ' ' && hidden == 0) filled += part(tag->name);
    at = EndOfTag(text, *tag);
  }
  return filled + std::string(text.substr(at));
}

Result<PromptTemplates> PromptTemplates::Load(const std::string& shipped,
                                              const std::string& replacing) {
  PromptTemplates templates;
  for (std::string_view name : kTemplates) {
    const std::string file = std::string(name) + ".md";
    const bool replaced = !replacing.empty() && fs::exists(fs::path(replacing) / file);
    const fs::path path = fs::path(replaced ? replacing : shipped) / file;
    ASSAY_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kTemplateBytesMax));
    ASSAY_RETURN_IF_ERROR(CheckTemplate(text, path.string()));
    templates.texts_[std::string(name)] = std::move(text);
  }
  if (replacing.empty()) return templates;
  std::error_code code;
  if (!fs::is_directory(replacing, code))
    return UsageError(fmt::format("--prompts {}: there is no such folder", replacing));
  const std::vector<std::string> known(kTemplates.begin(), kTemplates.end());
  for (const auto& entry : fs::directory_iterator(replacing, code)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() == ".md" && name != "README" &&
        std::ranges::find(known, name) == known.end())
      return UsageError(
          fmt::format("{} replaces no template{}", entry.path().string(), Suggestion(name, known)));
  }
  return templates;
}

Result<std::string> PromptTemplates::ShippedFolder() {
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  return (fs::path(support) / "prompts").string();
}

const std::string& PromptTemplates::Text(std::string_view name) const {
  const auto found = texts_.find(name);
  ASSAY_CHECK(found != texts_.end());
  return found->second;
}

}  // namespace assay
