// Text of others', line by line.
#pragma once

#include <string_view>

namespace assay {

constexpr bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}
// Without the space around it.
std::string_view TrimSpace(std::string_view text);
// Takes the first line off, with its end; without it.
std::string_view TakeLine(std::string_view& text);

}  // namespace assay
