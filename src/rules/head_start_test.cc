#include "rules/head_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace assay {
namespace {

TEST(HeadStart, IsWhatTheCandidateTakesLongerToWake) {
  const std::vector<int64_t> woken_ns = {70'000, 140'000, 72'000, 138'000, 71'000, 141'000};
  EXPECT_EQ(HeadStartNs("rcrcrc", woken_ns), 140'000 - 71'000 - kWakeDifferenceNs);
}

TEST(HeadStart, IsNoneWhereBothWakeAlike) {
  const std::vector<int64_t> woken_ns = {70'000, 74'000, 75'000, 71'000};
  EXPECT_EQ(HeadStartNs("rccr", woken_ns), 0);
}

TEST(HeadStart, ASlowWakingOpponentIsNoCreditToTheCandidate) {
  const std::vector<int64_t> woken_ns = {90'000, 20'000, 90'000, 20'000};
  EXPECT_EQ(HeadStartNs("rcrc", woken_ns), 0);
}

TEST(HeadStart, OneBlockThatWokeLateIsNoHeadStart) {
  const std::vector<int64_t> woken_ns = {70'000, 71'000, 70'000, 149'000, 70'000, 72'000};
  EXPECT_EQ(HeadStartNs("rcrcrc", woken_ns), 0);
}

// A host in Python whose wait for the device was taken out, at 375 us a call: it was ready sooner
// than the baseline's, and both in one sum hid two thirds of what was still running.
TEST(HeadStart, ReadyAndLookCountByThemselves) {
  const std::vector<int64_t> ready_ns = {265'000, 100'000, 262'000, 107'000},
                             look_ns = {155'000, 870'000, 158'000, 866'000},
                             both_ns = {420'000, 970'000, 420'000, 973'000};
  EXPECT_EQ(HeadStartNs("rcrc", ready_ns), 0);
  EXPECT_EQ(HeadStartNs("rcrc", look_ns), 868'000 - 156'500 - kWakeDifferenceNs);
  EXPECT_LT(HeadStartNs("rcrc", both_ns), 550'000);
  EXPECT_THAT(LookChargesNs("rcrc", look_ns), testing::Each(868'000 - 156'500 - 10'000));
}

TEST(HeadStart, WorkThatIsLeftInTheLesserPartOfTheBlocksIsChargedThere) {
  const std::vector<int64_t> look_ns = {150'000, 600'000, 150'000, 152'000, 150'000, 155'000};
  EXPECT_EQ(HeadStartNs("rcrcrc", look_ns), 0) << "the median says nothing of it";
  EXPECT_THAT(LookChargesNs("rcrcrc", look_ns),
              testing::ElementsAre(600'000 - 150'000 - kLookSpikeNs, 0, 0));
  EXPECT_THAT(LookChargesNs("rc", std::vector<int64_t>{0, 0}), testing::ElementsAre(0));
}

TEST(HeadStart, IsNoneWithoutBlocks) { EXPECT_EQ(HeadStartNs("", {}), 0); }

}  // namespace
}  // namespace assay
