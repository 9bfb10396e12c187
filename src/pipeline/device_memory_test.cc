// A device's memory that a candidate takes, over the fake driver.
#include "pipeline/device_memory.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace assay {
namespace {

using testing::HasSubstr;

constexpr uint64_t kGibibyte = uint64_t{1} << 30;

class DeviceMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    auto gpu = Gpu::Open(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1");
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_.emplace(std::move(*gpu));
  }
  void TearDown() override { ::unsetenv("FAKE_CUDA_FREE_GIB"); }
  static void Free(const char* gibibytes) { ::setenv("FAKE_CUDA_FREE_GIB", gibibytes, 1); }

  std::optional<Gpu> gpu_;
};

// It was the machine's fault before, and ended the call without a verdict.
TEST_F(DeviceMemoryTest, WhatACandidateTookIsSaid) {
  DeviceMemory memory(*gpu_, kGibibyte);
  Free("100");
  memory.Begin();
  EXPECT_EQ(memory.Taken(), std::nullopt);
  Free("2");
  EXPECT_EQ(memory.Taken(), std::nullopt) << "enough for one more host";
  Free("1");
  EXPECT_THAT(memory.Taken().value_or(""),
              HasSubstr("107.4 GB were free before it, 1.07 GB are left"));
}

TEST_F(DeviceMemoryTest, OnASmallDeviceTheJudgesOwnHostsMayHaveIt) {
  DeviceMemory memory(*gpu_, kGibibyte);
  Free("25");
  memory.Begin();
  Free("0");
  EXPECT_EQ(memory.Taken(), std::nullopt);
}

TEST_F(DeviceMemoryTest, NobodyIsBlamedBeforeACandidateBegins) {
  const DeviceMemory memory(*gpu_, kGibibyte);
  Free("0");
  EXPECT_EQ(memory.Taken(), std::nullopt);
}

}  // namespace
}  // namespace assay
