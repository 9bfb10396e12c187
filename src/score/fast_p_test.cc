#include "score/fast_p.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace assay {
namespace {

Verdict Judged(Outcome outcome, double speedup, std::string decision, double threshold = 1) {
  Verdict verdict;
  verdict.outcome = outcome;
  verdict.correctness = Correctness{};
  verdict.correctness->passed = true;
  verdict.speed = Speed{};
  verdict.speed->threshold = threshold;
  verdict.speed->headline = "eager";
  BaselineResult eager;
  eager.speedup = speedup;
  eager.decision = std::move(decision);
  verdict.speed->baselines["eager"] = eager;
  return verdict;
}

Verdict Failed(Outcome outcome) {
  Verdict verdict;
  verdict.outcome = outcome;
  return verdict;
}

TEST(FastP, OneWinOfThreeIsAThird) {
  const std::vector<Verdict> verdicts{Judged(Outcome::kSlower, 0.5, "slower"),
                                      Judged(Outcome::kFaster, 2.5, "faster"),
                                      Failed(Outcome::kWrong)};
  EXPECT_EQ(RenderFastP(PlainFastP(verdicts, 1, 3)), "fast_1 = 33% (1 of 3)");
  EXPECT_EQ(RenderFastP(CertifiedFastP(verdicts, 1, 3)), "certified fast_1 = 33% (1 of 3)");
}

TEST(FastP, IsStrictlyOverP) {
  const std::vector<Verdict> verdicts{Judged(Outcome::kTie, 1.0, "tie")};
  EXPECT_EQ(PlainFastP(verdicts, 1, 1).count, 0);
  EXPECT_EQ(PlainFastP(verdicts, 0.999, 1).count, 1);
}

TEST(FastP, ZeroCountsEveryCorrectVerdict) {
  std::vector<Verdict> verdicts{Judged(Outcome::kSlower, 0.01, "slower"),
                                Judged(Outcome::kUnsettled, 0.0, "unsettled"),
                                Failed(Outcome::kBuildFailed)};
  verdicts.push_back(Judged(Outcome::kFaster, 3, "faster"));
  verdicts.back().correctness->passed = false;
  EXPECT_EQ(PlainFastP(verdicts, 0, 4).count, 2);
  EXPECT_EQ(CertifiedFastP(verdicts, 0, 4).count, 2);
}

TEST(FastP, ATieCountsPlainButNotCertified) {
  const std::vector<Verdict> verdicts{Judged(Outcome::kTie, 1.004, "tie")};
  EXPECT_EQ(PlainFastP(verdicts, 1, 1).count, 1);
  EXPECT_EQ(CertifiedFastP(verdicts, 1, 1).count, 0);
}

TEST(FastP, CertifiedNeedsADecisionAgainstAtLeastP) {
  const std::vector<Verdict> verdicts{Judged(Outcome::kFaster, 5, "faster", 1),
                                      Judged(Outcome::kFaster, 5, "faster", 2)};
  EXPECT_EQ(PlainFastP(verdicts, 2, 2).count, 2);
  EXPECT_EQ(CertifiedFastP(verdicts, 2, 2).count, 1);
  EXPECT_EQ(CertifiedFastP(verdicts, 1, 2).count, 2);
}

TEST(FastP, CertifiedCountsWhatThePairsCertify) {
  std::vector<Verdict> verdicts{Judged(Outcome::kFaster, 2.5, "faster"),
                                Judged(Outcome::kTie, 1.0, "tie")};
  verdicts[0].speed->baselines["eager"].certified_speedup = 2.4;
  verdicts[1].speed->baselines["eager"].certified_speedup = 0.98;
  EXPECT_EQ(CertifiedFastP(verdicts, 2.4, 2).count, 0);  // strict
  EXPECT_EQ(CertifiedFastP(verdicts, 2.3, 2).count, 1);  // beyond the threshold asked for
  EXPECT_EQ(CertifiedFastP(verdicts, 0.9, 2).count, 2);
}

TEST(FastP, AnOlderRecordIsCertifiedByItsOutcomeAlone) {
  const std::vector<Verdict> verdicts{Judged(Outcome::kUnsettled, 9, "faster"),
                                      Judged(Outcome::kFoul, 9, "faster")};
  EXPECT_EQ(PlainFastP(verdicts, 1, 2).count, 1);  // a foul is not correct
  EXPECT_EQ(CertifiedFastP(verdicts, 1, 2).count, 0);
}

TEST(FastP, MissingVerdictsCountAsNotFast) {
  const std::vector<Verdict> verdicts{Judged(Outcome::kFaster, 2, "faster")};
  EXPECT_EQ(RenderFastP(PlainFastP(verdicts, 1.5, 8)), "fast_1.5 = 12% (1 of 8)");
  EXPECT_EQ(RenderFastP(PlainFastP({}, 1, 0)), "fast_1 = 0% (0 of 0)");
}

TEST(FastP, NanRatiosAndMissingBaselinesAreNotFast) {
  std::vector<Verdict> verdicts{
      Judged(Outcome::kUnsettled, std::numeric_limits<double>::quiet_NaN(), "unsettled"),
      Judged(Outcome::kFaster, 4, "faster")};
  verdicts[1].speed->headline = "compiled";
  EXPECT_EQ(PlainFastP(verdicts, 1, 2).count, 0);
}

TEST(FastPDeathTest, MoreVerdictsThanAskedForIsABug) {
  const std::vector<Verdict> verdicts{Failed(Outcome::kWrong), Failed(Outcome::kWrong)};
  EXPECT_DEATH(PlainFastP(verdicts, 1, 1), "");
}

}  // namespace
}  // namespace assay
