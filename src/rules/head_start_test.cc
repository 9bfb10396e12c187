#include "rules/head_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace assay {
namespace {

using testing::Each;
using testing::ElementsAre;

std::vector<int64_t> ChargesOfOnePair(std::string_view order,
                                      const std::vector<int64_t>& woken_ns) {
  return WakeChargesNs(order, woken_ns, MedianExcessNs(order, woken_ns));
}

TEST(HeadStart, IsWhatTheCandidateTakesLongerToWake) {
  const std::vector<int64_t> woken_ns = {70'000, 140'000, 72'000, 138'000, 71'000, 141'000};
  EXPECT_THAT(ChargesOfOnePair("rcrcrc", woken_ns), Each(140'000 - 71'000 - kWakeDifferenceNs));
}

TEST(HeadStart, IsNoneWhereBothWakeAlike) {
  EXPECT_THAT(ChargesOfOnePair("rccr", std::vector<int64_t>{70'000, 74'000, 75'000, 71'000}),
              Each(0));
}

TEST(HeadStart, ASlowWakingOpponentIsNoCreditToTheCandidate) {
  EXPECT_THAT(ChargesOfOnePair("rcrc", std::vector<int64_t>{90'000, 20'000, 90'000, 20'000}),
              Each(0));
}

TEST(HeadStart, IsThatOfThePairsSoFar) {
  const std::vector<int64_t> woken_ns = {70'000, 90'000, 72'000, 91'000};
  EXPECT_THAT(WakeChargesNs("rcrc", woken_ns, 1'000), Each(0));
  EXPECT_THAT(WakeChargesNs("rcrc", woken_ns, 25'000), Each(15'000));
}

// A candidate that worked ahead in a little under half of its blocks was charged nothing, since
// only medians were looked at: it was 'faster' by 1.3 to 1.4.
TEST(HeadStart, ALateBlockPaysForItself) {
  const std::vector<int64_t> woken_ns = {70'000, 71'000, 72'000, 649'000, 71'000, 72'000};
  EXPECT_THAT(ChargesOfOnePair("rcrcrc", woken_ns),
              ElementsAre(0, 649'000 - 71'000 - kWakeSpikeNs, 0));
}

TEST(HeadStart, AsLateAsTheOpponentsOwnBlocksIsFree) {
  const std::vector<int64_t> woken_ns = {70'000, 71'000, 190'000, 205'000, 180'000, 72'000};
  EXPECT_THAT(ChargesOfOnePair("rcrcrc", woken_ns), Each(0));
}

// A host in Python whose wait for the device was taken out, at 375 us a call: it was ready sooner
// than the baseline's, and both in one sum hid two thirds of what was still running.
TEST(HeadStart, ReadyAndLookCountByThemselves) {
  const std::vector<int64_t> ready_ns = {265'000, 100'000, 262'000, 107'000},
                             look_ns = {155'000, 870'000, 158'000, 866'000},
                             both_ns = {420'000, 970'000, 420'000, 973'000};
  EXPECT_THAT(ChargesOfOnePair("rcrc", ready_ns), Each(0));
  EXPECT_THAT(ChargesOfOnePair("rcrc", both_ns), Each(testing::Lt(550'000)));
  EXPECT_THAT(LookChargesNs("rcrc", look_ns), Each(868'000 - 156'500 - kWakeDifferenceNs));
}

TEST(HeadStart, WorkThatIsLeftInTheLesserPartOfTheBlocksIsChargedThere) {
  const std::vector<int64_t> look_ns = {150'000, 600'000, 150'000, 152'000, 150'000, 155'000};
  EXPECT_THAT(LookChargesNs("rcrcrc", look_ns),
              ElementsAre(600'000 - 150'000 - kLookSpikeNs, 0, 0));
  EXPECT_THAT(LookChargesNs("rc", std::vector<int64_t>{0, 0}), ElementsAre(0));
}

TEST(HeadStart, IsNoneWithoutBlocks) { EXPECT_TRUE(ChargesOfOnePair("", {}).empty()); }

}  // namespace
}  // namespace assay
