#include "base/dotted_keys.h"

#include <algorithm>

namespace assay {
namespace {

constexpr size_t kQuotes = 3;  // open and close a string of several lines

// The end of the string or the comment that begins at `at`: the place behind it, or its line's end.
size_t EndOfText(std::string_view text, size_t at) {
  const char mark = text[at];
  if (mark == '#') return std::min(text.find('\n', at), text.size());
  const std::string_view run = text.substr(at, kQuotes);
  const bool is_long = run.size() == kQuotes && run[1] == mark && run[2] == mark;
  size_t quotes = 0;
  for (size_t i = at + (is_long ? kQuotes : 1); i < text.size(); ++i) {
    if (text[i] == '\n' && !is_long) return i;  // no TOML
    if (text[i] == mark && !is_long) return i + 1;
    quotes = text[i] == mark ? quotes + 1 : 0;
    if (quotes == kQuotes) {
      // Up to two more quotes are the string's own: """a""""" is a"".
      for (size_t more = 0; more < 2 && i + 1 < text.size() && text[i + 1] == mark; ++more) ++i;
      return i + 1;
    }
    if (text[i] == '\\' && mark == '"') ++i;
  }
  return text.size();
}

}  // namespace

int LineWithTooManyDots(std::string_view text) {
  int line = 1, dots = 0;
  for (size_t i = 0; i < text.size();) {
    const bool is_text = text[i] == '"' || text[i] == '\'' || text[i] == '#';
    const size_t end = is_text ? EndOfText(text, i) : i + 1;
    if (text[i] == '.' && ++dots > kLineDotsMax) return line;
    if (text[i] == '\n') dots = 0;
    line += static_cast<int>(std::ranges::count(text.substr(i, end - i), '\n'));
    i = end;
  }
  return 0;
}

}  // namespace assay
