#include "speed/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

BlockResult Block(int64_t time_ns) {
  BlockResult block;
  block.time_ns = time_ns;
  block.uncharged_ns = time_ns / 10;
  block.look_ns = time_ns / 100;
  return block;
}

TEST(PairBlocks, DroppedBlocksLeaveNothing) {
  PairBlocks blocks;
  blocks.Add(true, Block(1000), 0);
  blocks.Add(false, Block(2000), 5);
  blocks.Add(true, Block(3000), 0);
  blocks.DropLast(2);
  EXPECT_EQ(blocks.samples.order, "c");
  EXPECT_THAT(blocks.samples.block_ns, ElementsAre(1000));
  EXPECT_THAT(blocks.samples.settle_ns, ElementsAre(0));
  EXPECT_THAT(blocks.uncharged_ns, ElementsAre(100));
  EXPECT_THAT(blocks.look_ns, ElementsAre(10));
}

// NVML may fail at times: then there are fewer clocks than blocks.
TEST(PairBlocks, FewerClocksThanBlocksAreKept) {
  PairBlocks blocks;
  blocks.Add(true, Block(1000), 0);
  blocks.AddClock({1980, 0});
  blocks.Add(false, Block(1000), 0);
  blocks.Add(true, Block(1000), 0);
  blocks.DropLast(1);
  EXPECT_THAT(blocks.samples.sm_mhz, ElementsAre(1980));
}

TEST(Ledger, TimesOfAPairAreThoseOfItsRounds) {
  Ledger ledger;
  const RoundTimes rounds[] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}};
  ledger.AddPair({}, rounds);
  EXPECT_THAT(ledger.reference_ns, ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(ledger.candidate_ns, ElementsAre(3, 4, 7, 8));
  EXPECT_EQ(ledger.samples.size(), 1u);
}

TEST(Ledger, OneRepeatAnExchangeAndEightMore) {
  Ledger ledger;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(ledger.MustRepeat(false));
  int repeats = 0;
  while (ledger.MustRepeat(true)) ++repeats;
  // Eight, one for each of the five, and one for the exchange itself.
  EXPECT_EQ(repeats, 14);
  EXPECT_EQ(ledger.disturbances.disturbed, 1);
  EXPECT_NEAR(ledger.DisturbedShare(), 1.0 / 20, 1e-12);
}

TEST(Ledger, RepeatedExchangesAreAShareOfAll) {
  Ledger ledger;
  EXPECT_EQ(ledger.RepeatedShare(), 0);
  EXPECT_TRUE(ledger.MustRepeat(true));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(ledger.MustRepeat(false));
  EXPECT_EQ(ledger.RepeatedShare(), 0.25);
}

TEST(Ledger, APairWithoutAnUndisturbedStepCountsAsDisturbed) {
  Ledger ledger;
  ledger.samples.emplace_back();
  StepTimes times;
  times.reference_step_ns = times.candidate_step_ns = 10;
  ledger.AddSteps(times);
  EXPECT_EQ(ledger.DisturbedShare(), 0);
  EXPECT_EQ(ledger.steps.size(), 1u);
  times.candidate_step_ns = 0;
  ledger.AddSteps(times);
  EXPECT_EQ(ledger.steps.size(), 1u);
  EXPECT_EQ(ledger.DisturbedShare(), 0.5);
  EXPECT_EQ(ledger.samples.back().alone->reference_ns, 10);
}

TEST(Ledger, AHostsWordOnItsCopyIsBoundedByTheBlock) {
  Ledger ledger;
  BlockResult block = Block(1000);
  block.settle_ns = 5000;
  ledger.AddCopy(true, block, 10);
  block.settle_ns = -5;
  ledger.AddCopy(false, block, 10);
  EXPECT_THAT(ledger.candidates_copy_ns, ElementsAre(100));
  EXPECT_THAT(ledger.opponents_copy_ns, ElementsAre(0));
}

TEST(Ledger, ForgottenPairsLeaveWhatTheyCost) {
  Ledger ledger;
  const RoundTimes rounds[] = {{{1, 2}, {3, 4}}};
  ledger.AddPair({}, rounds);
  ledger.AddSteps({1, 1, 1, 1});
  ledger.launched.push_back({5, 6});
  ledger.spent.timed_ns = 7;
  ledger.checks.Count(3, 0.5);
  ledger.MustRepeat(false);
  EXPECT_EQ(ledger.Launched().candidate_ns, 6);
  ledger.ForgetPairs();
  EXPECT_THAT(ledger.reference_ns, IsEmpty());
  EXPECT_THAT(ledger.candidate_ns, IsEmpty());
  EXPECT_THAT(ledger.samples, IsEmpty());
  EXPECT_THAT(ledger.steps, IsEmpty());
  EXPECT_THAT(ledger.launched, IsEmpty());
  EXPECT_EQ(ledger.spent.timed_ns, 7);
  EXPECT_EQ(ledger.checks.calls, 3);
  EXPECT_EQ(ledger.disturbances.exchanges, 1);
}

}  // namespace
}  // namespace assay
