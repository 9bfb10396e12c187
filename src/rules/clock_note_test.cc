#include "rules/clock_note.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

std::vector<PairSamples> Pairs(std::vector<int> sm_mhz, std::vector<std::string> limits = {}) {
  return {{"eager", "rccr", {4, 4, 4, 4}, {0, 0, 0, 0}, std::move(sm_mhz), std::move(limits)}};
}

TEST(ClockNote, NothingIsSaidOfAClockThatStands) {
  EXPECT_EQ(ClockNote(Pairs({1980, 1980, 1965, 1980}), "eager"), "");
  EXPECT_EQ(ClockNote({}, "eager"), "");
}

TEST(ClockNote, NothingIsKnownWithoutNvml) {
  EXPECT_EQ(ClockNote(Pairs({}), "eager"), "");
  EXPECT_EQ(ClockNote(Pairs({1980, 1200}), "eager"), "");  // of some blocks only
}

TEST(ClockNote, SidesUnderDifferentClocksAreTold) {
  EXPECT_EQ(ClockNote(Pairs({1980, 1755, 1755, 1980}, {"power cap"}), "eager"),
            "the GPU's clock was 1755 MHz in the candidate's blocks and 1980 MHz in the other "
            "side's (held down: power cap in 1 of 1 pairs)");
  EXPECT_EQ(ClockNote(Pairs({1755, 1980, 1980, 1755}), "eager"),
            "the GPU's clock was 1980 MHz in the candidate's blocks and 1755 MHz in the other "
            "side's");
}

TEST(ClockNote, AClockThatIsHeldDownForBothIsTold) {
  EXPECT_EQ(ClockNote(Pairs({1500, 1500, 1500, 1500}, {"power cap", "heat"}), "eager"),
            "the GPU's clock, 1500 MHz, was held down: heat in 1 of 1 pairs, power cap in 1 of 1 "
            "pairs");
}

TEST(ClockNote, ALimitThatShowedOnceInManyPairsIsNone) {
  auto samples = Pairs({1980, 1980, 1980, 1980}, {"power cap"});
  for (int i = 0; i < 8; ++i) samples.push_back(Pairs({1980, 1980, 1980, 1980})[0]);
  EXPECT_EQ(ClockNote(samples, "eager"), "");
}

TEST(ClockNote, ReadingsThatFailedDoNotCount) {
  EXPECT_EQ(ClockNote(Pairs({1980, 0, 1980, 1980}), "eager"), "");
  EXPECT_EQ(ClockNote(Pairs({0, 0, 0, 0}), "eager"), "");
}

TEST(ClockNote, OtherBaselinesPairsAreNoneOfIts) {
  auto samples = Pairs({1980, 1980, 1980, 1980});
  samples.push_back({"compiled", "rccr", {4, 4, 4, 4}, {0, 0, 0, 0}, {1980, 1500, 1500, 1980}, {}});
  EXPECT_EQ(ClockNote(samples, "eager"), "");
  EXPECT_NE(ClockNote(samples, "compiled"), "");
}

}  // namespace
}  // namespace assay
