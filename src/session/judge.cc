#include "session/judge.h"

#include <algorithm>

#include "hosts/blame.h"
#include "hosts/python_runtime.h"
#include "machine/machine.h"
#include "sandbox/sandbox.h"
#include "session/host_plan.h"
#include "session/session.h"

namespace assay {

Error ExplainError(Error error, const ProblemRequest& problem, StopToken stop) {
  // Whatever an interrupt made fail.
  if (stop.stopped()) return {ErrorKind::kInterrupted, "interrupted"};
  if (problem.device == "cuda" && error.code == ErrorCode::kDeviceMemory)
    error.message =
        "the GPU has too little memory left: end other programs there, or lower the problem's "
        "sizes with --set\n" +
        error.message;
  NameFiles(problem.path, "", &error.message);
  return error;
}

Verdict WithFileNames(Verdict verdict, const ProblemRequest& problem) {
  NameFiles(problem.path, verdict.candidate.path, &verdict.message);
  if (verdict.correctness)
    NameFiles(problem.path, verdict.candidate.path, &verdict.correctness->hint);
  return verdict;
}

void TellRefused(const Error& error, size_t candidates, const JudgeEvents& events) {
  if (error.kind != ErrorKind::kUnjudged) return;
  for (size_t i = 0; i < candidates; ++i) events.unjudged(error);
}

namespace {

// Builds that need no problem go on while the reference starts.
Result<void> JudgeInSession(const JudgeRequest& request, const JudgeEvents& events,
                            StopToken stop) {
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  std::vector<const CandidateSource*> sources;
  for (const CandidateSource& source : request.candidates) sources.push_back(&source);
  CandidateBuilds builds(std::move(sources), request.terms.limits, stop);
  SessionTerms terms = request.terms;
  const auto in_python = [](const CandidateSource& source) {
    return source.form == CandidateForm::kPython;
  };
  const auto in_python_count =
      std::count_if(request.candidates.begin(), request.candidates.end(), in_python);
  // Many cores import PyTorch for nurseries beside the oracle, before a candidate is built.
  const bool imports_ahead = terms.problem.device == "cuda" && UsableCpus().size() >= kManyCores;
  terms.forks_hosts = in_python_count > (imports_ahead ? 0 : 1);
  const auto session = Session::Open(std::move(terms), stop, events, &builds);
  if (!session) {
    TellRefused(session.error(), request.candidates.size(), events);
    return std::unexpected(session.error());
  }
  return (*session)->JudgeAll(builds, {.bar = request.bar}, events);
}

}  // namespace

Result<void> JudgeCandidates(const JudgeRequest& request, const JudgeEvents& events,
                             StopToken stop) {
  JudgeEvents named = events;
  named.verdict = [&](const Verdict& verdict) {
    events.verdict(WithFileNames(verdict, request.terms.problem));
  };
  auto judged = JudgeInSession(request, named, stop);
  if (!judged) return std::unexpected(ExplainError(judged.error(), request.terms.problem, stop));
  return judged;
}

}  // namespace assay
