// Tells text from other bytes. Pure.
#pragma once

#include <string_view>

namespace assay {

// Returns true for well-formed UTF-8 (Unicode 15, table 3-7): no overlong forms, no surrogates,
// nothing beyond U+10FFFF, no truncated sequence.
bool IsUtf8(std::string_view text);

}  // namespace assay
