#include "judge/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::HasSubstr;

// One core: 10 GB/s, 50 GFLOP/s in float32; four cores: 30 GB/s, 200 GFLOP/s.
MachineProfile Profile() {
  MachineProfile profile;
  profile.caches = {{1, 32 << 10, 1}, {2, 1 << 20, 1}, {3, 8 << 20, 4}};
  Ceilings one{1, 10e9, 8e9, 9e9, {{"sse2", 12e9}, {"avx2", 50e9}}, {{"avx2", 25e9}}};
  Ceilings all{4, 30e9, 28e9, 29e9, {{"sse2", 48e9}, {"avx2", 200e9}}, {{"avx2", 100e9}}};
  profile.ceilings = {one, all};
  profile.empty_call_ns = 50;
  profile.empty_python_call_ns = 2000;
  return profile;
}

Work Moving(double bytes, double operations) {
  return {operations, "counted", bytes, 0, "signature", 0, 0};
}

TEST(Roofline, AStreamingProblemIsBoundByMemory) {
  // 100 MB at 10 GB/s: 10 ms; 25 M operations at 50 GFLOP/s: 0.5 ms.
  const auto roofline = MakeRoofline(Moving(100e6, 25e6), false, Profile(), 1, {20e6, 40e6, false});
  ASSERT_TRUE(roofline);
  EXPECT_EQ(roofline->regime, "memory");
  EXPECT_DOUBLE_EQ(roofline->bound_ns, 10e6);
  EXPECT_DOUBLE_EQ(roofline->percent_of_peak, 50);
  EXPECT_DOUBLE_EQ(roofline->reference_percent_of_peak, 25);
  EXPECT_EQ(roofline->note, "");
}

TEST(Roofline, AProductIsBoundByArithmeticAtTheBestInstructions) {
  const auto roofline = MakeRoofline(Moving(3e6, 5e9), false, Profile(), 1, {125e6, 125e6, false});
  EXPECT_EQ(roofline->regime, "compute");
  EXPECT_EQ(roofline->instructions, "avx2");
  EXPECT_DOUBLE_EQ(roofline->percent_of_peak, 80);
}

TEST(Roofline, Float64TakesItsOwnRate) {
  const auto roofline = MakeRoofline(Moving(3e6, 5e9), true, Profile(), 1, {200e6, 200e6, false});
  EXPECT_DOUBLE_EQ(roofline->bound_ns, 200e6);
}

TEST(Roofline, ATinyProblemIsBoundByTheCallItself) {
  const Work work = Moving(64, 16);
  EXPECT_EQ(MakeRoofline(work, false, Profile(), 1, {100, 4000, false})->regime, "overhead");
  EXPECT_DOUBLE_EQ(MakeRoofline(work, false, Profile(), 1, {100, 4000, false})->percent_of_peak,
                   50);
  // A python candidate's empty call is dearer.
  EXPECT_DOUBLE_EQ(MakeRoofline(work, false, Profile(), 1, {4000, 4000, true})->percent_of_peak,
                   50);
}

TEST(Roofline, ThreadsBetweenOneAndAllScaleUpToWhatAllReach) {
  const auto two = MakeBound(Moving(1e6, 1e6), false, Profile(), 2, false);
  EXPECT_DOUBLE_EQ(two->bandwidth_bytes_s, 20e9);
  EXPECT_DOUBLE_EQ(two->rate_operations_s, 100e9);
  const auto three = MakeBound(Moving(1e6, 1e6), false, Profile(), 3, false);
  EXPECT_DOUBLE_EQ(three->bandwidth_bytes_s, 30e9);
  EXPECT_DOUBLE_EQ(MakeBound(Moving(1e6, 1e6), false, Profile(), 64, false)->bandwidth_bytes_s,
                   30e9);
}

TEST(Roofline, OverAHundredPercentSaysWhatExplainsIt) {
  const auto cached = MakeRoofline(Moving(4e6, 1e6), false, Profile(), 1, {200e3, 400e3, false});
  EXPECT_GT(cached->percent_of_peak, 100);
  EXPECT_THAT(cached->note, HasSubstr("level-3 cache"));
  const auto impossible =
      MakeRoofline(Moving(400e6, 1e6), false, Profile(), 1, {20e6, 40e6, false});
  EXPECT_THAT(impossible->note, HasSubstr("no cache holds its data"));
  const auto fewer = MakeRoofline(Moving(1e3, 5e9), false, Profile(), 1, {50e6, 100e6, false});
  EXPECT_THAT(fewer->note, HasSubstr("fewer operations"));
}

TEST(Roofline, UnknownOperationsAreSaid) {
  Work work = Moving(100e6, 0);
  work.operations_from = "unknown";
  const auto roofline = MakeRoofline(work, false, Profile(), 1, {20e6, 40e6, false});
  EXPECT_EQ(roofline->regime, "memory");
  EXPECT_THAT(roofline->note, HasSubstr("nobody counted"));
}

TEST(Roofline, NoneWithoutCeilingsOrTimes) {
  EXPECT_FALSE(MakeRoofline(Moving(1, 1), false, {}, 1, {1, 1, false}));
  EXPECT_FALSE(MakeRoofline(Moving(1, 1), false, Profile(), 1, {0, 0, false}));
}

TEST(Roofline, ReadsAndWritesHaveCeilingsOfTheirOwn) {
  const Ceilings ceilings{1, 10e9, 20e9, 16e9, {}, {}};
  EXPECT_DOUBLE_EQ(BandwidthFor(ceilings, 0), 10e9);
  EXPECT_DOUBLE_EQ(BandwidthFor(ceilings, 1.0 / 6), 13e9);
  EXPECT_DOUBLE_EQ(BandwidthFor(ceilings, 1.0 / 3), 16e9);
  EXPECT_DOUBLE_EQ(BandwidthFor(ceilings, 0.5), 20e9);
  EXPECT_DOUBLE_EQ(BandwidthFor(ceilings, 0.9), 20e9);
}

TEST(MachineProfile, SurvivesARoundTrip) {
  MachineProfile profile = Profile();
  profile.cpu = "a CPU";
  profile.noise = {{2e3, 0.05, 0.7}, {1e6, 0.01, 0.5}};
  const std::string text = MachineProfileToJson(profile);
  const auto read = MachineProfileFromJson(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(MachineProfileToJson(*read), text);
  EXPECT_FALSE(MachineProfileFromJson("{}"));
  EXPECT_FALSE(MachineProfileFromJson(text.substr(0, text.size() / 2)));
  EXPECT_FALSE(MachineProfileFromJson("[]"));
}

}  // namespace
}  // namespace assay
