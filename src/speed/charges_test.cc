#include "speed/charges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// ABBA; the candidate takes 50 us longer from waking to ready.
PairBlocks LateCandidate() {
  PairBlocks blocks;
  for (const char side : {'r', 'c', 'c', 'r'}) {
    BlockResult block;
    block.time_ns = 1'000'000;
    block.uncharged_ns = side == 'c' ? 80'000 : 30'000;
    blocks.Add(side == 'c', block, 0);
  }
  return blocks;
}

TEST(ChargesNs, AHostThatIsReadyLateIsChargedTheExcess) {
  const PairBlocks blocks = LateCandidate();
  EXPECT_THAT(ChargesNs(blocks, WakeExcessNs(blocks, {})), ElementsAre(40'000, 40'000));
}

// Hosts wake within 50 us or so of each other, and a pair has six blocks a side: charged by each
// pair alone, copies looked 0.5% slower in calls of 2.7 ms.
TEST(WakeExcessNs, IsTheMedianOfThePairs) {
  EXPECT_EQ(WakeExcessNs(LateCandidate(), {}), 50'000);
  EXPECT_EQ(WakeExcessNs(LateCandidate(), {-30'000, 4'000}), 4'000);
  EXPECT_EQ(WakeExcessNs(LateCandidate(), {48'000, 55'000, -20'000, 52'000}), 50'000);
}

TEST(ChargesNs, AHostWithoutForeignCodeMayWakeAsItLikes) {
  EXPECT_THAT(ChargesNs(LateCandidate(), std::nullopt), ElementsAre(0, 0));
}

TEST(Charge, BlocksAndCallsGetLonger) {
  PairBlocks blocks = LateCandidate();
  std::vector<RoundTimes> rounds = {{{100, 100}, {100, 100}}};
  Charge({40'000, 20'000}, 1000, &blocks.samples, &rounds);
  EXPECT_THAT(blocks.samples.block_ns, ElementsAre(1'000'000, 1'040'000, 1'020'000, 1'000'000));
  EXPECT_THAT(blocks.samples.charged_ns, ElementsAre(0, 40'000, 20'000, 0));
  EXPECT_EQ(rounds[0].candidate_ns[0], 140);
  EXPECT_EQ(rounds[0].candidate_ns[1], 120);
  EXPECT_EQ(rounds[0].reference_ns[0], 100);
}

TEST(Charge, NothingIsRecordedWithoutACharge) {
  PairBlocks blocks = LateCandidate();
  std::vector<RoundTimes> rounds = {{{100, 100}, {100, 100}}};
  Charge({0, 0}, 1000, &blocks.samples, &rounds);
  EXPECT_THAT(blocks.samples.charged_ns, IsEmpty());
}

}  // namespace
}  // namespace assay
