// The text of answers. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/trimmed.h"

namespace assay {

// Returns the text with U+FFFD for all bytes that are not UTF-8.
std::string MendUtf8(std::string text);

struct SplitText {
  std::string reasoning;
  std::string rest;
};
// Takes <think>...</think> parts out (also <thinking>, <reasoning>). One without its end reaches to
// the end of the text. An end without its begin, which some chat templates leave in the prompt,
// ends a part that began with the text.
SplitText SplitReasoning(std::string_view text);

}  // namespace assay
