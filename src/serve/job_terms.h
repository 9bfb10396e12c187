// The terms of a job, against those that a verdict tells. Pure.
#pragma once

#include "base/result.h"
#include "model/verdict.h"
#include "serve/catalogue.h"
#include "serve/types.h"

namespace assay {

// A verdict must be on the job's source, on the server's file of the problem, at the job's size and
// constants, against the job's opponent or the default baseline, and on the default terms. So a
// runner with settings of its own, or one that judges something easier, is refused, and so is a
// verdict that contradicts itself. `problem`: null where the server offers it no more. Errors
// (kUsage) name the first term that differs.
Result<void> CheckJobTerms(const Job& job, const OfferedProblem* problem, const Verdict& verdict);

}  // namespace assay
