#include "ladder/judge_name.h"

#include <cstdlib>

#include "base/version.h"
#include "ladder/commit.h"

namespace assay {

std::string JudgeName() {
  if (const char* named = std::getenv("ASSAY_JUDGE_COMMIT"); named != nullptr && *named != '\0')
    return named;
  return std::string(!kJudgeCommit.empty() ? kJudgeCommit : kAssayVersion);
}

}  // namespace assay
