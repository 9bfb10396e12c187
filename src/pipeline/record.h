// Parts of a verdict that follow from what the judgement knows. Pure.
#pragma once

#include <string>

#include "model/problem.h"
#include "model/verdict.h"

namespace assay {

ProblemRecord RecordOf(const ProblemRequest& request, const ProblemDescription& description);

// Why a correct candidate has this outcome, in one sentence. `opponent` names the headline baseline
// or the other candidate.
std::string OutcomeMessage(Outcome outcome, const Speed& speed, const std::string& opponent);

}  // namespace assay
