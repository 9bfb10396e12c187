// Over the fake driver: a GPU that hangs, and what is remembered of it.
#include "gpu/canary.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "base/files.h"

namespace assay {
namespace {

using testing::HasSubstr;

constexpr const char* kFake = ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1";
constexpr const char* kUuid = "GPU-07070707-0707-0707-0707-070707070707";

TEST(GpuCanary, AGpuThatHangsDoesNotAnswer) {
  const auto gpu = Gpu::Open(kFake);
  ASSERT_TRUE(gpu) << gpu.error().message;
  auto canary = GpuCanary::Create(*gpu);
  ASSERT_TRUE(canary) << canary.error().message;
  EXPECT_TRUE(canary->Ask(*gpu, 10));
  ::setenv("FAKE_CUDA_HANGS", "1", 1);
  const auto asked = canary->Ask(*gpu, 0.05);
  ::unsetenv("FAKE_CUDA_HANGS");
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(asked.error().message, HasSubstr("Fake GPU (sm_90a, driver for CUDA 13.0) has not"));
  EXPECT_TRUE(canary->Ask(*gpu, 10)) << "it recovered";
}

TEST(GpuCanary, WritesThatAreLostAreSeen) {
  const auto gpu = Gpu::Open(kFake);
  ASSERT_TRUE(gpu);
  auto canary = GpuCanary::Create(*gpu);
  ASSERT_TRUE(canary);
  ::setenv("FAKE_CUDA_LOSES_WRITES", "1", 1);
  const auto asked = canary->Ask(*gpu, 10);
  ::unsetenv("FAKE_CUDA_LOSES_WRITES");
  ASSERT_FALSE(asked);
  EXPECT_THAT(asked.error().message, HasSubstr("other values back"));
}

TEST(Quarantine, IsKeptUntilItIsLifted) {
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  const auto quarantine = folder->path() / "quarantine";
  EXPECT_FALSE(FindQuarantine(quarantine, nullptr)) << "no folder, no quarantine";
  PutUnderQuarantine(quarantine, kUuid, "it has not answered for 30 s after mine.cu was ended");
  const auto found = FindQuarantine(quarantine, nullptr);
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, HasSubstr("0707 is under quarantine: it has not answered for 30 s after "
                                "mine.cu was ended. Reset it"));
  LiftQuarantine(quarantine, kUuid);
  EXPECT_FALSE(FindQuarantine(quarantine, nullptr));
  LiftQuarantine(quarantine, kUuid);
}

TEST(Quarantine, AnotherGpuThatIsChosenByItsUuidIsFree) {
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  PutUnderQuarantine(folder->path(), kUuid, "it hangs");
  EXPECT_FALSE(FindQuarantine(folder->path(), "GPU-12345678-0000-0000-0000-000000000000"));
  EXPECT_TRUE(FindQuarantine(folder->path(), kUuid));
  EXPECT_TRUE(FindQuarantine(folder->path(), "GPU-0707")) << "CUDA takes a beginning, too";
  EXPECT_TRUE(FindQuarantine(folder->path(), "GPU-0707,GPU-1234")) << "the first one is used";
  EXPECT_FALSE(FindQuarantine(folder->path(), "GPU-1234,GPU-0707"));
  EXPECT_TRUE(FindQuarantine(folder->path(), "1")) << "nobody knows which that is";
}

}  // namespace
}  // namespace assay
