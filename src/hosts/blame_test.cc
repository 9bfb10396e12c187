#include "hosts/blame.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Blame, WantOfMemoryIsSaidByCudaPyTorchAndLibraries) {
  for (const char* text : {"line 4: OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.",
                           "CUDA_ERROR_OUT_OF_MEMORY", "DefaultCPUAllocator: can't allocate memory",
                           "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED",
                           "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"})
    EXPECT_TRUE(SaysOutOfMemory(text)) << text;
  EXPECT_FALSE(SaysOutOfMemory(""));
  EXPECT_FALSE(SaysOutOfMemory("CUDA error: CUDA-capable device(s) is/are busy or unavailable"));
  EXPECT_TRUE(MayLackMemory("CUDA error: CUDA-capable device(s) is/are busy or unavailable"));
  EXPECT_TRUE(MayLackMemory("CUDA error: out of memory"));
  EXPECT_FALSE(MayLackMemory(""));
  EXPECT_FALSE(SaysOutOfMemory("line 3: NameError: name 'memory' is not defined"));
}

}  // namespace
}  // namespace assay
