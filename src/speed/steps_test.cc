#include "speed/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "speed/fakes_testing.h"

namespace assay {
namespace {

// Steps of both sides in a gate whose pair is added.
struct StepGate : FakeGate {
  StepGate() {
    SetLengthOf(100);
    parts->ledger.samples.emplace_back();
  }
  void SetLengthOf(uint32_t calls) { parts->length = LengthOf(calls, inputs.limits); }
  HostResult<bool> Run() { return RunSteps(*parts, facts, reference, candidate); }

  PairFacts facts{{10e3, 10e3}, 0, std::nullopt};
};

TEST(RunSteps, TheShortestOfFiveCounts) {
  StepGate gate;
  gate.candidate.script = {{.call_ns = 30e3}, {.call_ns = 20e3}};
  gate.candidate.usual.call_ns = 25e3;
  const auto right = gate.Run();
  ASSERT_TRUE(right && *right);
  EXPECT_THAT(gate.candidate.call_counts, testing::ElementsAre(1, 1, 1, 1, 1));
  ASSERT_EQ(gate.parts->ledger.steps.size(), 1u);
  EXPECT_EQ(gate.parts->ledger.steps[0].candidate_step_ns, 20e3);
  EXPECT_EQ(gate.parts->ledger.steps[0].candidate_row_ns, 10e3);
  EXPECT_EQ(gate.parts->ledger.samples[0].alone->candidate_ns, 20'000);
}

TEST(RunSteps, DisturbedAndVoidStepsDoNotCount) {
  StepGate gate;
  gate.candidate.script = {{.call_ns = 1e3, .waited_ns = 50'000'000}, {.is_void = true}};
  ASSERT_TRUE(gate.Run());
  EXPECT_EQ(gate.parts->ledger.steps[0].candidate_step_ns, 10e3);
}

// A candidate that works ahead while it wakes, before a block of one call alone, hides a batch.
TEST(RunSteps, AStepPaysForItsWaking) {
  StepGate gate;
  gate.facts.wake_free_ns = 40'000;
  gate.candidate.usual = {.call_ns = 1e3, .uncharged_ns = 90'000};
  gate.reference.usual.uncharged_ns = 90'000;
  ASSERT_TRUE(gate.Run());
  EXPECT_EQ(gate.parts->ledger.steps[0].candidate_step_ns, 51e3);
  EXPECT_EQ(gate.parts->ledger.steps[0].reference_step_ns, 10e3);
}

TEST(RunSteps, TheJudgesOwnCodeWakesForNothing) {
  StepGate gate;
  gate.candidate.usual.uncharged_ns = 90'000;
  ASSERT_TRUE(gate.Run());
  EXPECT_EQ(gate.parts->ledger.steps[0].candidate_step_ns, 10e3);
}

TEST(RunSteps, APairWithoutAnUndisturbedStepIsNoted) {
  StepGate gate;
  gate.reference.usual.waited_ns = 50'000'000;
  ASSERT_TRUE(gate.Run());
  EXPECT_TRUE(gate.parts->ledger.steps.empty());
  EXPECT_EQ(gate.parts->ledger.DisturbedShare(), 1);
}

TEST(RunSteps, AWrongStepIsAWrongCall) {
  StepGate gate;
  gate.candidate.script = {{}, {.last_wrong = true}};
  const auto right = gate.Run();
  ASSERT_TRUE(right);
  EXPECT_FALSE(*right);
  EXPECT_TRUE(gate.parts->ledger.checks.wrong);
  EXPECT_EQ(gate.parts->ledger.disturbances.pairs_stepped, 0);
}

TEST(RunSteps, OneCallsSlotsBoundTheSteps) {
  StepGate gate;
  gate.SetLengthOf(2);
  ASSERT_TRUE(gate.Run());
  EXPECT_EQ(gate.candidate.modes.size(), 3u);
}

}  // namespace
}  // namespace assay
