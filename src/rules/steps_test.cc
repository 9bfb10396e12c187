#include "rules/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace assay {
namespace {

using ::testing::HasSubstr;

// Sixteen calls of a layer whose weights take 4 ms to read, computed in the first of them.
const StepTimes kSuperBatch{4.2e6, 0.4e6, 4.3e6, 4.1e6};

TEST(ShortestStep, OneThatWaitedForACoreTellsNothing) {
  // An honest copy on a busy machine: 6.61 us a call in a row, and every step but one waited. It
  // was accused of working ahead.
  ShortestStep shortest;
  shortest.Add(3.79e6, true);
  EXPECT_EQ(shortest.time_ns(), 0);
  shortest.Add(7.2e3, false);
  shortest.Add(9.1e3, false);
  shortest.Add(5.0e3, true);
  EXPECT_EQ(shortest.time_ns(), 7.2e3);
}

TEST(Steps, ACallThatIsSlowAloneAndFastInARowWorksAhead) {
  EXPECT_TRUE(WorksAhead(kSuperBatch, kStepWakeNs));
  EXPECT_TRUE(WorksAhead(kSuperBatch, kStepSlowWakeNs));
}

// As it was seen: sixteen rows at a time, of weights that lie in a cache.
TEST(Steps, ABatchThatSavesAThirdIsSeen) {
  EXPECT_TRUE(WorksAhead({411.6e3, 110.7e3, 498.9e3, 174.2e3}, kStepWakeNs));
  EXPECT_TRUE(WorksAhead({440.2e3, 113.4e3, 433.7e3, 157.5e3}, kStepWakeNs));
}

TEST(Steps, AHonestKernelIsAsFastAlone) {
  EXPECT_FALSE(WorksAhead({4.2e6, 2.0e6, 4.3e6, 2.1e6}, kStepWakeNs));
  EXPECT_FALSE(WorksAhead({4.2e6, 2.0e6, 4.3e6, 2.4e6}, kStepWakeNs));
}

TEST(Steps, WhatWakingCostsIsNoWorkAhead) {
  EXPECT_FALSE(WorksAhead({25e3, 2e3, 30e3, 25e3}, kStepWakeNs, 1.2));
  EXPECT_TRUE(WorksAhead({25e3, 2e3, 30e3, 40e3}, kStepWakeNs));
  EXPECT_FALSE(WorksAhead({250e3, 40e3, 260e3, 190e3}, kStepSlowWakeNs))
      << "a pool of threads that fell asleep";
}

// A baseline whose weights stay in the caches in a row, too: both sides find them cold alone.
TEST(Steps, WhatSlowsTheBaselineAloneIsAllowed) {
  const StepTimes both{1e6, 0.5e6, 3.5e6, 2.0e6}, candidate_alone{1e6, 0.5e6, 1e6, 2.0e6};
  EXPECT_FALSE(WorkedAhead(std::vector{both, both, both}, kStepWakeNs));
  EXPECT_TRUE(WorkedAhead(std::vector{both, candidate_alone, both}, kStepWakeNs))
      << "what slowed the baseline in two pairs was noise";
}

// An honest candidate in Python was called a cheat: its interpreter's caches were cold alone.
TEST(Steps, AnInterpreterThatWakesIsNoWorkAhead) {
  EXPECT_FALSE(WorksAhead({946e3, 131e3, 955e3, 187e3}, kStepSlowWakeNs));
}

TEST(Steps, MostPairsMustShowIt) {
  const StepTimes honest{4.2e6, 2.0e6, 4.3e6, 2.1e6};
  EXPECT_THAT(
      WorkedAhead(std::vector{kSuperBatch, kSuperBatch, kSuperBatch}, kStepWakeNs).value_or(""),
      HasSubstr("ahead of their turn"));
  EXPECT_TRUE(WorkedAhead(std::vector{honest, kSuperBatch, kSuperBatch}, kStepWakeNs))
      << "one was disturbed";
  EXPECT_FALSE(WorkedAhead(std::vector{kSuperBatch, honest, honest}, kStepWakeNs));
  EXPECT_FALSE(WorkedAhead(std::vector{kSuperBatch}, kStepWakeNs));
  EXPECT_FALSE(WorkedAhead({}, kStepWakeNs));
}

// Calls handed over rows of one tensor, all of which the last call of a block computed: 8.2x.
TEST(Steps, AWinOfShortCallsMustHoldForCallsAlone) {
  const StepTimes lazy{60e3, 7e3, 66e3, 65e3};
  EXPECT_FALSE(WorkedAhead(std::vector{lazy, lazy, lazy}, kStepSlowWakeNs));
  EXPECT_NEAR(FasterInARow(std::vector{lazy, lazy, lazy}, kAloneNs, 1.05)->alone, 1.02, 0.01);
  // A call that is shorter than what it may lose alone.
  const StepTimes lazy_and_short{9e3, 1e3, 12e3, 12e3}, honest_and_short{9e3, 1e3, 12e3, 8e3};
  EXPECT_TRUE(FasterInARow(std::vector{lazy_and_short, lazy_and_short}, kAloneNs, 1.05));
  EXPECT_FALSE(FasterInARow(std::vector{honest_and_short, honest_and_short}, kAloneNs, 1.05));
  EXPECT_TRUE(FasterInARow(std::vector{honest_and_short, honest_and_short}, kAloneNs, 1.6));
}

// It does once a block what every call alone must do, too.
TEST(Steps, OnADeviceACallThatIsFastInARowAloneIsNotTrusted) {
  const StepTimes keeps{100e3, 56e3, 130e3, 131e3}, honest{100e3, 56e3, 130e3, 90e3};
  EXPECT_FALSE(WorkedAhead(std::vector{keeps, keeps, keeps}, kStepSlowWakeNs));
  const auto gain = FasterInARow(std::vector{keeps, keeps, honest}, kAloneOnDeviceNs, 1.05);
  ASSERT_TRUE(gain);
  EXPECT_THAT(gain->seen, HasSubstr("56 us a call in a row, and 131 us alone"));
  EXPECT_NEAR(gain->alone, 130.0 / 131, 1e-9);
  EXPECT_FALSE(FasterInARow(std::vector{honest, honest, keeps}, kAloneOnDeviceNs, 1.05));
  EXPECT_FALSE(FasterInARow({}, kAloneOnDeviceNs, 1.05));
  // Launches cost what they cost, alone: a kernel of 7 us against PyTorch's 12.
  const StepTimes short_call{12e3, 7e3, 40e3, 25e3};
  EXPECT_FALSE(
      FasterInARow(std::vector{short_call, short_call, short_call}, kAloneOnDeviceNs, 1.05));
  // Many launches, which hide behind the device in a row: what is faster alone, too, stays so.
  const StepTimes launches{300e3, 100e3, 315e3, 170e3};
  EXPECT_NEAR(FasterInARow(std::vector{launches, launches}, kAloneOnDeviceNs, 1.05)->alone, 1.85,
              0.01);
}

}  // namespace
}  // namespace assay
