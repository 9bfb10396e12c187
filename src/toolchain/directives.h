// Finds the `//!` lines of a candidate's source. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct Directive {
  int line = 0;           // counted from 1
  std::string_view word;  // "flags"
  std::string_view rest;  // the text after it, trimmed
};

// Returns all directives, in order; in C also `/*! ... */`, on one line. They point into `source`.
std::vector<Directive> FindDirectives(std::string_view source, std::string_view language);

// The flags that a `//! flags` line may have, by kinds: "-O0 to -O3, -Ofast; ...". Of the device
// form, or else of C++.
std::string_view AllowedFlags(bool device_form);

// Removes the first word and the space around it from `text`; returns the word.
std::string_view TakeWord(std::string_view& text);

// The characters of an identifier.
constexpr bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool IsNamePart(char c) { return IsNameStart(c) || (c >= '0' && c <= '9'); }
bool IsIdentifier(std::string_view text);

// Makes a stranger's text fit for a message: bounded, and without bytes that a terminal obeys.
std::string ShownText(std::string_view text);

}  // namespace assay
