// Theory of operation: a scan that knows strings and brackets, nothing else of JSON, finds the ends
// of values. It puts short stand-ins in the place of the long members and leaves every other byte
// as it is, so the one strict reader of verdicts still checks all the rest.
#include "model/verdict_outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "model/verdict_json.h"

namespace assay {
namespace {

constexpr size_t kNowhere = std::string_view::npos;
constexpr std::string_view kBlanks = " \t\r\n";

struct StandIn {
  std::string_view parent;  // empty: the verdict itself
  std::string_view key;
  std::string_view value;
};
constexpr StandIn kStandIns[] = {
    {"", "samples", "[]"},          {"", "log", "\"\""},
    {"", "work", "null"},           {"", "roofline", "null"},
    {"", "kernels", "[]"},          {"", "profile", "null"},
    {"", "sustained", "null"},      {"problem", "signature", "[]"},
    {"correctness", "draws", "[]"},
};

std::string_view StandInFor(std::string_view parent, std::string_view key) {
  for (const StandIn& stand_in : kStandIns)
    if (stand_in.parent == parent && stand_in.key == key) return stand_in.value;
  return {};
}

bool HasStandIns(std::string_view parent) {
  for (const StandIn& stand_in : kStandIns)
    if (stand_in.parent == parent) return true;
  return false;
}

// The first place from `at` on that is no blank; the text's size where there is none.
size_t SkipBlanks(std::string_view text, size_t at) {
  while (at < text.size() && kBlanks.find(text[at]) != kNowhere) ++at;
  return at;
}

// The place after the string that begins at `at`; kNowhere where the text ends inside it.
size_t SkipString(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '"') return at + 1;
    if (text[at] == '\\') ++at;
  }
  return kNowhere;
}

// The place after the value that begins at `at`; kNowhere where the text ends inside it.
size_t SkipValue(std::string_view text, size_t at) {
  if (at >= text.size()) return kNowhere;
  if (text[at] == '"') return SkipString(text, at);
  if (text[at] != '{' && text[at] != '[') {
    at = text.find_first_of(" \t\r\n,]}", at);
    return at == kNowhere ? text.size() : at;
  }
  for (size_t depth = 0; at < text.size();) {
    switch (text[at]) {
      case '"':
        at = SkipString(text, at);
        continue;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (--depth == 0) return at + 1;
        break;
      default:
        break;
    }
    ++at;
  }
  return kNowhere;
}

// Copies a verdict's text with the stand-ins.
class OutlineWriter {
 public:
  explicit OutlineWriter(std::string_view text) : text_(text) {}

  // nullopt for what is not an object with well-formed members.
  std::optional<std::string> Write() {
    at_ = SkipBlanks(text_, 0);
    if (at_ >= text_.size() || text_[at_] != '{' || !Object("")) return std::nullopt;
    outline_ += text_.substr(kept_);
    return std::move(outline_);
  }

 private:
  // Commas are passed over wherever they stand: they are copied, and the reader counts them.
  bool Object(std::string_view parent) {
    for (++at_;;) {
      at_ = SkipBlanks(text_, at_);
      if (at_ >= text_.size()) return false;
      if (text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (text_[at_] == '}') return ++at_, true;
      if (text_[at_] != '"' || !Member(parent)) return false;
    }
  }

  bool Member(std::string_view parent) {
    const size_t key_begin = at_ + 1;
    const size_t key_end = SkipString(text_, at_);
    if (key_end == kNowhere) return false;
    const std::string_view key = text_.substr(key_begin, key_end - 1 - key_begin);
    at_ = SkipBlanks(text_, key_end);
    if (at_ >= text_.size() || text_[at_] != ':') return false;
    at_ = SkipBlanks(text_, at_ + 1);
    if (at_ >= text_.size()) return false;
    if (parent.empty() && text_[at_] == '{' && HasStandIns(key)) return Object(key);
    const size_t end = SkipValue(text_, at_);
    if (end == kNowhere) return false;
    if (const std::string_view stand_in = StandInFor(parent, key); !stand_in.empty()) {
      outline_ += text_.substr(kept_, at_ - kept_);
      outline_ += stand_in;
      kept_ = end;
    }
    at_ = end;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t kept_ = 0;  // what lies before it is in the outline, or left out
  std::string outline_;
};

VerdictTexts SplitLines(std::string_view text) {
  VerdictTexts texts;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (SkipBlanks(line, 0) < line.size()) texts.documents.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return texts;
}

VerdictTexts SplitList(std::string_view text, size_t at) {
  VerdictTexts texts;
  for (++at;; ++at) {  // past the bracket, then past each comma
    at = SkipBlanks(text, at);
    if (at < text.size() && text[at] == ']' && texts.documents.empty()) break;
    const size_t end = SkipValue(text, at);
    const size_t next = end == kNowhere ? text.size() : SkipBlanks(text, end);
    if (next >= text.size()) {
      texts.fault = fmt::format(
          "the list ends in the middle, after {} whole verdicts: it was cut "
          "off",
          texts.documents.size());
      return texts;
    }
    texts.documents.push_back(text.substr(at, end - at));
    at = next;
    if (text[at] == ']') break;
    if (text[at] != ',') {
      texts.fault =
          fmt::format("no comma stands after verdict {} of the list", texts.documents.size());
      return texts;
    }
  }
  if (SkipBlanks(text, at + 1) < text.size()) texts.fault = "something stands after the list";
  return texts;
}

}  // namespace

VerdictTexts SplitVerdicts(std::string_view text, bool one_a_line) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // the mark that some editors write
  if (one_a_line) return SplitLines(text);
  const size_t at = SkipBlanks(text, 0);
  if (at == text.size()) return {{}, "the file is empty"};
  if (text[at] == '[') return SplitList(text, at);
  return {{text}, ""};
}

Result<Verdict> VerdictOutlineFromJson(std::string_view text) {
  const std::optional<std::string> outline = OutlineWriter(text).Write();
  auto verdict = VerdictFromJson(outline ? std::string_view(*outline) : text);
  if (!verdict && SkipValue(text, SkipBlanks(text, 0)) == kNowhere)
    return UsageError("it ends in the middle of a verdict: it was cut off");
  return verdict;
}

}  // namespace assay
