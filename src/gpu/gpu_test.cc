// The judge's side of a GPU, over the fake driver.
#include "gpu/gpu.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdlib>

namespace assay {
namespace {

using testing::HasSubstr;

constexpr const char* kFake = ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1";

TEST(Gpu, AMachineWithoutADriverIsAnError) {
  const auto gpu = Gpu::Open("libnothing-like-cuda.so.1");
  ASSERT_FALSE(gpu);
  EXPECT_EQ(gpu.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(gpu.error().message, HasSubstr("no CUDA driver"));
  EXPECT_EQ(gpu.error().code, ErrorCode::kNoDevice);
}

TEST(Gpu, ADriverWithoutADeviceIsAnError) {
  ::setenv("FAKE_CUDA_NO_DEVICE", "1", 1);
  const auto gpu = Gpu::Open(kFake);
  ::unsetenv("FAKE_CUDA_NO_DEVICE");
  ASSERT_FALSE(gpu);
  EXPECT_THAT(gpu.error().message, HasSubstr("cannot use the GPU: CUDA_ERROR_NO_DEVICE (100)"));
  EXPECT_EQ(gpu.error().code, ErrorCode::kNoDevice);
}

TEST(Gpu, SaysWhatItIs) {
  const auto gpu = Gpu::Open(kFake);
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ(gpu->facts().name, "Fake GPU");
  EXPECT_EQ(gpu->facts().uuid, "GPU-07070707-0707-0707-0707-070707070707");
  EXPECT_EQ(gpu->facts().architecture, "sm_90a");
  EXPECT_EQ(gpu->facts().multiprocessors, 132);
  EXPECT_EQ(gpu->facts().memory_bytes, uint64_t{8} << 30);
  EXPECT_EQ(gpu->FreeBytes(), uint64_t{6} << 30);
  EXPECT_TRUE(gpu->Synchronize());
}

TEST(DeviceRegion, SharedMemoryHasADescriptorAndWholePages) {
  const auto gpu = Gpu::Open(kFake);
  ASSERT_TRUE(gpu);
  auto region = DeviceRegion::Shared(*gpu, 5'000'000);
  ASSERT_TRUE(region) << region.error().message;
  EXPECT_EQ(region->size_bytes(), uint64_t{6} << 20);
  EXPECT_GE(region->fd(), 0);
  // The fake's descriptor is a file that this process can map, as a host would.
  auto* theirs = static_cast<char*>(
      ::mmap(nullptr, region->size_bytes(), PROT_READ, MAP_SHARED, region->fd(), 0));
  ASSERT_NE(theirs, MAP_FAILED);
  ASSERT_EQ(gpu->driver().set_words(region->address(), 0x61616161, 1, nullptr), cuda::kSuccess);
  EXPECT_EQ(theirs[3], 'a');
  ::munmap(theirs, region->size_bytes());
}

TEST(DeviceRegion, PrivateMemoryHasNone) {
  const auto gpu = Gpu::Open(kFake);
  ASSERT_TRUE(gpu);
  auto region = DeviceRegion::Private(*gpu, 1);
  ASSERT_TRUE(region) << region.error().message;
  EXPECT_EQ(region->fd(), -1);
  EXPECT_EQ(region->size_bytes(), uint64_t{2} << 20);
  DeviceRegion moved = std::move(*region);
  EXPECT_NE(moved.address(), 0u);
  EXPECT_EQ(region->address(), 0u);
}

TEST(DeviceRegion, TooMuchIsSaidWithWhatThereIs) {
  const auto gpu = Gpu::Open(kFake);
  ASSERT_TRUE(gpu);
  const auto region = DeviceRegion::Shared(*gpu, uint64_t{100} << 30);
  ASSERT_FALSE(region);
  EXPECT_THAT(region.error().message,
              HasSubstr("cannot take 107.37 GB of the GPU's memory, of "
                        "which 6.44 GB are free: CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_EQ(region.error().code, ErrorCode::kDeviceMemory);
}

}  // namespace
}  // namespace assay
