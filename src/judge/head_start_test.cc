#include "judge/head_start.h"

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

TEST(HeadStart, IsNoneWithoutBlocks) { EXPECT_EQ(HeadStartNs("", {}), 0); }

}  // namespace
}  // namespace assay
