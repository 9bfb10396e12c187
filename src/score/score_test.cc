#include "score/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "score/score_testing.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Score Scored(const std::vector<Verdict>& verdicts, const SelectionRules& selection = {},
             const ScoreRules& rules = {}) {
  return ComputeScore(SelectVerdicts(verdicts, selection).value(), rules);
}

const FastPRow& At(const Score& score, double p) {
  for (const FastPRow& row : score.fast_p)
    if (row.p == p) return row;
  ADD_FAILURE() << "no row for " << p;
  return score.fast_p.front();
}

TEST(Score, FiveProblemsOfKnownOutcome) {
  const Score score = Scored(FiveProblems());
  EXPECT_DOUBLE_EQ(score.correct.value(), 0.6);
  EXPECT_DOUBLE_EQ(At(score, 0).plain.value(), 0.6);
  EXPECT_DOUBLE_EQ(At(score, 1).plain.value(), 0.4);
  EXPECT_DOUBLE_EQ(At(score, 2).plain.value(), 0.2);
  EXPECT_EQ(At(score, 4).plain.count, 0);
  EXPECT_DOUBLE_EQ(At(score, 1).certified.value(), 0.4);
  EXPECT_DOUBLE_EQ(At(score, 2).certified.value(), 0.2);
  EXPECT_NEAR(score.mean_correct, std::cbrt(0.7 * 1.3 * 2.5), 1e-12);
  EXPECT_NEAR(score.mean_clamped, std::pow(1.3 * 2.5, 1.0 / 5), 1e-12);
}

TEST(Score, TheFunnelCountsEachStage) {
  const Score score = Scored(FiveProblems());
  EXPECT_THAT(score.funnel.reached, ElementsAre(5, 5, 4, 4, 3, 2));
  EXPECT_EQ(score.by_level.size(), 1u);
  EXPECT_THAT(score.by_mechanism, IsEmpty());
}

TEST(Score, TheFunnelIsBrokenDownByLevelAndMechanism) {
  SelectionRules rules;
  rules.asked = {{"softmax", 1, "reduction"},
                 {"gelu", 1, "fusion"},
                 {"matmul", 2, "reuse"},
                 {"conv2d", 2, "reuse"},
                 {"sort", 2, ""}};
  const Score score = Scored(FiveProblems(), rules);
  ASSERT_EQ(score.by_level.size(), 2u);
  EXPECT_THAT(score.by_level[0].reached, ElementsAre(2, 2, 2, 2, 1, 0));
  EXPECT_THAT(score.by_level[1].reached, ElementsAre(3, 2, 2, 2, 2, 2));
  ASSERT_EQ(score.by_mechanism.size(), 4u);
  EXPECT_EQ(score.by_mechanism[0].mechanism, "");
  EXPECT_EQ(score.by_mechanism[3].mechanism, "reuse");
  EXPECT_THAT(score.by_mechanism[3].reached, ElementsAre(2, 2, 2, 2, 2, 2));
}

TEST(Score, WeightsPreparedOnceAreShownApart) {
  Verdict prepared = Judged("lstm", Outcome::kWrong);
  prepared.correctness->right_with_weights = WeightsKind::kConstant;
  Verdict beside = Judged("conv2d", Outcome::kWrong);  // its problem is solved in any case
  beside.correctness->right_with_weights = WeightsKind::kConstructed;
  std::vector<Verdict> verdicts = FiveProblems();
  verdicts.push_back(prepared);
  verdicts.push_back(beside);
  const Score score = Scored(verdicts);
  EXPECT_EQ(score.correct.count, 4);
  EXPECT_EQ(At(score, 0).plain.count, 4);
  EXPECT_EQ(At(score, 0).certified.count, 3);
  EXPECT_EQ(At(score, 0.5).plain.count, 3);
  EXPECT_EQ(score.apart.prepared, 2);
  EXPECT_EQ(score.apart.prepared_problems, 1);
  EXPECT_EQ(score.apart.prepared_untimed, 1);
  EXPECT_EQ(score.funnel.at(Stage::kCorrect), 4);
}

TEST(Score, OutcomesAreCountedByMechanismOrLevel) {
  SelectionRules rules;
  rules.asked = {{"softmax", 1, "reduction"},
                 {"gelu", 1, "fusion"},
                 {"matmul", 2, "reuse"},
                 {"conv2d", 2, "reuse"},
                 {"attention", 2, ""}};
  std::vector<Verdict> verdicts = FiveProblems();
  verdicts[0].correctness->mistake = Mistake::kOneValue;
  const Fingerprint table = Scored(verdicts, rules).fingerprint;
  EXPECT_EQ(table.by, "mechanism");
  EXPECT_THAT(table.groups, ElementsAre("no mechanism", "fusion", "reduction", "reuse"));
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(table.rows[0].outcome, Outcome::kBuildFailed);
  EXPECT_EQ(table.rows[1].kind, "one value everywhere");
  EXPECT_THAT(table.rows[1].by_group, ElementsAre(0, 0, 1, 0));
  EXPECT_EQ(table.rows[3].count, 2);
  EXPECT_THAT(table.rows[3].by_group, ElementsAre(0, 0, 0, 2));
  for (AskedProblem& problem : rules.asked) problem.mechanism.clear();
  EXPECT_THAT(Scored(verdicts, rules).fingerprint.groups, ElementsAre("level 1", "level 2"));
  EXPECT_THAT(Scored(verdicts).fingerprint.groups, IsEmpty());
}

TEST(Score, ProblemsThatNobodyJudgedStayInTheDenominator) {
  SelectionRules rules;
  rules.asked_count = 10;
  const Score score = Scored(FiveProblems(), rules);
  EXPECT_EQ(At(score, 1).plain.asked, 10);
  EXPECT_DOUBLE_EQ(At(score, 1).plain.value(), 0.2);
  EXPECT_EQ(score.judged, 5);
  EXPECT_THAT(score.funnel.reached, ElementsAre(10, 5, 4, 4, 3, 2));
  EXPECT_NEAR(score.mean_clamped, std::pow(1.3 * 2.5, 1.0 / 10), 1e-12);
  SelectionRules named;
  named.asked = {{"gelu", 1, ""}, {"sort", 1, ""}, {"top_k", 1, ""}};
  EXPECT_THAT(Scored(FiveProblems(), named).NotJudged(), ElementsAre("sort", "top_k"));
}

TEST(Score, AProblemCountsByTheBestOfItsAttempts) {
  const Score score =
      Scored({Judged("gelu", Outcome::kBuildFailed), Judged("gelu", Outcome::kFaster, 2.5),
              Judged("gelu", Outcome::kSlower, 0.4), Judged("matmul", Outcome::kWrong)});
  EXPECT_EQ(score.asked, 2);
  EXPECT_EQ(score.attempts, 4);
  EXPECT_TRUE(score.several_attempts());
  EXPECT_EQ(At(score, 2).plain.count, 1);
  EXPECT_DOUBLE_EQ(score.mean_correct, 2.5);
  EXPECT_THAT(score.funnel.reached, ElementsAre(2, 2, 2, 2, 1, 1));
  ASSERT_EQ(score.problems.size(), 2u);
  EXPECT_EQ(score.problems[0].correct, 2);
}

TEST(Score, AtKIsTheMeanOverAllProblemsAskedFor) {
  SelectionRules selection;
  selection.asked_count = 4;
  ScoreRules rules;
  rules.thresholds = {1};
  rules.draws = {1, 2, 3};
  const Score score =
      Scored({Judged("gelu", Outcome::kFaster, 2), Judged("gelu", Outcome::kSlower, 0.5),
              Judged("gelu", Outcome::kWrong), Judged("matmul", Outcome::kWrong),
              Judged("matmul", Outcome::kFaster, 4)},
             selection, rules);
  ASSERT_EQ(score.at_k.size(), 2u);
  EXPECT_NEAR(score.at_k[0].pass, (2.0 / 3 + 1.0 / 2) / 4, 1e-12);
  EXPECT_NEAR(score.at_k[0].best_speedup, (2.5 / 3 + 4.0 / 2) / 4, 1e-12);
  EXPECT_NEAR(score.at_k[0].fast_p.at(0).plain, (1.0 / 3 + 1.0 / 2) / 4, 1e-12);
  EXPECT_NEAR(score.at_k[1].pass, (1.0 + 1.0) / 4, 1e-12);
  EXPECT_NEAR(score.at_k[1].fast_p.at(0).certified, (2.0 / 3 + 1.0) / 4, 1e-12);
  ASSERT_EQ(score.at_k_left_out.size(), 1u);
  EXPECT_EQ(score.at_k_left_out[0].k, 3);
  EXPECT_EQ(score.at_k_left_out[0].problem, "matmul");
  EXPECT_EQ(score.at_k_left_out[0].attempts, 2);
}

TEST(Score, OneAttemptAProblemNeedsNoK) {
  EXPECT_THAT(Scored(FiveProblems()).at_k, IsEmpty());
  EXPECT_THAT(Scored(FiveProblems()).at_k_left_out, IsEmpty());
}

TEST(Score, TheCurveAgreesWithTheTableEverywhere) {
  std::vector<Verdict> verdicts = FiveProblems();
  verdicts.push_back(Judged("sort", Outcome::kFaster, 1.3));  // two of one ratio
  const Selection selection = SelectVerdicts(verdicts, {}).value();
  ScoreRules rules;
  for (int i = 1; i < 400; ++i) rules.thresholds.push_back(0.01 * i);
  rules.thresholds.push_back(std::nextafter(1.3, 0.0));
  rules.thresholds.push_back(1.3);
  const Score score = ComputeScore(selection, rules);
  for (const FastPRow& row : score.fast_p) {
    EXPECT_EQ(CountAt(score.plain, row.p), row.plain.count) << row.p;
    EXPECT_EQ(CountAt(score.certified, row.p), row.certified.count) << row.p;
  }
  EXPECT_EQ(score.plain.front().p, 0);
  EXPECT_EQ(score.plain.back().p, 2.5);
  EXPECT_EQ(score.plain.back().count, 0);
  EXPECT_EQ(score.plain.size(), 4u);
}

TEST(Score, ACorrectCandidateWithoutASpeedIsCorrectAlone) {
  const Score score = Scored({Judged("gelu", Outcome::kUnsettled)});
  EXPECT_EQ(At(score, 0).certified.count, 1);
  EXPECT_EQ(At(score, 0.5).plain.count, 0);
  EXPECT_EQ(score.mean_correct, 0);
  EXPECT_EQ(score.mean_clamped, 1);
  EXPECT_EQ(score.plain.size(), 1u);
  EXPECT_EQ(score.baseline, "");
}

TEST(Share, IntervalsAreWilsons) {
  // By hand from the formula, z = 1.96.
  const Share share = ShareOf(2, 5);
  EXPECT_NEAR(share.low, 0.1176, 1e-4);
  EXPECT_NEAR(share.high, 0.7693, 1e-4);
  EXPECT_EQ(ShareOf(0, 10).low, 0);
  EXPECT_NEAR(ShareOf(0, 10).high, 0.2775, 1e-4);
  EXPECT_EQ(ShareOf(10, 10).high, 1);
  EXPECT_EQ(ShareOf(0, 0).value(), 0);
}

}  // namespace
}  // namespace assay
