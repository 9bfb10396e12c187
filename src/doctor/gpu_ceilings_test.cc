// Tests the ceilings of a GPU over the fake driver: kernels run on this processor.
#include "doctor/gpu_ceilings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <optional>

#include "base/files.h"
#include "doctor/doctor.h"
#include "wire/write_device_image.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

// Which of the fake's kernels stands in for which; "" has no kernel of that name.
using StandIns = std::map<std::string, std::string>;

StandIns Right() {
  return {{"assay_empty", "assay_empty_emulated"},
          {"assay_weyl", "assay_weyl_emulated"},
          {"assay_copy", "assay_copy_emulated"},
          {"assay_read", "assay_read_emulated"},
          {"assay_float32", "assay_float32_emulated"},
          {"assay_float64", "assay_float64_emulated"},
          {"assay_float16_pairs", "pairs"},
          {"assay_bfloat16_pairs", "pairs"},
          {"assay_wgmma_float16", "float16_products"},
          {"assay_wgmma_bfloat16", "bfloat16_products"},
          {"assay_wgmma_tf32", "tf32_products"},
          {"assay_wgmma_float8", "float8_products"},
          {"assay_mma_bfloat16", "bfloat16_narrow_products"},
          {"assay_mma_float64", "float64_narrow_products"}};
}

class GpuCeilingsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto gpu = Gpu::Open(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1");
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_.emplace(std::move(*gpu));
    const auto library =
        ReadFile(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/ceiling_kernels.so", 16 << 20);
    ASSERT_TRUE(library);
    library_ = *library;
    effort_.block_s = 1e-5;
    effort_.blocks = 3;
    effort_.figure_s = 0;
    effort_.all_s = 600;  // a slow machine is none of the test's business
    effort_.array_bytes = 1 << 20;
    effort_.passes = 3;
    effort_.multiply_add_rounds = 1;
    effort_.product_rounds = 4;
  }

  Result<GpuCeilings> Measure(const StandIns& stand_ins, StopToken stop = {}) {
    const auto images = [&](std::string_view file,
                            std::span<const char* const> kernels) -> Result<std::string> {
      if (file == refused_) return EnvironmentError("error: no such instruction\nsecond line");
      std::vector<std::string> names;
      for (const char* kernel : kernels) {
        const auto found = stand_ins.find(kernel);
        names.push_back(found == stand_ins.end() ? "lazy" : found->second);
      }
      return wire::WriteDeviceImage(names, library_);
    };
    return MeasureGpuCeilings(*gpu_, images, effort_, stop);
  }

  std::optional<Gpu> gpu_;
  std::string library_, refused_;
  GpuEffort effort_;
};

TEST_F(GpuCeilingsTest, EveryFigureIsThereAndTheMedianIsNotOverTheBest) {
  effort_.multiply_add_rounds = 5;
  const auto found = Measure(Right());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->name, "Fake GPU");
  EXPECT_EQ(found->uuid, gpu_->facts().uuid);
  EXPECT_EQ(found->driver_version, 13000);
  for (const char* name : {"read", "copy", "l2_read"}) {
    ASSERT_THAT(found->traffic, Contains(Key(name)));
    EXPECT_GT(found->traffic.at(name).median, 0) << name;
    EXPECT_GE(found->traffic.at(name).best, found->traffic.at(name).median) << name;
  }
  for (const char* name : {"float32", "float64", "float16", "bfloat16", "tensor_float16",
                           "tensor_bfloat16", "tensor_tf32", "tensor_float8", "tensor_float64"})
    EXPECT_GT(BestRate(found->arithmetic, name), 0) << name;
  EXPECT_THAT(found->notes, IsEmpty());
  EXPECT_EQ(found->arithmetic.at("tensor_bfloat16").how, "wgmma m64n256k16");
  EXPECT_GT(found->launch_ns, 0);
  EXPECT_GT(found->launch_and_wait_ns, 0);
}

TEST_F(GpuCeilingsTest, AKernelThatDoesNothingHasNoRate) {
  for (const char* kernel : {"assay_weyl", "assay_copy", "assay_read", "assay_float32"}) {
    StandIns stand_ins = Right();
    stand_ins[kernel] = "lazy";
    const auto found = Measure(stand_ins);
    ASSERT_FALSE(found) << kernel;
    EXPECT_EQ(found.error().kind, ErrorKind::kEnvironment);
    EXPECT_THAT(found.error().message, HasSubstr("came out wrong")) << kernel;
  }
}

TEST_F(GpuCeilingsTest, WrongProductsAreNotedAndHaveNoRate) {
  StandIns stand_ins = Right();
  stand_ins.erase("assay_wgmma_float16");  // nor has mma.sync a right one
  const auto found = Measure(stand_ins);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->arithmetic, Not(Contains(Key("tensor_float16"))));
  EXPECT_THAT(found->notes,
              Contains("tensor_float16 by wgmma was not measured: its products came out wrong"));
  EXPECT_THAT(found->notes,
              Contains("tensor_float16 by mma.sync was not measured: its products came out wrong"));
}

TEST_F(GpuCeilingsTest, WhereWgmmaDoesNotCompileMmaSyncStandsIn) {
  refused_ = "ceiling_wgmma.cu";
  const auto found = Measure(Right());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->arithmetic.at("tensor_bfloat16").how, "mma.sync m16n8k16");
  EXPECT_THAT(found->notes, Contains("wgmma was not measured: error: no such instruction"));
}

TEST_F(GpuCeilingsTest, WhereWgmmaIsWrongMmaSyncStandsIn) {
  StandIns stand_ins = Right();
  stand_ins["assay_wgmma_bfloat16"] = "lazy";
  const auto found = Measure(stand_ins);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->arithmetic.at("tensor_bfloat16").how, "mma.sync m16n8k16");
}

TEST_F(GpuCeilingsTest, PairsThatDoNotTurnOverHaveNoRate) {
  StandIns stand_ins = Right();
  stand_ins["assay_bfloat16_pairs"] = "lazy";
  const auto found = Measure(stand_ins);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->arithmetic, Contains(Key("float16")));
  EXPECT_THAT(found->arithmetic, Not(Contains(Key("bfloat16"))));
}

TEST_F(GpuCeilingsTest, OrdinaryKernelsThatDoNotCompileAreAnError) {
  refused_ = "ceiling_kernels.cu";
  const auto found = Measure(Right());
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("no such instruction"));
}

TEST_F(GpuCeilingsTest, WhatHasNoTimeLeftIsSaid) {
  effort_.all_s = 0;
  const auto found = Measure(Right());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->arithmetic, Not(Contains(Key("tensor_bfloat16"))));
  EXPECT_THAT(found->notes, Contains(HasSubstr("time was up")));
}

TEST_F(GpuCeilingsTest, AnInterruptionEndsIt) {
  const std::atomic<bool> interrupted = true;
  const auto found = Measure(Right(), StopToken(interrupted));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::kInterrupted);
}

TEST(GpuNotice, SaysThatTheCeilingsAreAnothers) {
  MachineProfile machine;
  machine.gpus.emplace_back().name = "Another GPU";
  Verdict verdict;
  EXPECT_EQ(GpuNotice(machine, verdict), "");  // judged on the processor
  verdict.machine.gpu = "Some GPU";
  EXPECT_EQ(GpuNotice(machine, verdict), "");  // not timed
  verdict.speed.emplace();
  EXPECT_THAT(GpuNotice(machine, verdict), HasSubstr("(Another GPU): run assay doctor"));
  EXPECT_EQ(GpuNotice({}, verdict), "");  // its card says that none were measured
  verdict.roofline.emplace();
  EXPECT_EQ(GpuNotice(machine, verdict), "");
}

}  // namespace
}  // namespace assay
