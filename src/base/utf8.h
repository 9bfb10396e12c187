// Whether bytes are text. Pure.
#pragma once

#include <string_view>

namespace assay {

// True for well-formed UTF-8 (Unicode 15, table 3-7): no overlong forms, no surrogates, nothing
// beyond U+10FFFF, no sequence that is cut off.
bool IsUtf8(std::string_view text);

}  // namespace assay
