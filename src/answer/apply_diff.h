// Applies the edits of an answer to the source that they are about. Pure.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace assay {

// Returns true if the text has a unified diff's hunk or a search-and-replace block.
bool LooksLikeEdits(std::string_view text);

// Applies unified diffs ("@@ ... @@" and lines that begin with ' ', '-' or '+') and blocks of
//   <<<<<<< SEARCH
//   =======
//   >>>>>>> REPLACE
// in their order. Line numbers are hints: a hunk applies where its old lines stand, at the place
// nearest to its number. Blanks at the ends of lines do not count. Errors: a text for the author
// that names the first edit that does not fit.
std::expected<std::string, std::string> ApplyEdits(std::string_view source, std::string_view edits);

}  // namespace assay
