// The difference of two texts, line by line. Pure.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// Returns it in the unified format of `diff -u`, with three lines around each change; empty: none.
// Where both texts have thousands of changed lines, all between the first and the last change is
// replaced as a whole.
std::string UnifiedDiff(std::string_view before, std::string_view after,
                        std::string_view name_before, std::string_view name_after);

}  // namespace assay
