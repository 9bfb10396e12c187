// Bounds dotted TOML keys (a.b.c = 1, [a.b.c]). The TOML library limits how deep values nest, but
// not these: each part is one more table inside the last, and they are destroyed by recursion.
// Pure.
#pragma once

#include <string_view>

namespace assay {

// No line of an honest file holds more dots beside its strings. The library allows 256 nested
// values.
inline constexpr int kLineDotsMax = 32;

// Returns the number, from 1, of the first line with more than kLineDotsMax dots, in keys or in
// values that are no strings; 0: none. base/toml.h calls it before the text is parsed.
int LineWithTooManyDots(std::string_view text);

}  // namespace assay
