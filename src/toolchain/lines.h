// Reads text line by line. Pure.
#pragma once

#include <string_view>

namespace assay {

constexpr bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}
// Returns the text without the space around it.
std::string_view TrimSpace(std::string_view text);
// Removes the first line from `text`; returns it without its end.
std::string_view TakeLine(std::string_view& text);

}  // namespace assay
