// The `//!` lines of a candidate's source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct Directive {
  int line = 0;           // counted from 1
  std::string_view word;  // "flags"
  std::string_view rest;  // what follows it, trimmed
};

// All of them, in order; in C also `/*! ... */`, on one line.
std::vector<Directive> FindDirectives(std::string_view source, std::string_view language);

// Takes the first word off, and the space around it.
std::string_view TakeWord(std::string_view& text);

// The bytes of an identifier.
constexpr bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool IsNamePart(char c) { return IsNameStart(c) || (c >= '0' && c <= '9'); }
bool IsIdentifier(std::string_view text);

// Text of a stranger's for a message: bounded, and without bytes that a terminal would obey.
std::string ShownText(std::string_view text);

}  // namespace assay
