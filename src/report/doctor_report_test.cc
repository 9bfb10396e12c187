#include "report/doctor_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

DoctorReport Healthy() {
  DoctorReport report;
  report.findings = {{DoctorFinding::State::kGood, "sandbox", "bubblewrap 0.8.0", ""}};
  report.topology = {1, 2, 4, {{1, 48 << 10, 1}, {3, 32 << 20, 2}}};
  report.profile.cpu = "A CPU";
  report.profile.cores = 2;
  report.profile.ceilings = {{1, 10e9, 20e9, 19e9, {{"sse2", 37e9}, {"avx2", 115e9}}, {}}};
  report.profile.noise = {{2e3, 0.01, 0.3}};
  report.profile.empty_call_ns = 40;
  report.profile.empty_python_call_ns = 9000;
  return report;
}

TEST(DoctorReport, AHealthyMachineIsReady) {
  const std::string text = RenderDoctor(Healthy(), {});
  EXPECT_THAT(text, HasSubstr(" ready "));
  EXPECT_THAT(text, HasSubstr("L1 48 KiB, L3 32 MiB for 2 cores"));
  EXPECT_THAT(text, HasSubstr("read 10, copy 20, triad 19 GB/s"));
  EXPECT_THAT(text, HasSubstr("sse2 37, avx2 115 GFLOP/s"));
  EXPECT_THAT(text, HasSubstr("verdicts within 1.01%"));
  EXPECT_THAT(text, HasSubstr("40.0 ns native, 9.00 us in PyTorch"));
  EXPECT_THAT(text, Not(HasSubstr("to mend")));
}

TEST(DoctorReport, AGpusCeilingsStandWithBestAndMedian) {
  DoctorReport report = Healthy();
  GpuCeilings gpu;
  gpu.name = "Some GPU";
  gpu.traffic = {{"copy", {4.27e12, 4.2e12, "the driver's copy"}}};
  gpu.arithmetic = {{"float32", {51e12, 50e12, "fma"}},
                    {"tensor_bfloat16", {790e12, 693e12, "wgmma m64n256k16"}}};
  gpu.launch_ns = 2100;
  gpu.launch_and_wait_ns = 7300;
  gpu.notes = {"tensor_float8 by wgmma was not measured: its products came out wrong"};
  report.profile.gpus = {gpu};
  const std::string text = RenderDoctor(report, {});
  EXPECT_THAT(text, HasSubstr("Some GPU"));
  EXPECT_THAT(text, HasSubstr("memory copy  4.27 TB/s    4.20 TB/s    the driver's copy"));
  EXPECT_THAT(text, HasSubstr("51.0 TFLOP/s 50.0 TFLOP/s fma"));
  EXPECT_THAT(text, HasSubstr("790 TFLOP/s  693 TFLOP/s  wgmma m64n256k16"));
  EXPECT_THAT(text, HasSubstr("2.10 us in a row, 7.30 us waited for"));
  EXPECT_THAT(text, HasSubstr("tensor_float8 by wgmma was not measured"));
  EXPECT_THAT(RenderDoctor(Healthy(), {}), Not(HasSubstr("GPU")));
}

TEST(DoctorReport, EachMissingThingComesWithItsCommand) {
  DoctorReport report = Healthy();
  report.findings.push_back({DoctorFinding::State::kMissing, "PyTorch", "no Python with PyTorch",
                             "apt-get install torch"});
  report.findings.push_back(
      {DoctorFinding::State::kLimited, "clang++", "not found", "apt-get clang"});
  const std::string text = RenderDoctor(report, {false, false, 80});
  EXPECT_THAT(text, HasSubstr("1 missing"));
  EXPECT_THAT(text, HasSubstr("x PyTorch"));
  EXPECT_THAT(text, HasSubstr("~ clang++"));
  EXPECT_THAT(text, HasSubstr("to mend:"));
  EXPECT_THAT(text, HasSubstr("apt-get install torch"));
}

TEST(DoctorReport, WithoutMeasurementsItShowsNone) {
  DoctorReport report = Healthy();
  report.profile.ceilings.clear();
  report.profile.noise.clear();
  const std::string text = RenderDoctor(report, {});
  EXPECT_THAT(text, Not(HasSubstr("ceilings")));
  EXPECT_THAT(text, Not(HasSubstr("noise floor")));
}

}  // namespace
}  // namespace assay
