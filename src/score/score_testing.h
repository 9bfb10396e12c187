// Verdicts for the tests of scores.
#pragma once

#include <string>
#include <vector>

#include "model/verdict.h"

namespace assay {

// Returns a verdict on a new candidate. `speedup` 0: not timed. The certified speedup is 0.95 of
// it.
inline Verdict Judged(const std::string& problem, Outcome outcome, double speedup = 0) {
  static int count = 0;
  Verdict verdict;
  verdict.id = "id" + std::to_string(++count);
  verdict.created = "2026-11-21T07:00:00Z";
  verdict.outcome = outcome;
  verdict.problem.name = problem;
  verdict.problem.hash = std::string(64, 'a');
  verdict.problem.level = 1;
  verdict.candidate.hash = "candidate" + std::to_string(count);
  verdict.machine.cpu = "AMD EPYC 7B13";
  verdict.machine.cores = 2;
  verdict.machine.threads = 1;
  const bool timed = outcome == Outcome::kFaster || outcome == Outcome::kSlower ||
                     outcome == Outcome::kTie || outcome == Outcome::kUnsettled;
  if (timed || outcome == Outcome::kWrong) {
    verdict.correctness.emplace();
    verdict.correctness->passed = timed;
  }
  if (speedup > 0) {
    verdict.speed.emplace();
    verdict.speed->headline = "eager";
    BaselineResult& eager = verdict.speed->baselines["eager"];
    eager.speedup = speedup;
    eager.decision = OutcomeName(outcome);
    eager.certified_speedup = 0.95 * speedup;
  }
  return verdict;
}

// The example of docs/score.md: one wrong, one slower, two faster, one not built.
inline std::vector<Verdict> FiveProblems() {
  return {Judged("softmax", Outcome::kWrong), Judged("gelu", Outcome::kSlower, 0.7),
          Judged("matmul", Outcome::kFaster, 1.3), Judged("conv2d", Outcome::kFaster, 2.5),
          Judged("attention", Outcome::kBuildFailed)};
}

}  // namespace assay
