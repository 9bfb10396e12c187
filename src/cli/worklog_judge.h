// Judges one version of a match under the match's terms.
#pragma once

#include <atomic>
#include <string>

#include "base/result.h"
#include "model/verdict.h"
#include "toolchain/build.h"
#include "worklog/match.h"

namespace assay {

// Errors (kUsage): the problem's file is not what it was when the match began; and those of a
// judgement.
Result<Verdict> JudgeVersion(const MatchBegun& begun, const CandidateSource& source, bool quiet,
                             const std::atomic<bool>& interrupted);

// The terms with this candidate's file as the opponent, in place of the reference.
Result<std::string> WithOpponent(const std::string& terms, const std::string& path);

// The terms with this budget for gate 2 [s].
Result<std::string> WithBudget(const std::string& terms, double budget_s);

}  // namespace assay
