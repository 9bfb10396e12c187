// run.json: the problems that a run was asked to judge. Scores need those without a verdict, too.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "run/plan.h"
#include "score/selection.h"

namespace assay {

inline constexpr const char* kRunRecordName = "run.json";

// Returns the text of run.json: the plan's problems, and those that `before` names besides.
std::string RunRecordText(const RunPlan& plan, const std::vector<AskedProblem>& before);
// Reads FOLDER/run.json; nothing if there is none. Errors (kUsage): the file is something else.
Result<std::vector<AskedProblem>> ReadRunRecord(const std::string& folder);

}  // namespace assay
