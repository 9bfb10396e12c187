// The coverage of a problem's operators, measured once on a machine and kept.
#pragma once

#include <optional>
#include <string>

#include "correctness/draw_set.h"
#include "model/verdict.h"
#include "session/workbench.h"

namespace assay {

// Returns the coverage that an earlier judgement kept; nullopt: none did. `tolerance`: as asked
// for.
std::optional<OperatorCoverage> KeptCoverage(const ProblemRequest& problem,
                                             const std::string& torch_version,
                                             const std::string& tolerance);

// Returns the coverage that is kept for this problem, these terms and this PyTorch, or measures and
// keeps it, which takes five seconds at most; nullopt where LookAtOperators gives none. Errors: as
// there.
Result<std::optional<OperatorCoverage>> CoverageFor(Workbench& bench, const DrawSet& draws);

}  // namespace assay
