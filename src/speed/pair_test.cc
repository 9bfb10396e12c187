#include "speed/pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "speed/fakes_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;

HostResult<PairOutcome> Measure(FakeGate& gate) {
  return MeasurePair(*gate.parts, gate.reference, gate.candidate, [] {});
}

void LayOut(FakeGate& gate, uint32_t calls) {
  SetLength(*gate.parts, LengthOf(calls, gate.inputs.limits));
}

TEST(MeasurePair, ItsLogRatioIsThatOfTheTimes) {
  FakeGate gate;
  LayOut(gate, 500);
  gate.candidate.usual.call_ns = 5e3;
  const auto outcome = Measure(gate);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, PairEnd::kGood);
  EXPECT_NEAR(outcome->log_ratio, std::log(2), 1e-9);
  EXPECT_EQ(outcome->row.candidate_ns, 5e3);
  const Ledger& ledger = gate.parts->ledger;
  ASSERT_EQ(ledger.samples.size(), 1u);
  EXPECT_EQ(ledger.samples[0].order.size(), 4u * static_cast<size_t>(ledger.rounds));
  ASSERT_EQ(ledger.steps.size(), 1u);
  EXPECT_EQ(ledger.steps[0].candidate_step_ns, 5e3);
}

TEST(MeasurePair, AWrongTimedCallEndsIt) {
  FakeGate gate;
  LayOut(gate, 250);
  gate.candidate.usual.wrong = true;
  const auto outcome = Measure(gate);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, PairEnd::kWrong);
  EXPECT_TRUE(gate.parts->ledger.checks.wrong);
  EXPECT_TRUE(gate.parts->ledger.samples.empty());
}

TEST(MeasurePair, BlocksGrowInTheSameHosts) {
  FakeGate gate;
  LayOut(gate, 20);
  const auto outcome = Measure(gate);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, PairEnd::kGood);
  EXPECT_EQ(gate.parts->length.calls, 250u);
  EXPECT_EQ(gate.parts->call_ns, 10e3);
  EXPECT_EQ(gate.inputs.prepared, gate.parts->length.slots);
  EXPECT_EQ(gate.candidate.entered, 1);
  EXPECT_EQ(gate.reference.entered, 1);
}

// A candidate that dawdles until its calls are counted out.
TEST(MeasurePair, APairOfShortBlocksIsForgotten) {
  FakeGate gate;
  LayOut(gate, 25);
  // As long as blocks do not count.
  FakeGate warm;
  LayOut(warm, 25);
  warm.candidate.usual.call_ns = warm.reference.usual.call_ns = 100e3;
  ASSERT_TRUE(WarmUpPair(*warm.parts, warm.candidate, warm.reference, [] {}));
  gate.candidate.script.assign(warm.candidate.modes.size(), {.call_ns = 100e3});
  gate.reference.usual.call_ns = 100e3;
  const auto outcome = Measure(gate);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, PairEnd::kTooShort);
  EXPECT_EQ(gate.parts->length.calls, 250u);
  EXPECT_TRUE(gate.parts->ledger.samples.empty());
  EXPECT_TRUE(gate.parts->ledger.reference_ns.empty());
}

TEST(MeasurePair, ShortBlocksCountOnceTheBudgetIsSpent) {
  FakeGate gate;
  LayOut(gate, 20);
  gate.budget = Deadline::AfterSeconds(0);
  const auto outcome = Measure(gate);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, PairEnd::kGood);
  EXPECT_EQ(gate.parts->length.calls, 20u);
}

Forms DeviceForms() {
  Forms forms;
  forms.may_replay = true;
  forms.foreign_code = false;
  return forms;
}

// Short calls on a device, in blocks of 96.
struct ReplayGate : FakeGate {
  ReplayGate() : FakeGate(DeviceForms(), {true, 4096, 4096, 0}) {
    SetLength(*parts, LengthOf(96, inputs.limits));
  }
};

TEST(MeasurePair, TheFirstPairDecidesThatBlocksAreReplays) {
  ReplayGate gate;
  const auto outcome = Measure(gate);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, PairEnd::kGood);
  EXPECT_TRUE(gate.parts->replays.settled());
  EXPECT_FALSE(gate.parts->replays.replaying());
  EXPECT_EQ(gate.parts->ledger.launched.size(), 1u);
  EXPECT_TRUE(gate.candidate.modes.back().replay);
  ASSERT_TRUE(Measure(gate));
  EXPECT_EQ(gate.parts->ledger.launched.size(), 2u);
}

TEST(MeasurePair, AHostThatNeverReplaysIsLaunched) {
  ReplayGate gate;
  gate.reference.usual.missed = true;
  const auto outcome = Measure(gate);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, PairEnd::kGood);
  EXPECT_FALSE(gate.parts->replays.settled());
  EXPECT_TRUE(gate.parts->replays.given_up());
  EXPECT_FALSE(gate.candidate.modes.back().replay);
  EXPECT_TRUE(gate.parts->ledger.launched.empty());
}

// A call of many launches beside a kernel of one, in blocks of one call.
TEST(MeasurePair, LongCallsAreReplayedIfThatShowsTheirWork) {
  ReplayGate gate;
  LayOut(gate, 1);
  gate.reference.usual = {.call_ns = 1.76e6, .replayed_ns = 0.91e6};
  gate.candidate.usual = {.call_ns = 1.57e6};
  const auto outcome = Measure(gate);
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(gate.parts->replays.settled());
  EXPECT_NEAR(outcome->log_ratio, std::log(0.91 / 1.57), 1e-9);
}

TEST(MeasurePair, LongCallsAreLaunchedIfTheirLaunchesDoNotShow) {
  ReplayGate gate;
  LayOut(gate, 1);
  gate.reference.usual.call_ns = gate.candidate.usual.call_ns = 2e6;
  ASSERT_TRUE(Measure(gate));
  EXPECT_FALSE(gate.parts->replays.settled());
  EXPECT_FALSE(gate.parts->replays.given_up());
  EXPECT_FALSE(gate.candidate.modes.back().replay);
}

// Pairs of replays and pairs of launched calls are never in one verdict.
TEST(MeasurePair, AMissedReplayStartsOver) {
  ReplayGate gate;
  ASSERT_TRUE(Measure(gate));
  ASSERT_EQ(gate.parts->ledger.samples.size(), 1u);
  gate.reference.usual.missed = true;
  auto outcome = Measure(gate);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, PairEnd::kStartsOver);
  EXPECT_TRUE(gate.parts->ledger.samples.empty());
  EXPECT_TRUE(gate.parts->ledger.launched.empty());
  outcome = Measure(gate);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, PairEnd::kGood);
  EXPECT_FALSE(gate.candidate.modes.back().replay);
}

// It missed in a step, after its pair was added.
TEST(MeasurePair, AReplayThatIsMissedLateStartsOver) {
  ReplayGate gate;
  ASSERT_TRUE(Measure(gate));
  const size_t blocks = gate.reference.modes.size();
  ReplayGate late;
  late.reference.script.assign(blocks - 1, {});
  late.reference.script.push_back({.missed = true});
  const auto outcome = Measure(late);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, PairEnd::kStartsOver);
  EXPECT_TRUE(late.parts->ledger.samples.empty());
}

TEST(MeasurePair, AReferenceThatFailsAsAGraphIsLaunched) {
  ReplayGate gate;
  ReplayGate probe;
  // Its outputs are wrong in the first replay alone.
  probe.parts->replays.BeginTry();
  ASSERT_TRUE(WarmUpPair(*probe.parts, probe.candidate, probe.reference, [] {}));
  const size_t before = probe.reference.modes.size() + 1;  // one is timed as launched
  gate.reference.script.assign(before, {});
  gate.reference.script.push_back({.wrong = true});
  const auto outcome = Measure(gate);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->end, PairEnd::kGood);
  EXPECT_FALSE(gate.parts->replays.settled());
}

TEST(MeasurePair, ALaterFailureAsAGraphNamesTheWayOut) {
  ReplayGate gate;
  ASSERT_TRUE(Measure(gate));
  ReplayGate probe;
  probe.parts->replays.BeginTry();
  ASSERT_TRUE(WarmUpPair(*probe.parts, probe.candidate, probe.reference, [] {}));
  gate.reference.script.assign(probe.reference.modes.size() + 1, {});
  gate.reference.script.push_back({.wrong = true});
  const auto outcome = Measure(gate);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("--no-replay"));
}

}  // namespace
}  // namespace assay
