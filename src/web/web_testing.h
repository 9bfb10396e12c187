// Strings that try to leave the place where a page shows them.
#pragma once

#include <string>
#include <vector>

namespace assay {

// 100 of them and more: tags, attributes, entities, URLs, comments, broken UTF-8, control
// characters, marks of the writing direction.
std::vector<std::string> HostileStrings();

}  // namespace assay
