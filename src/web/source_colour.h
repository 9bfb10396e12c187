// Source code in colour: a lexer of C++, CUDA, Python and assembly text that knows what a colour
// needs, and no more. Any bytes are allowed; it never fails, and no character is lost. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "web/html.h"

namespace assay {

enum class SourceLanguage { kCpp, kPython, kPlain };

// By the ending of a file's name: ".py" is Python; ".c", ".cc", ".cpp", ".cu", ".cuh", ".h" C++.
SourceLanguage LanguageOf(std::string_view file_name);

// A piece of HTML a line, without line breaks.
std::vector<Html> ColouredLines(std::string_view source, SourceLanguage language);
// All lines with their numbers, for a <pre>.
Html ColouredSource(std::string_view source, SourceLanguage language);

// The difference of two sources as `diff -u` has it, in colour; empty: they are the same.
Html ColouredDiff(std::string_view before, std::string_view after, SourceLanguage language);

}  // namespace assay
