// A bound that the TOML library lacks: it limits how deep values nest, but every part of a dotted
// key (a.b.c = 1, [a.b.c]) is one more table inside the last, taken apart by recursion at the end.
// Pure.
#pragma once

#include <string_view>

namespace assay {

// More dots than a line of any honest file holds; the library allows 256 values inside each other.
inline constexpr int kLineDotsMax = 32;

// Number of the first line of a TOML text with more than kLineDotsMax dots, wherever they stand; 0
// where there is none. To be asked before the text is parsed.
int LineWithTooManyDots(std::string_view text);

}  // namespace assay
