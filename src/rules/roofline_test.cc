#include "rules/roofline.h"

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

// 4 TB/s, 50 TFLOP/s in float32, 400 in tf32, 800 in bfloat16; a launch takes 2 us.
GpuCeilings SomeGpu() {
  GpuCeilings gpu;
  gpu.created = "2026-01-01T00:00:00Z";
  gpu.name = "Some GPU";
  gpu.uuid = "GPU-1";
  gpu.architecture = "sm_90a";
  gpu.driver_version = 13000;
  gpu.l2_bytes = 50'000'000;
  gpu.traffic = {{"read", {3.6e12, 3.5e12, "reads"}},
                 {"copy", {4e12, 3.9e12, "copies"}},
                 {"l2_read", {8e12, 8e12, "reads"}}};
  gpu.arithmetic = {{"float32", {50e12, 49e12, "fma"}},
                    {"float64", {25e12, 25e12, "fma"}},
                    {"bfloat16", {100e12, 99e12, "fma of pairs"}},
                    {"tensor_tf32", {400e12, 390e12, "wgmma m64n256k8"}},
                    {"tensor_bfloat16", {800e12, 700e12, "wgmma m64n256k16"}}};
  gpu.launch_ns = 2000;
  gpu.launch_and_wait_ns = 7000;
  gpu.notes = {"a note"};
  return gpu;
}

Work HalfWritten(double bytes, double operations) {
  return {operations, "counted", bytes, bytes / 2, "signature", 0, 0};
}

TEST(GpuRoofline, AStreamingProblemIsBoundByMemory) {
  // 400 MB at 4 TB/s: 100 us.
  const auto roofline = MakeGpuRoofline(HalfWritten(400e6, 100e6), {"float32", "float32", 0},
                                        SomeGpu(), {125e3, 200e3, false});
  ASSERT_TRUE(roofline);
  EXPECT_EQ(roofline->regime, "memory");
  EXPECT_DOUBLE_EQ(roofline->bandwidth_bytes_s, 4e12);
  EXPECT_DOUBLE_EQ(roofline->percent_of_peak, 80);
  EXPECT_DOUBLE_EQ(roofline->reference_percent_of_peak, 50);
  EXPECT_EQ(roofline->note, "");
}

// A softmax in Triton that moves its bytes at 84% of the peak was said to reach 42%: the copy of
// its results lies inside the clock.
TEST(GpuRoofline, WhoCopiesResultsIsMeasuredWithThat) {
  const auto alone = MakeGpuRoofline(HalfWritten(400e6, 100e6), {"float32", "float32", 0},
                                     SomeGpu(), {250e3, 200e3, true, false, true, false});
  EXPECT_DOUBLE_EQ(alone->percent_of_peak, 80);
  EXPECT_DOUBLE_EQ(alone->reference_percent_of_peak, 50);
  const auto nobody = MakeGpuRoofline(HalfWritten(400e6, 100e6), {"float32", "float32", 0},
                                      SomeGpu(), {125e3, 200e3, true});
  EXPECT_DOUBLE_EQ(nobody->percent_of_peak, 80);
  EXPECT_EQ(nobody->note, "");
  const auto roofline = MakeGpuRoofline(HalfWritten(400e6, 100e6), {"float32", "float32", 0},
                                        SomeGpu(), {250e3, 400e3, true, false, true, true});
  ASSERT_TRUE(roofline);
  EXPECT_DOUBLE_EQ(roofline->bound_ns, 200e3);
  EXPECT_DOUBLE_EQ(roofline->percent_of_peak, 80);
  EXPECT_DOUBLE_EQ(roofline->reference_percent_of_peak, 50);
  EXPECT_EQ(roofline->regime, "memory");
  EXPECT_THAT(roofline->note, HasSubstr("copy of its results"));
}

TEST(GpuRoofline, ReadsAndCopiesHaveTheirOwnBandwidth) {
  EXPECT_DOUBLE_EQ(GpuBandwidthFor(SomeGpu(), 0), 3.6e12);
  EXPECT_DOUBLE_EQ(GpuBandwidthFor(SomeGpu(), 0.25), 3.8e12);
  EXPECT_DOUBLE_EQ(GpuBandwidthFor(SomeGpu(), 0.9), 4e12);
}

// 1 TFLOP of a product of matrices.
Roofline ProductBound(const char* dtype, const char* required, double matrix_share = 1) {
  return *MakeGpuRoofline(HalfWritten(30e6, 1e12), {dtype, required, matrix_share}, SomeGpu(),
                          {1e9, 1e9, false});
}

TEST(GpuRoofline, MatrixUnitsCountWhereDtypeOrClassAllowThem) {
  EXPECT_DOUBLE_EQ(ProductBound("float32", "float32").bound_ns, 20e6);
  EXPECT_DOUBLE_EQ(ProductBound("float32", "").bound_ns, 20e6);
  EXPECT_DOUBLE_EQ(ProductBound("float32", "tf32").bound_ns, 2.5e6);
  EXPECT_DOUBLE_EQ(ProductBound("bfloat16", "bfloat16").bound_ns, 1.25e6);
  EXPECT_DOUBLE_EQ(ProductBound("float64", "float64").bound_ns, 40e6);
  EXPECT_EQ(ProductBound("float32", "tf32").instructions, "tensor_tf32 (wgmma m64n256k8)");
  EXPECT_EQ(ProductBound("float32", "float32").instructions, "float32 (fma)");
  EXPECT_EQ(ProductBound("bfloat16", "bfloat16").regime, "compute");
}

TEST(GpuRoofline, WhatIsNoProductTakesTheOrdinaryUnits) {
  EXPECT_DOUBLE_EQ(ProductBound("bfloat16", "bfloat16", 0).bound_ns, 10e6);
  EXPECT_EQ(ProductBound("bfloat16", "bfloat16", 0).instructions, "bfloat16 (fma of pairs)");
  // A tenth at 50 TFLOP/s takes longer than nine tenths at 400.
  EXPECT_NEAR(ProductBound("float32", "tf32", 0.9).bound_ns, 2.25e6, 1);
  EXPECT_NEAR(ProductBound("float32", "tf32", 0.5).bound_ns, 10e6, 1);
  EXPECT_EQ(ProductBound("float32", "tf32", 0.5).instructions, "float32 (fma)");
}

TEST(GpuRoofline, WithoutARateOfItsOwnADtypeTakesFloat32s) {
  EXPECT_DOUBLE_EQ(ProductBound("float16", "tf32").bound_ns, 20e6);
  EXPECT_DOUBLE_EQ(ProductBound("int64", "exact").bound_ns, 20e6);
}

TEST(GpuRoofline, ATinyProblemIsBoundByItsLaunch) {
  const auto roofline = MakeGpuRoofline(HalfWritten(64, 16), {"float32", "float32", 0}, SomeGpu(),
                                        {4000, 8000, false});
  EXPECT_EQ(roofline->regime, "overhead");
  EXPECT_DOUBLE_EQ(roofline->empty_call_ns, 2000);
  EXPECT_DOUBLE_EQ(roofline->percent_of_peak, 50);
  EXPECT_THAT(roofline->note, HasSubstr("launch-bound"));
}

TEST(GpuRoofline, CallsThatAreReplayedPayForNoLaunch) {
  const auto roofline = MakeGpuRoofline(HalfWritten(4e6, 16), {"float32", "float32", 0}, SomeGpu(),
                                        {1500, 3000, false, true});
  EXPECT_EQ(roofline->regime, "memory");
  EXPECT_DOUBLE_EQ(roofline->bound_ns, 1000);
  EXPECT_NEAR(roofline->percent_of_peak, 66.7, 0.1);
}

TEST(GpuRoofline, AShortCallIsSaidToBeBoundByLatency) {
  // 16 MB at 4 TB/s: 4 us.
  const auto roofline = MakeGpuRoofline(HalfWritten(16e6, 1e6), {"float32", "float32", 0},
                                        SomeGpu(), {8000, 16000, false});
  EXPECT_EQ(roofline->regime, "memory");
  EXPECT_THAT(roofline->note, HasSubstr("latency-bound"));
  EXPECT_THAT(roofline->note, HasSubstr("7.0 us"));
}

TEST(GpuRoofline, WhatFitsIntoTheCacheSaysWhatIsCounted) {
  const auto half = MakeGpuRoofline(HalfWritten(40e6, 1e6), {"float32", "float32", 0}, SomeGpu(),
                                    {20e3, 40e3, false});
  EXPECT_DOUBLE_EQ(half->percent_of_peak, 50);
  EXPECT_THAT(half->note, HasSubstr("its 40.0 MB fit into the L2 cache of 50.0 MB"));
  const auto over = MakeGpuRoofline(HalfWritten(40e6, 1e6), {"float32", "float32", 0}, SomeGpu(),
                                    {5e3, 10e3, false});
  EXPECT_THAT(over->note, HasSubstr("over 100%: its 40.0 MB fit into the L2 cache"));
}

TEST(GpuRoofline, OverAHundredPercentSaysWhatExplainsIt) {
  const auto memory = MakeGpuRoofline(HalfWritten(400e6, 1e6), {"float32", "float32", 0}, SomeGpu(),
                                      {50e3, 100e3, false});
  EXPECT_THAT(memory->note, HasSubstr("do not fit into the L2 cache"));
  const auto product = MakeGpuRoofline(HalfWritten(30e6, 1e12), {"float32", "float32", 1},
                                       SomeGpu(), {3e6, 20e6, false});
  EXPECT_THAT(product->note, HasSubstr("computes in tf32"));
}

TEST(GpuRoofline, NoneWithoutRatesOrTimes) {
  const GpuDemand demand{"float32", "float32", 0};
  EXPECT_FALSE(MakeGpuRoofline(HalfWritten(1, 1), demand, {}, {1, 1, false}));
  EXPECT_FALSE(MakeGpuRoofline(HalfWritten(1, 1), demand, SomeGpu(), {0, 0, false}));
}

TEST(MachineProfile, AnotherGpuOrDriverIsNotThisOne) {
  MachineProfile profile = Profile();
  EXPECT_EQ(FindGpuCeilings(profile, "GPU-1", 13000), nullptr);
  KeepGpuCeilings(SomeGpu(), &profile);
  ASSERT_NE(FindGpuCeilings(profile, "GPU-1", 13000), nullptr);
  EXPECT_EQ(FindGpuCeilings(profile, "GPU-2", 13000), nullptr);
  EXPECT_EQ(FindGpuCeilings(profile, "GPU-1", 12080), nullptr);
  GpuCeilings again = SomeGpu();
  again.driver_version = 13010;
  KeepGpuCeilings(again, &profile);
  EXPECT_EQ(profile.gpus.size(), 1U);
  EXPECT_EQ(FindGpuCeilings(profile, "GPU-1", 13000), nullptr);
}

TEST(MachineProfile, OneOfTheTimeBeforeGpusIsRead) {
  std::string text = MachineProfileToJson(Profile());
  const size_t at = text.find(",\n  \"gpus\": []");
  ASSERT_NE(at, std::string::npos) << text;
  text.erase(at, std::string_view(",\n  \"gpus\": []").size());
  const auto read = MachineProfileFromJson(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->gpus.empty());
}

TEST(MachineProfile, SurvivesARoundTrip) {
  MachineProfile profile = Profile();
  KeepGpuCeilings(SomeGpu(), &profile);
  profile.cpu = "a CPU";
  profile.noise = {{2e3, 0.05, 0.7}, {1e6, 0.01, 0.5}};
  const std::string text = MachineProfileToJson(profile);
  const auto read = MachineProfileFromJson(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(MachineProfileToJson(*read), text);
  EXPECT_EQ(read->gpus.front().arithmetic.at("tensor_tf32").how, "wgmma m64n256k8");
  EXPECT_FALSE(MachineProfileFromJson("{}"));
  EXPECT_FALSE(MachineProfileFromJson(text.substr(0, text.size() / 2)));
  EXPECT_FALSE(MachineProfileFromJson("[]"));
}

}  // namespace
}  // namespace assay
