#include "score/attempt.h"

#include <cmath>
#include <limits>

namespace assay {
namespace {

Stage StageOf(const Verdict& verdict) {
  switch (FactsOf(verdict.outcome).reached) {
    case Reached::kNothing:
      return Stage::kJudged;
    case Reached::kBuilt:
      return Stage::kBuilt;
    case Reached::kRan:
      return Stage::kRan;
    case Reached::kCorrect:
      return verdict.correctness && verdict.correctness->passed ? Stage::kCorrect : Stage::kRan;
  }
  return Stage::kJudged;
}

double Positive(double ratio) { return std::isfinite(ratio) && ratio > 0 ? ratio : 0; }

double CertifiedOf(const Verdict& verdict, const BaselineResult& result) {
  if (const double certified = Positive(result.certified_speedup); certified > 0) return certified;
  const bool won = verdict.outcome == Outcome::kFaster && result.decision == "faster";
  // The threshold itself was beaten, and `certified_speedup` is the end of what was.
  return won ? std::nextafter(Positive(verdict.speed->threshold),
                              std::numeric_limits<double>::infinity())
             : 0;
}

}  // namespace

std::string_view StageName(Stage stage) {
  switch (stage) {
    case Stage::kAsked:
      return "asked";
    case Stage::kJudged:
      return "judged";
    case Stage::kBuilt:
      return "built";
    case Stage::kRan:
      return "ran";
    case Stage::kCorrect:
      return "correct";
    case Stage::kFaster:
      return "faster";
  }
  return "unknown";
}

Attempt AttemptOf(const Verdict& verdict, std::string_view baseline) {
  Attempt attempt;
  attempt.stage = StageOf(verdict);
  if (!attempt.correct() || !verdict.speed) return attempt;
  const Speed& speed = *verdict.speed;
  const auto found =
      speed.baselines.find(baseline.empty() ? speed.headline : std::string(baseline));
  if (found == speed.baselines.end()) return attempt;
  attempt.speedup = Positive(found->second.speedup);
  attempt.certified_speedup = CertifiedOf(verdict, found->second);
  if (attempt.certified_speedup > 1) attempt.stage = Stage::kFaster;
  return attempt;
}

bool Qualifies(const Attempt& attempt, double p, bool certified) {
  if (!attempt.correct()) return false;
  return p == 0 || (certified ? attempt.certified_speedup : attempt.speedup) > p;
}

}  // namespace assay
