// Judges a request's candidates, in a session of its own.
#pragma once

#include <vector>

#include "model/event.h"
#include "session/terms.h"

namespace assay {

struct JudgeRequest {
  SessionTerms terms;
  std::vector<CandidateSource> candidates;
  Bar bar = {};
};

// Judges every candidate. A bad candidate is a verdict; errors are the request's (kUsage) or the
// machine's (kEnvironment), or kInterrupted. Verdicts already given to `events.verdict` remain
// valid after an error.
Result<void> JudgeCandidates(const JudgeRequest& request, const JudgeEvents& events,
                             StopToken stop);

// Tells of each candidate that it is not judged, if the error is of a problem that does not fit
// this machine (kUnjudged).
void TellRefused(const Error& error, size_t candidates, const JudgeEvents& events);

// Rewords a session's error for its client; `problem` is the request's.
Error ExplainError(Error error, const ProblemRequest& problem, StopToken stop);
// Returns the verdict with the problem's and the candidate's own file names in its messages.
Verdict WithFileNames(Verdict verdict, const ProblemRequest& problem);

}  // namespace assay
