#include "score/attempt.h"

#include <cmath>
#include <limits>

#include "score/fingerprint.h"

namespace assay {
namespace {

Stage StageOf(const Verdict& verdict) {
  if (RightWithPreparedWeights(verdict)) return Stage::kCorrect;
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
  const double threshold = Positive(verdict.speed->threshold);
  if (const double certified = Positive(result.certified_speedup); certified > 0)
    return result.decision == "faster" ? certified : std::min(certified, threshold);
  const bool won = verdict.outcome == Outcome::kFaster && result.decision == "faster";
  // The threshold itself was beaten, and `certified_speedup` is the end of what was.
  return won ? std::nextafter(threshold, std::numeric_limits<double>::infinity()) : 0;
}

// Why a candidate is no better; what is faster needs no words.
std::string WhyOf(const Verdict& verdict) {
  if (verdict.outcome == Outcome::kFaster) return {};
  if (!IsCorrect(verdict.outcome) && verdict.correctness && !verdict.correctness->hint.empty())
    return verdict.correctness->hint;
  return verdict.message;
}

}  // namespace

bool RightWithPreparedWeights(const Verdict& verdict) {
  const bool is_wrong =
      verdict.outcome == Outcome::kWrong || verdict.outcome == Outcome::kWeightsDiffer;
  return is_wrong && verdict.correctness && verdict.correctness->right_with_weights;
}

bool RightOnOrdinaryValues(const Verdict& verdict) {
  return verdict.outcome == Outcome::kWrong && verdict.correctness &&
         IsOfUnusualValues(verdict.correctness->mistake);
}

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
  attempt.outcome = verdict.outcome;
  attempt.kind = KindOf(verdict);
  attempt.message = WhyOf(verdict);
  attempt.prepares_weights = RightWithPreparedWeights(verdict);
  attempt.right_on_ordinary = RightOnOrdinaryValues(verdict);
  attempt.differs_on_special = attempt.correct() && verdict.correctness &&
                               !verdict.correctness->differs_on_special_values.empty();
  if (!attempt.correct() || !verdict.speed) return attempt;
  const Speed& speed = *verdict.speed;
  const auto found =
      speed.baselines.find(baseline.empty() ? speed.headline : std::string(baseline));
  if (found == speed.baselines.end()) return attempt;
  const BaselineResult& result = found->second;
  attempt.speedup = Positive(result.speedup);
  attempt.ci_low = Positive(result.ci_low);
  attempt.ci_high = Positive(result.ci_high);
  attempt.time_ns = Positive(result.candidate_time_ns);
  if (!attempt.prepares_weights) attempt.certified_speedup = CertifiedOf(verdict, result);
  if (attempt.certified_speedup > 1) attempt.stage = Stage::kFaster;
  return attempt;
}

bool Qualifies(const Attempt& attempt, double p, bool certified) {
  if (!attempt.correct() || (certified && attempt.prepares_weights)) return false;
  return p == 0 || (certified ? attempt.certified_speedup : attempt.speedup) > p;
}

}  // namespace assay
