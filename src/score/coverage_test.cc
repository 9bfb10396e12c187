#include "score/coverage.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

namespace assay {
namespace {

using testing::DoubleNear;

// `count` problems with `attempts` each; a share `z` has no chance, the others' is drawn by `draw`.
template <typename Draw>
std::vector<AttemptCount> Simulated(int count, int64_t attempts, double z, Draw draw) {
  std::mt19937_64 generator(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<AttemptCount> problems;
  for (int i = 0; i < count; ++i) {
    const double chance = uniform(generator) < z ? 0 : draw(generator);
    AttemptCount problem{attempts, 0};
    for (int64_t j = 0; j < attempts; ++j) problem.correct += uniform(generator) < chance ? 1 : 0;
    problems.push_back(problem);
  }
  return problems;
}

double BetaDraw(std::mt19937_64& generator, double a, double b) {
  std::gamma_distribution<double> first(a, 1), second(b, 1);
  const double x = first(generator);
  return x / (x + second(generator));
}

TEST(Coverage, FindsTheShareOutOfReach) {
  const auto problems =
      Simulated(400, 50, 0.3, [](std::mt19937_64& generator) { return BetaDraw(generator, 2, 5); });
  const auto fit = FitCoverage(problems);
  ASSERT_TRUE(fit);
  EXPECT_THAT(fit->out_of_reach, DoubleNear(0.3, 0.06));
  EXPECT_LT(fit->low, 0.3);
  EXPECT_GT(fit->high, 0.3);
  EXPECT_GT(fit->low, 0.2);
  EXPECT_THAT(fit->alpha / (fit->alpha + fit->beta), DoubleNear(2.0 / 7, 0.04));
  // Without such problems the data are far less likely.
  EXPECT_GT(fit->log_likelihood, fit->log_likelihood_in_reach + 10);
}

TEST(Coverage, ClaimsNoneWhereRareSuccessesExplainAll) {
  const auto problems =
      Simulated(300, 20, 0, [](std::mt19937_64& generator) { return BetaDraw(generator, 0.3, 2); });
  const auto fit = FitCoverage(problems);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->low, 0);
  EXPECT_LT(fit->log_likelihood - fit->log_likelihood_in_reach, 1.93);
}

TEST(Coverage, OfOneCommonChanceIsThatOfIndependentAttempts) {
  const auto problems = Simulated(200, 40, 0, [](std::mt19937_64&) { return 0.1; });
  const auto coverage = CoverageOf(problems);
  ASSERT_TRUE(coverage);
  EXPECT_EQ(coverage->problems, 200);
  EXPECT_THAT(coverage->correct, DoubleNear(0.1, 0.01));
  ASSERT_EQ(coverage->rows.size(), 5u);  // 1, 2, 5, 10, 20
  for (const CoverageRow& row : coverage->rows) {
    EXPECT_THAT(row.common, DoubleNear(1 - std::pow(0.9, static_cast<double>(row.k)), 0.04));
    EXPECT_THAT(row.measured, DoubleNear(row.common, 0.03));
    EXPECT_THAT(row.fitted, DoubleNear(row.common, 0.03));
  }
}

TEST(Coverage, OfProblemsOutOfReachStaysBelowThatOfACommonChance) {
  const auto coverage = CoverageOf(Simulated(300, 100, 0.5, [](std::mt19937_64&) { return 0.08; }));
  ASSERT_TRUE(coverage);
  const CoverageRow& last = coverage->rows.back();
  EXPECT_EQ(last.k, 100);
  EXPECT_GT(last.common, 0.95);
  EXPECT_THAT(last.measured, DoubleNear(0.5, 0.07));
  EXPECT_THAT(last.fitted, DoubleNear(last.measured, 0.02));
}

TEST(Coverage, TheFitIsTheMostLikely) {
  // By hand: two kinds of problems, c of 2. The likelihood at the fit beats any point of a grid.
  const std::vector<AttemptCount> problems = {{2, 0}, {2, 0}, {2, 0}, {2, 1}, {2, 2}, {2, 2}};
  const auto fit = FitCoverage(problems);
  ASSERT_TRUE(fit);
  const auto log_beta = [](double a, double b) {
    return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b);
  };
  for (double z = 0; z < 0.95; z += 0.05) {
    for (double a = 0.05; a < 30; a *= 1.6) {
      for (double b = 0.05; b < 30; b *= 1.6) {
        double sum = 0;
        for (const AttemptCount& problem : problems) {
          const auto c = static_cast<double>(problem.correct);
          const double chance = std::exp(log_beta(a + c, b + 2 - c) - log_beta(a, b));
          sum += std::log((problem.correct == 0 ? z : 0) + (1 - z) * chance);
        }
        EXPECT_LE(sum, fit->log_likelihood + 1e-6) << z << " " << a << " " << b;
      }
    }
  }
}

TEST(Coverage, NeedsSeveralProblemsAttemptsAndASuccess) {
  EXPECT_FALSE(FitCoverage(std::vector<AttemptCount>{}));
  EXPECT_FALSE(FitCoverage(std::vector<AttemptCount>(4, {10, 3})));
  EXPECT_FALSE(FitCoverage(std::vector<AttemptCount>(9, {1, 1})));
  EXPECT_FALSE(FitCoverage(std::vector<AttemptCount>(9, {10, 0})));
  std::vector<AttemptCount> problems(5, {4, 4});
  problems.push_back({0, 0});
  const auto all = CoverageOf(problems);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->problems, 5);
  EXPECT_THAT(all->rows.back().fitted, DoubleNear(1, 0.01));
}

}  // namespace
}  // namespace assay
