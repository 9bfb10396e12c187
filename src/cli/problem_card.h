// A problem's card: what it needs, its bound on this machine, and its hot spots.
#pragma once

#include <functional>

#include "base/result.h"
#include "report/problem_report.h"
#include "studies/inspect.h"

namespace assay {

// Inspects the problem, and shows its card to `show`. Errors: as InspectProblem's.
Result<void> WithProblemCard(const InspectRequest& request,
                             const std::function<void(const ProblemCard&)>& show);

}  // namespace assay
