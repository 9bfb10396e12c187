// Tests a candidate that takes a device's memory, over the fake driver.
#include "values/device_memory.h"

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
    memory_.emplace(*gpu_, kGibibyte);
  }
  void TearDown() override { ::unsetenv("FAKE_CUDA_FREE_GIB"); }
  static void Free(const char* gibibytes) { ::setenv("FAKE_CUDA_FREE_GIB", gibibytes, 1); }
  void Begin(const char* found) {
    Free(found);
    memory_->Begin();
  }
  void Trouble(const char* left) {
    Free(left);
    memory_->NoteTrouble();
  }

  std::optional<Gpu> gpu_;
  std::optional<DeviceMemory> memory_;
};

// Others may have reserved what is free, and not touched it yet.
TEST_F(DeviceMemoryTest, WhereMemoryIsScarceHostsStartOneByOne) {
  Free("100");
  EXPECT_FALSE(memory_->HoldsFewHosts());
  EXPECT_EQ(memory_->HostsAtATime(4, kGibibyte, 2), 4);
  const DeviceMemory scarce(*gpu_, kGibibyte, true);
  EXPECT_TRUE(scarce.HoldsFewHosts());
  EXPECT_TRUE(scarce.IsShort());
  EXPECT_EQ(scarce.HostsAtATime(4, kGibibyte, 2), 1);
}

// It was the machine's fault before, and ended the call without a verdict.
TEST_F(DeviceMemoryTest, WhatACandidateHadComesBackWhenItIsGone) {
  Begin("100");
  Trouble("1");
  Free("99");
  EXPECT_THAT(memory_->Taken().value_or(""),
              HasSubstr("1.07 GB were left where the reference needs 2.1 GB, and 105.2 GB came"));
}

TEST_F(DeviceMemoryTest, WhatTheJudgesOwnHostsHoldIsNotTheCandidates) {
  Begin("45");
  Trouble("1");
  Free("3");
  EXPECT_EQ(memory_->Taken(), std::nullopt);
}

// A host in Python is lent memory for its results, too: on a device that others had filled, that
// alone was more than half of what the candidate had found.
TEST_F(DeviceMemoryTest, WhatTheJudgeHadLentItsHostsIsNotTheCandidates) {
  Begin("6");
  std::optional<DeviceRegion> lent = std::move(*DeviceRegion::Shared(*gpu_, 3 * kGibibyte));
  EXPECT_EQ(gpu_->held_bytes(), 3 * kGibibyte);
  Trouble("1");
  lent.reset();
  EXPECT_EQ(gpu_->held_bytes(), 0);
  Free("5");
  EXPECT_EQ(memory_->Taken(), std::nullopt);
  Trouble("0");
  Free("5");
  EXPECT_NE(memory_->Taken(), std::nullopt);
}

// Hosts of both sides started side by side until 80 GB were full, of which references that stayed
// warm had most.
TEST_F(DeviceMemoryTest, HostsThatStartAtATimeTakeAPartOfWhatIsFree) {
  Free("40");
  EXPECT_EQ(memory_->HostsAtATime(6, 3 * kGibibyte, 2), 5);
  EXPECT_EQ(memory_->HostsAtATime(6, 3 * kGibibyte, 3), 3);
  EXPECT_EQ(memory_->HostsAtATime(4, 3 * kGibibyte, 2), 4);
  EXPECT_EQ(memory_->HostsAtATime(6, 9 * kGibibyte, 2), 2);
  Free("1");
  EXPECT_EQ(memory_->HostsAtATime(6, 3 * kGibibyte, 2), 1) << "else there is no verdict at all";
  EXPECT_EQ(memory_->HostsAtATime(0, 3 * kGibibyte, 2), 1);
}

// Warm references of a model of 1 GB were counted without their weights, and filled 80 GB.
TEST_F(DeviceMemoryTest, AModelsWeightsCountThreeTimes) {
  const uint64_t bytes = HostBytes(
      {.outputs_bytes = kGibibyte, .results_bytes = kGibibyte, .weights_bytes = 2 * kGibibyte});
  EXPECT_EQ(bytes, 8 * kGibibyte);
  Free("40");
  EXPECT_EQ(memory_->HostsAtATime(6, bytes, 2), 2);
}

// Hosts that waited for later pairs had what the pair in hand needed, and the call ended.
TEST_F(DeviceMemoryTest, WhereFewHostsFitTheyStartOneByOne) {
  Free("7");
  EXPECT_FALSE(memory_->HoldsFewHosts());
  EXPECT_TRUE(memory_->IsShort());
  Free("5");
  EXPECT_TRUE(memory_->HoldsFewHosts());
}

TEST_F(DeviceMemoryTest, TroubleWithMemoryLeftHasAnotherCause) {
  Begin("100");
  Trouble("2");
  Free("100");
  EXPECT_EQ(memory_->Taken(), std::nullopt);
}

TEST_F(DeviceMemoryTest, ADeviceThatIsLostHasNoMemoryAtAll) {
  Begin("100");
  Trouble("0");
  EXPECT_EQ(memory_->Taken(), std::nullopt);
}

TEST_F(DeviceMemoryTest, EachCandidateBeginsAnew) {
  Begin("100");
  Trouble("0");
  Begin("100");
  EXPECT_EQ(memory_->Taken(), std::nullopt);
  EXPECT_EQ(DeviceMemory(*gpu_, kGibibyte).Taken(), std::nullopt);
}

}  // namespace
}  // namespace assay
