#include "cuda/driver.h"

#include <gtest/gtest.h>

#include <cstring>

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

namespace assay::cuda {
namespace {

TEST(CudaDriver, AMachineWithoutOneIsTold) {
  Driver driver;
  char why[200] = "";
  EXPECT_FALSE(OpenDriver(&driver, "libnothing-like-cuda.so.1", why, sizeof why));
  EXPECT_NE(std::strstr(why, "no CUDA driver: libnothing-like-cuda"), nullptr) << why;
  bool missing = false;
  EXPECT_FALSE(OpenDriver(&driver, "libnothing-like-cuda.so.1", nullptr, 0, &missing));
  EXPECT_TRUE(missing);
}

TEST(CudaDriver, ALibraryThatIsNoneIsToldByWhatItLacks) {
  Driver driver;
  char why[200] = "";
  bool missing = true;
  EXPECT_FALSE(OpenDriver(&driver, "libm.so.6", why, sizeof why, &missing));
  EXPECT_FALSE(missing);
  EXPECT_NE(std::strstr(why, "it has no cuInit"), nullptr) << why;
  EXPECT_EQ(driver.init, nullptr);
}

#if defined(CUDA_VERSION) && CUDA_VERSION >= 12040
// The declarations that stand in for cuda.h are the same as its own.
static_assert(sizeof(AllocationProperties) == sizeof(CUmemAllocationProp));
static_assert(offsetof(AllocationProperties, location) == offsetof(CUmemAllocationProp, location));
static_assert(offsetof(AllocationProperties, compression_type) ==
              offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(AccessDescription) == sizeof(CUmemAccessDesc));
static_assert(offsetof(AccessDescription, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) &&
              alignof(TensorMap) >= alignof(CUtensorMap));
static_assert(sizeof(Pointer) == sizeof(CUdeviceptr));
static_assert(sizeof(AllocationHandle) == sizeof(CUmemGenericAllocationHandle));

TEST(CudaDriver, NumbersAreThoseOfCudaH) {
  EXPECT_EQ(AllocationProperties().type, static_cast<int>(CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(AllocationProperties().requested_handle_types,
            static_cast<int>(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  EXPECT_EQ(Location().type, static_cast<int>(CU_MEM_LOCATION_TYPE_DEVICE));
  EXPECT_EQ(AccessDescription().flags, static_cast<int>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_EQ(kCaptureThreadLocal, static_cast<int>(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(kLaunchCooperative, static_cast<int>(CU_LAUNCH_ATTRIBUTE_COOPERATIVE));
  EXPECT_EQ(kLaunchClusterDimension, static_cast<int>(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION));
  const std::pair<int, int> same[] = {
      {kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY},
      {kNoDevice, CUDA_ERROR_NO_DEVICE},
      {kNoBinaryForDevice, CUDA_ERROR_NO_BINARY_FOR_GPU},
      {kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS},
      {kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT},
      {kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED},
      {kMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
      {kWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
      {kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
      {kL2CacheBytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
      {kMaxThreadsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
      {kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
      {kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
      {kMaxSharedBytesPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
      {kMaxRegistersPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
      {kMaxSharedBytesPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
      {kHandleTypePosixFileDescriptorSupported,
       CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED},
      {kFunctionMaxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
      {kFunctionSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES},
      {kFunctionConstantBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES},
      {kFunctionLocalBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES},
      {kFunctionRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS},
      {kFunctionMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES},
      {kFunctionNonPortableClusterSizeAllowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED},
      {static_cast<int>(TensorMapType::kUInt8), CU_TENSOR_MAP_DATA_TYPE_UINT8},
      {static_cast<int>(TensorMapType::kInt32), CU_TENSOR_MAP_DATA_TYPE_INT32},
      {static_cast<int>(TensorMapType::kInt64), CU_TENSOR_MAP_DATA_TYPE_INT64},
      {static_cast<int>(TensorMapType::kFloat16), CU_TENSOR_MAP_DATA_TYPE_FLOAT16},
      {static_cast<int>(TensorMapType::kFloat32), CU_TENSOR_MAP_DATA_TYPE_FLOAT32},
      {static_cast<int>(TensorMapType::kFloat64), CU_TENSOR_MAP_DATA_TYPE_FLOAT64},
      {static_cast<int>(TensorMapType::kBFloat16), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16},
  };
  for (const auto& [ours, theirs] : same) EXPECT_EQ(ours, theirs);
}
#endif

}  // namespace
}  // namespace assay::cuda
