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

// Packs weights when they change: as fast as it says in a block, where they do not.
TEST(Steps, WorkOnWeightsThatIsKeptShowsWhereTheyChange) {
  const StepTimes packs_once{0.69e6, 0.47e6, 0.70e6, 0.30e6, 0.71e6, 0.95e6};
  const StepTimes packs_each{0.69e6, 0.95e6, 0.70e6, 0.95e6, 0.71e6, 0.96e6};
  const StepTimes not_run{0.69e6, 0.47e6, 0.70e6, 0.30e6};
  EXPECT_THAT(KeptWork(std::vector{packs_once, packs_once, packs_each}, kStepWakeNs).value_or(""),
              HasSubstr("300 us a call, and 950 us after weights have changed"));
  EXPECT_FALSE(KeptWork(std::vector{packs_each, packs_each, packs_each}, kStepWakeNs));
  EXPECT_FALSE(KeptWork(std::vector{not_run, not_run, not_run}, kStepWakeNs));
  EXPECT_FALSE(KeptWork(std::vector{packs_once, packs_each, packs_each}, kStepWakeNs));
}

// It takes the softmax of its weights once a block, which every call alone is, too: no call with
// changed weights takes longer than one without.
TEST(Steps, OnADeviceACallThatIsFastInARowAloneIsNotTrusted) {
  const StepTimes keeps{100e3, 56e3, 130e3, 131e3}, honest{100e3, 56e3, 130e3, 90e3};
  EXPECT_FALSE(WorkedAhead(std::vector{keeps, keeps, keeps}, kStepSlowWakeNs));
  const auto gain = FasterInARow(std::vector{keeps, keeps, honest});
  ASSERT_TRUE(gain);
  EXPECT_THAT(gain->seen, HasSubstr("56 us a call in a row, and 131 us alone"));
  EXPECT_NEAR(gain->alone, 130.0 / 131, 1e-9);
  EXPECT_FALSE(FasterInARow(std::vector{honest, honest, keeps}));
  EXPECT_FALSE(FasterInARow({}));
  // Launches cost what they cost, alone: a kernel of 7 us against PyTorch's 12.
  const StepTimes short_call{12e3, 7e3, 40e3, 25e3};
  EXPECT_FALSE(FasterInARow(std::vector{short_call, short_call, short_call}));
  // Many launches, which hide behind the device in a row: what is faster alone, too, stays so.
  const StepTimes launches{300e3, 100e3, 315e3, 170e3};
  EXPECT_NEAR(FasterInARow(std::vector{launches, launches})->alone, 1.85, 0.01);
}

// New weights cost the baseline's calls 23 us on an H200, and an honest candidate's as much.
TEST(Steps, OnADeviceNewWeightsMayCostWhatTheyCostTheBaseline) {
  StepTimes honest{115e3, 40e3, 115e3, 40e3};
  honest.reference_changed_ns = 138e3;
  honest.candidate_changed_ns = 63e3;
  EXPECT_FALSE(KeptWork(std::vector{honest, honest}, kKeptOnDeviceNs, true));
  honest.candidate_changed_ns = 90e3;
  EXPECT_TRUE(KeptWork(std::vector{honest, honest}, kKeptOnDeviceNs, true));
}

// A candidate that took the softmax of its weights once a block was 2.3 times as fast on a GPU:
// what it saved, 50 us, is less than what an interpreter may take to wake.
TEST(Steps, OnADeviceWorkOnWeightsOfFiftyMicrosecondsIsSeen) {
  StepTimes keeps{90e3, 40e3, 100e3, 60e3}, honest = keeps;
  keeps.reference_changed_ns = honest.reference_changed_ns = 103e3;
  keeps.candidate_changed_ns = 110e3;
  honest.candidate_changed_ns = 63e3;
  EXPECT_TRUE(KeptWork(std::vector{keeps, keeps, keeps}, kKeptOnDeviceNs, true));
  EXPECT_FALSE(KeptWork(std::vector{keeps, keeps, keeps}, kStepSlowWakeNs));
  EXPECT_FALSE(KeptWork(std::vector{honest, honest, honest}, kKeptOnDeviceNs, true));
}

}  // namespace
}  // namespace assay
