// The constants of a problem's file as macros of native candidates: GROUPS = 4 is ASSAY_GROUPS.
// Some cannot be told from the shapes of tensors. A candidate that names none is built as without
// them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// "ASSAY_GROUPS" -> "4".
using Constants = std::map<std::string, std::string>;

// Reads the host's JSON, up to its NUL. Leaves out what is no macro, or no number: a problem's file
// is foreign, and these become words of a compiler's command line.
Constants ReadConstants(std::string_view json);

// Returns the macros ASSAY_... that a source names and kernel.h does not.
std::vector<std::string> MacrosNamed(std::string_view source, std::string_view header);

// Returns "-DASSAY_GROUPS=4" for each constant that the source names and kernel.h does not.
std::vector<std::string> ConstantFlags(std::string_view source, std::string_view header,
                                       const Constants& constants);

}  // namespace assay
