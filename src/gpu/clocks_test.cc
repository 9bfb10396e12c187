// NVML's answers, over a fake of it.
#include "gpu/clocks.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kFake = ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libnvidia-ml.so.1";
constexpr const char* kUuid = "GPU-07070707-0707-0707-0707-070707070707";

TEST(GpuClocks, SayWhatTheClockIsAndWhatHoldsIt) {
  const auto clocks = GpuClocks::Open(kUuid, kFake);
  ASSERT_TRUE(clocks);
  const ClockState first = clocks->Read(), second = clocks->Read();
  EXPECT_EQ(first.sm_mhz, 1980);
  EXPECT_EQ(second.sm_mhz, 1975);
  EXPECT_THAT(ClockLimitNames(first.limits), IsEmpty());  // it is idle
  EXPECT_THAT(ClockLimitNames(second.limits), ElementsAre("power cap"));
}

TEST(GpuClocks, SayWhichNodeIsTheGpus) {
  const auto clocks = GpuClocks::Open(kUuid, kFake);
  ASSERT_TRUE(clocks);
  EXPECT_EQ(clocks->NodeNumber(), 3);
}

TEST(GpuClocks, WithoutNvmlOrWithAnotherGpuThereAreNone) {
  EXPECT_FALSE(GpuClocks::Open(kUuid, "libnothing-like-nvml.so.1"));
  EXPECT_FALSE(GpuClocks::Open("GPU-other", kFake));
  // A library that is none of NVML's.
  EXPECT_FALSE(GpuClocks::Open(kUuid, ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1"));
}

TEST(GpuClocks, LimitsAreNamedOnce) {
  EXPECT_THAT(ClockLimitNames(0), IsEmpty());
  EXPECT_THAT(ClockLimitNames(0x2 | 0x100), IsEmpty());  // set by somebody
  EXPECT_THAT(ClockLimitNames(0x20 | 0x40), ElementsAre("heat"));
  EXPECT_THAT(ClockLimitNames(0x4 | 0x20), ElementsAre("power cap", "heat"));
  EXPECT_THAT(ClockLimitNames(0x8), ElementsAre("hardware"));
  EXPECT_THAT(ClockLimitNames(0x8 | 0x80), ElementsAre("power brake"));
}

}  // namespace
}  // namespace assay
