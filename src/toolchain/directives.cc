#include "toolchain/directives.h"

#include <algorithm>

#include "toolchain/lines.h"

namespace assay {
namespace {

constexpr size_t kShownBytesMax = 80;

}  // namespace

std::string_view TakeWord(std::string_view& text) {
  text = TrimSpace(text);
  const auto end = std::find_if(text.begin(), text.end(), IsSpace);
  const std::string_view word = text.substr(0, static_cast<size_t>(end - text.begin()));
  text = TrimSpace(text.substr(word.size()));
  return word;
}

std::vector<Directive> FindDirectives(std::string_view source, std::string_view language) {
  std::vector<Directive> directives;
  for (int number = 1; !source.empty(); ++number) {
    std::string_view line = TrimSpace(TakeLine(source));
    const bool block = language == "c" && line.starts_with("/*!");
    if (!block && !line.starts_with("//!")) continue;
    line.remove_prefix(3);
    if (block) line = line.substr(0, line.find("*/"));
    Directive directive{number, TakeWord(line), {}};
    directive.rest = line;
    directives.push_back(directive);
  }
  return directives;
}

bool IsIdentifier(std::string_view text) {
  return !text.empty() && IsNameStart(text[0]) && std::all_of(text.begin(), text.end(), IsNamePart);
}

std::string ShownText(std::string_view text) {
  std::string shown(text.substr(0, kShownBytesMax));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return shown;
}

}  // namespace assay
