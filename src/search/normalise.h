// The text of a candidate without what changes nothing: two sources with the same one are the same
// candidate. Pure.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// C, C++ and CUDA: comments go, save `//!` and `/*!` lines, which Assay reads; runs of white space
// become one. Python: empty lines and blanks at the end of lines go. Literals stay as they are.
std::string NormalisedSource(std::string_view source, std::string_view language);

}  // namespace assay
