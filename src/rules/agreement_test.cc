// Pairs that decide before the first look, by how well they agree (rules/gate2.h).
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "rules/gate2.h"

namespace assay {
namespace {

// A noise floor of 0.005, and a clear margin of 0.2.
SpeedRule Rule() { return {1, 0.005, 0.2, 32}; }

// Pairs at the threshold without a noise floor: agreement alone decides.
TEST(Agreement, AgreementBoundIsWhatNormalPairsShow) {
  constexpr int kTrials = 200'000;
  std::mt19937_64 random(11);
  SpeedRule rule = Rule();
  rule.delta = 0;
  rule.clear_margin = 1e9;
  std::normal_distribution<double> noise(0, 1);
  double found = 0;
  for (size_t pairs = 3; pairs < 9; ++pairs)
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> values(pairs);
      for (double& value : values) value = noise(random);
      found += Decide(values, rule, true, false) == Decision::kFaster;
    }
  EXPECT_GT(AgreementBound(), 0.0003);
  EXPECT_LT(AgreementBound(), 0.00034);
  EXPECT_NEAR(found / kTrials, AgreementBound(), 4 * std::sqrt(AgreementBound() / kTrials));
}

TEST(Agreement, PairsThatAgreeDecideBeforeTheFirstLook) {
  const SpeedRule rule = Rule();
  EXPECT_EQ(Decide(std::vector{0.104, 0.106, 0.108}, rule, true, false), Decision::kFaster);
  EXPECT_EQ(Decide(std::vector{-0.104, -0.106, -0.108}, rule, true, false), Decision::kSlower);
  EXPECT_EQ(Decide(std::vector{0.104, 0.106, 0.108}, rule, false, false), Decision::kContinue);
  // Twenty times the spread is too little for three pairs, and plenty for four.
  EXPECT_EQ(Decide(std::vector{0.104, 0.106, 0.109}, rule, true, false), Decision::kContinue);
  EXPECT_EQ(Decide(std::vector{0.104, 0.106, 0.109, 0.108}, rule, true, false), Decision::kFaster);
  // Placement moves pairs that agree by this much.
  EXPECT_EQ(Decide(std::vector<double>(8, 0.0249), rule, true, false), Decision::kContinue);
  EXPECT_EQ(Decide(std::vector<double>(8, 0.0251), rule, true, false), Decision::kFaster);
}

TEST(Agreement, WhatAgreementDecidesIsCertifiedUpToItsEdge) {
  const SpeedRule rule = Rule();
  // Four pairs: five times their spread of 0.01 lies below the nearest, and the noise floor.
  EXPECT_NEAR(std::log(CertifiedSpeedup(std::vector{0.2, 0.21, 0.205, 0.208}, rule)),
              0.2 - 0.005 - 0.05, 1e-6);
  EXPECT_NEAR(std::log(CertifiedSpeedup(std::vector<double>(4, 0.2), rule)), 0.2 - 0.025, 1e-6);
}

}  // namespace
}  // namespace assay
