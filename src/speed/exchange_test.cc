#include "speed/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "speed/fakes_testing.h"

namespace assay {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using wire::Results;

constexpr ExchangeTerms kWarmUp{4, 6, {true, nullptr}};
ExchangeTerms Measured(PairBlocks* blocks) { return {4, 6, {false, blocks}}; }

Forms BothLeave() {
  Forms forms;
  forms.candidate_leaves = forms.opponent_leaves = true;
  return forms;
}

TEST(RandomOrder, CallsAreDifferentSlots) {
  std::mt19937_64 random(1);
  const std::vector<uint32_t> order = RandomOrder(10, 7, random);
  EXPECT_EQ(std::set(order.begin(), order.end()).size(), 7u);
  EXPECT_THAT(order, Each(testing::Lt(10u)));
}

TEST(Exchange, MeasuredBlocksAreKeptInTheirOrder) {
  FakeGate gate;
  gate.candidate.usual.call_ns = 5e3;
  PairBlocks blocks;
  const auto times = gate.parts->exchange.Run(gate.candidate, gate.reference, Measured(&blocks));
  ASSERT_TRUE(times && *times);
  EXPECT_EQ((*times)->call.reference_ns, 10e3);
  EXPECT_EQ((*times)->call.candidate_ns, 5e3);
  EXPECT_EQ(blocks.samples.order, "cr");
  EXPECT_THAT(blocks.samples.block_ns, ElementsAre(20'000, 40'000));
  EXPECT_EQ(gate.parts->ledger.checks.calls, 4);
  EXPECT_EQ(gate.parts->ledger.spent.timed_ns, 60'000);
}

// The opponent's outputs are read after each block, and compared in blocks that do not count.
TEST(Exchange, TheOpponentIsCheckedInWarmUpAlone) {
  FakeGate gate;
  PairBlocks blocks;
  ASSERT_TRUE(gate.parts->exchange.Run(gate.candidate, gate.reference, Measured(&blocks)));
  EXPECT_EQ(gate.reference.checks, 0);
  ASSERT_TRUE(gate.parts->exchange.Run(gate.candidate, gate.reference, kWarmUp));
  EXPECT_EQ(gate.reference.checks, 1);
  EXPECT_EQ(gate.reference.reads, 2);
  EXPECT_EQ(gate.parts->ledger.checks.calls, 8);
}

// A candidate cannot work in its opponent's block on values that it gets later.
TEST(Exchange, EachSideGetsValuesOfItsOwnBeforeItsBlock) {
  FakeGate gate;
  ASSERT_TRUE(gate.parts->exchange.Run(gate.reference, gate.candidate, kWarmUp));
  EXPECT_THAT(gate.inputs.fills, ElementsAre(ValuesFor::kOpponent, ValuesFor::kCandidate));
  EXPECT_THAT(gate.reference.masters, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(gate.candidate.masters, ElementsAre(7, 8, 9, 10, 11, 12));
}

// Values of a void block may have been seen: neither side gets them again.
TEST(Exchange, BothSidesGetNewValuesAfterAVoidBlock) {
  FakeGate gate;
  gate.reference.script = {{.call_ns = 1, .is_void = true}};
  PairBlocks blocks;
  const auto times = gate.parts->exchange.Run(gate.candidate, gate.reference, Measured(&blocks));
  ASSERT_TRUE(times && *times);
  EXPECT_EQ(gate.inputs.fills.size(), 4u);
  EXPECT_EQ(blocks.samples.order, "cr");
  EXPECT_EQ(blocks.uncharged_ns.size(), 2u);
  EXPECT_EQ(gate.candidate.modes.size(), 2u);
  EXPECT_THAT(gate.candidate.masters, ElementsAre(13, 14, 15, 16, 17, 18));
  // Nothing was disturbed, so nothing counts as repeated.
  EXPECT_EQ(gate.parts->ledger.disturbances.exchanges, 1);
}

TEST(Exchange, AVoidFirstBlockLeavesNothing) {
  FakeGate gate;
  gate.candidate.script = {{.is_void = true}};
  PairBlocks blocks;
  ASSERT_TRUE(gate.parts->exchange.Run(gate.candidate, gate.reference, Measured(&blocks)));
  EXPECT_EQ(gate.inputs.fills.size(), 3u);
  EXPECT_EQ(blocks.samples.order, "cr");
  EXPECT_EQ(gate.reference.modes.size(), 1u);
}

TEST(Exchange, ADisturbedExchangeIsRepeatedOnNewValues) {
  FakeGate gate;
  gate.candidate.script = {{.call_ns = 999e3, .waited_ns = 50'000'000}};
  PairBlocks blocks;
  const auto times = gate.parts->exchange.Run(gate.reference, gate.candidate, Measured(&blocks));
  ASSERT_TRUE(times && *times);
  EXPECT_EQ((*times)->call.candidate_ns, 10e3);
  EXPECT_EQ(blocks.samples.order, "rc");
  EXPECT_THAT(blocks.samples.block_ns, ElementsAre(40'000, 40'000));
  EXPECT_EQ(gate.inputs.fills.size(), 4u);
  EXPECT_EQ(gate.parts->ledger.disturbances.repeated, 1);
  EXPECT_EQ(gate.parts->ledger.disturbances.disturbed, 0);
}

TEST(Exchange, OtherWorkOfTheDeviceDisturbs) {
  FakeGate gate;
  gate.inputs.busy = true;
  PairBlocks blocks;
  ASSERT_TRUE(gate.parts->exchange.Run(gate.reference, gate.candidate, Measured(&blocks)));
  EXPECT_EQ(gate.parts->ledger.disturbances.repeated, 1);
}

// On a machine that is busy all the time an exchange counts at last, as disturbed.
TEST(Exchange, RepeatsRunOut) {
  FakeGate gate;
  gate.candidate.usual.waited_ns = 50'000'000;
  PairBlocks blocks;
  const auto times = gate.parts->exchange.Run(gate.reference, gate.candidate, Measured(&blocks));
  ASSERT_TRUE(times && *times);
  EXPECT_TRUE((*times)->disturbed);
  EXPECT_EQ(blocks.samples.order, "rc");
  EXPECT_EQ(gate.parts->ledger.disturbances.repeated, 9);
  EXPECT_EQ(gate.parts->ledger.disturbances.disturbed, 1);
  EXPECT_EQ(gate.inputs.fills.size(), 20u);
}

// Only measured exchanges are repeated.
TEST(Exchange, ADisturbedWarmUpCounts) {
  FakeGate gate;
  gate.candidate.usual.waited_ns = 50'000'000;
  ASSERT_TRUE(gate.parts->exchange.Run(gate.reference, gate.candidate, kWarmUp));
  EXPECT_EQ(gate.inputs.fills.size(), 2u);
  EXPECT_EQ(gate.parts->ledger.disturbances.exchanges, 0);
}

TEST(Exchange, AWrongCallOfTheCandidateEndsIt) {
  FakeGate gate;
  gate.candidate.usual.wrong = true;
  PairBlocks blocks;
  const auto times = gate.parts->exchange.Run(gate.candidate, gate.reference, Measured(&blocks));
  ASSERT_TRUE(times);
  EXPECT_FALSE(*times);
  ASSERT_TRUE(gate.parts->ledger.checks.wrong);
  EXPECT_EQ(gate.parts->ledger.checks.wrong->hint, "element 0 is off");
  EXPECT_EQ(gate.parts->ledger.checks.error_ratio, 100);
}

TEST(Exchange, AWrongOpponentIsTroubleOfItsOwn) {
  FakeGate gate;
  gate.reference.usual.wrong = true;
  const auto times = gate.parts->exchange.Run(gate.candidate, gate.reference, kWarmUp);
  ASSERT_FALSE(times);
  EXPECT_TRUE(times.error().of_opponent);
  EXPECT_THAT(times.error().message, HasSubstr("element 0 is off"));
  EXPECT_FALSE(gate.parts->ledger.checks.wrong);
}

// A static buffer: all calls but the last are wrong where results were left.
TEST(Exchange, ResultsThatLaterCallsWroteOverAreCopiedFromNowOn) {
  FakeGate gate(BothLeave());
  gate.candidate.script = {{.wrong = true}};
  const auto times = gate.parts->exchange.Run(gate.candidate, gate.reference, kWarmUp);
  ASSERT_TRUE(times && *times);
  EXPECT_TRUE(gate.parts->copies.candidate_copies());
  EXPECT_EQ(gate.candidate.uncounted, 1);
  EXPECT_EQ(gate.inputs.fills.size(), 3u);
  EXPECT_THAT(gate.candidate.modes, ElementsAre(Field(&BlockMode::results, Results::kLeft),
                                                Field(&BlockMode::results, Results::kIntoSlots)));
  // Nothing is held against it.
  EXPECT_FALSE(gate.parts->ledger.checks.wrong);
  EXPECT_EQ(gate.parts->ledger.checks.error_ratio, 0.1);
  EXPECT_FALSE(gate.parts->copies.both_copy());
}

TEST(Exchange, BothCopyIfTheOpponentWroteOverItsResults) {
  FakeGate gate(BothLeave());
  gate.reference.script = {{.wrong = true}};
  ASSERT_TRUE(gate.parts->exchange.Run(gate.candidate, gate.reference, kWarmUp));
  EXPECT_TRUE(gate.parts->copies.both_copy());
  EXPECT_EQ(gate.candidate.modes.back().results, Results::kIntoSlots);
}

// A wrong candidate that leaves its results is not to pass for one that uses their memory again.
TEST(Exchange, WhoIsWrongInSlotsIsWrong) {
  FakeGate gate(BothLeave());
  gate.candidate.usual.wrong = true;
  gate.candidate.wrong_in_slots = true;
  const auto times = gate.parts->exchange.Run(gate.candidate, gate.reference, kWarmUp);
  ASSERT_TRUE(times);
  EXPECT_FALSE(*times);
  EXPECT_TRUE(gate.parts->ledger.checks.wrong);
}

TEST(Exchange, AWrongLastCallIsNoReusedMemory) {
  FakeGate gate(BothLeave());
  gate.candidate.usual.wrong = gate.candidate.usual.last_wrong = true;
  const auto times = gate.parts->exchange.Run(gate.candidate, gate.reference, kWarmUp);
  ASSERT_TRUE(times);
  EXPECT_FALSE(*times);
  EXPECT_FALSE(gate.parts->copies.candidate_copies());
  EXPECT_EQ(gate.candidate.uncounted, 0);
}

TEST(Exchange, StrayWritesAreNoReusedMemory) {
  FakeGate gate(BothLeave());
  gate.candidate.usual.wrong = true;
  gate.candidate.astray = true;
  const auto times = gate.parts->exchange.Run(gate.candidate, gate.reference, kWarmUp);
  ASSERT_TRUE(times);
  EXPECT_FALSE(*times);
  EXPECT_FALSE(gate.parts->copies.candidate_copies());
}

// In blocks that count it is too late.
TEST(Exchange, AMeasuredBlockThatIsWrongIsWrong) {
  FakeGate gate(BothLeave());
  gate.candidate.usual.wrong = true;
  PairBlocks blocks;
  const auto times = gate.parts->exchange.Run(gate.candidate, gate.reference, Measured(&blocks));
  ASSERT_TRUE(times);
  EXPECT_FALSE(*times);
  EXPECT_FALSE(gate.parts->copies.candidate_copies());
}

// The addresses that a host gives overlap: its block is void.
TEST(Exchange, OverlappingResultsAreCopiedFromNowOn) {
  FakeGate gate(BothLeave());
  gate.candidate.script = {{.must_copy = true}};
  PairBlocks blocks;
  ASSERT_TRUE(gate.parts->exchange.Run(gate.reference, gate.candidate, Measured(&blocks)));
  EXPECT_TRUE(gate.parts->copies.candidate_copies());
  EXPECT_EQ(gate.inputs.fills.size(), 4u);
  EXPECT_EQ(blocks.samples.order, "rc");
}

TEST(Exchange, ABlockThatIsNoReplayIsNoted) {
  Forms forms;
  forms.may_replay = true;
  FakeGate gate(forms);
  gate.parts->replays.Start();
  gate.reference.usual.missed = true;
  ASSERT_TRUE(gate.parts->exchange.Run(gate.candidate, gate.reference, kWarmUp));
  EXPECT_TRUE(gate.candidate.modes.back().replay);
  EXPECT_TRUE(gate.parts->replays.missed());
}

}  // namespace
}  // namespace assay
