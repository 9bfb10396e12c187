// Which judge a raw result is of.
#pragma once

#include <string>

namespace assay {

// ASSAY_JUDGE_COMMIT where that is set; else the last commit that changed the judge before this
// program was built, with '+' where it was changed since; built without git, the version.
std::string JudgeName();

}  // namespace assay
