// A judgement from request to verdicts, in a session of its own.
#pragma once

#include <vector>

#include "model/event.h"
#include "session/terms.h"

namespace assay {

struct JudgeRequest {
  SessionTerms terms;
  std::vector<CandidateSource> candidates;
};

// Judges every candidate. A bad candidate is a verdict; errors are the request's (kUsage) or the
// machine's (kEnvironment), or kInterrupted. Verdicts already given to `events.verdict` stand
// whatever comes after.
Result<void> JudgeCandidates(const JudgeRequest& request, const JudgeEvents& events,
                             StopToken stop);

// An error of a session, in words for whoever asked for it; `problem` is the request's.
Error ExplainError(Error error, const ProblemRequest& problem, StopToken stop);
// A verdict whose messages call the problem and the candidate by their own names.
Verdict WithFileNames(Verdict verdict, const ProblemRequest& problem);

}  // namespace assay
