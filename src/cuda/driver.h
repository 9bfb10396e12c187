// The CUDA driver, opened at run time: building Assay needs no header of CUDA's, and a program that
// finds no driver goes on without one. libc alone, as it is linked into hosts. Types and numbers
// are those of the driver's C interface (CUDA 12.4 and newer); driver_test compares them with
// cuda.h if that is installed.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace assay::cuda {

using Device = int;
using Pointer = unsigned long long;           // device address
using AllocationHandle = unsigned long long;  // of cuMemCreate
struct ContextTag;
struct ModuleTag;
struct FunctionTag;
struct StreamTag;
struct EventTag;
struct GraphTag;
struct GraphExecutableTag;
using Context = ContextTag*;
using Module = ModuleTag*;
using Function = FunctionTag*;
using Stream = StreamTag*;
using Event = EventTag*;
using Graph = GraphTag*;
using GraphExecutable = GraphExecutableTag*;

enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kNoBinaryForDevice = 209,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchTimeout = 702,
  kLaunchFailed = 719,
};

enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kWarpSize = 10,
  kMultiprocessorCount = 16,
  kL2CacheBytes = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedBytesPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kMaxThreadsPerMultiprocessor = 39,
  kMaxSharedBytesPerBlockOptin = 97,
  kHandleTypePosixFileDescriptorSupported = 103,
  kMaxBlocksPerMultiprocessor = 106,
  kReservedSharedBytesPerBlock = 111,
};

enum FunctionAttribute : int {
  kFunctionMaxThreadsPerBlock = 0,
  kFunctionSharedBytes = 1,
  kFunctionConstantBytes = 2,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicSharedBytes = 8,
  kFunctionNonPortableClusterSizeAllowed = 14,
};

struct Location {
  int type = 1;  // a device
  int id = 0;
};

struct AllocationProperties {
  int type = 1;                    // pinned
  int requested_handle_types = 1;  // POSIX file descriptor
  Location location;
  void* win32_meta_data = nullptr;
  unsigned char compression_type = 0;
  unsigned char gpu_direct_rdma_capable = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};

struct AccessDescription {
  Location location;
  int flags = 3;  // read and write
};

struct LaunchAttribute {
  int id = 0;
  char padding[4] = {};
  union {
    char all[64];
    struct {
      unsigned int x, y, z;
    } cluster;
    int flag;
  } value = {};
};
inline constexpr int kCaptureThreadLocal = 1;  // of cuStreamBeginCapture
inline constexpr int kLaunchCooperative = 2, kLaunchClusterDimension = 4;

struct LaunchConfig {
  unsigned int grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned int block_x = 1, block_y = 1, block_z = 1;
  unsigned int shared_bytes = 0;
  Stream stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned int attribute_count = 0;
};

struct alignas(128) TensorMap {
  uint64_t opaque[16];
};

enum class TensorMapType : int {
  kUInt8 = 0,
  kUInt16 = 1,
  kUInt32 = 2,
  kInt32 = 3,
  kUInt64 = 4,
  kInt64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBFloat16 = 9,
};

// Every function that Assay uses: member, symbol, parameters.
#define ASSAY_CUDA_FUNCTIONS(X)                                                                \
  X(init, "cuInit", (unsigned int))                                                            \
  X(driver_version, "cuDriverGetVersion", (int*))                                              \
  X(error_name, "cuGetErrorName", (Result, const char**))                                      \
  X(error_text, "cuGetErrorString", (Result, const char**))                                    \
  X(device_count, "cuDeviceGetCount", (int*))                                                  \
  X(device_get, "cuDeviceGet", (Device*, int))                                                 \
  X(device_name, "cuDeviceGetName", (char*, int, Device))                                      \
  X(device_attribute, "cuDeviceGetAttribute", (int*, DeviceAttribute, Device))                 \
  X(device_memory, "cuDeviceTotalMem_v2", (size_t*, Device))                                   \
  X(device_uuid, "cuDeviceGetUuid_v2", (unsigned char*, Device))                               \
  X(primary_context_retain, "cuDevicePrimaryCtxRetain", (Context*, Device))                    \
  X(primary_context_release, "cuDevicePrimaryCtxRelease_v2", (Device))                         \
  X(context_set, "cuCtxSetCurrent", (Context))                                                 \
  X(context_synchronize, "cuCtxSynchronize", ())                                               \
  X(profiler_start, "cuProfilerStart", ())                                                     \
  X(profiler_stop, "cuProfilerStop", ())                                                       \
  X(context_reset_persisting_l2, "cuCtxResetPersistingL2Cache", ())                            \
  X(stream_create, "cuStreamCreate", (Stream*, unsigned int))                                  \
  X(stream_destroy, "cuStreamDestroy_v2", (Stream))                                            \
  X(stream_synchronize, "cuStreamSynchronize", (Stream))                                       \
  X(stream_query, "cuStreamQuery", (Stream))                                                   \
  X(event_create, "cuEventCreate", (Event*, unsigned int))                                     \
  X(event_destroy, "cuEventDestroy_v2", (Event))                                               \
  X(event_record, "cuEventRecord", (Event, Stream))                                            \
  X(event_synchronize, "cuEventSynchronize", (Event))                                          \
  X(event_elapsed_ms, "cuEventElapsedTime", (float*, Event, Event))                            \
  X(module_load, "cuModuleLoadData", (Module*, const void*))                                   \
  X(module_unload, "cuModuleUnload", (Module))                                                 \
  X(module_function, "cuModuleGetFunction", (Function*, Module, const char*))                  \
  X(function_attribute, "cuFuncGetAttribute", (int*, FunctionAttribute, Function))             \
  X(function_set_attribute, "cuFuncSetAttribute", (Function, FunctionAttribute, int))          \
  X(function_parameter, "cuFuncGetParamInfo", (Function, size_t, size_t*, size_t*))            \
  X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor", (int*, Function, int, size_t))   \
  X(launch, "cuLaunchKernelEx", (const LaunchConfig*, Function, void**, void**))               \
  X(capture_begin, "cuStreamBeginCapture_v2", (Stream, int))                                   \
  X(capture_end, "cuStreamEndCapture", (Stream, Graph*))                                       \
  X(graph_destroy, "cuGraphDestroy", (Graph))                                                  \
  X(graph_instantiate, "cuGraphInstantiateWithFlags",                                          \
    (GraphExecutable*, Graph, unsigned long long))                                             \
  X(graph_upload, "cuGraphUpload", (GraphExecutable, Stream))                                  \
  X(graph_launch, "cuGraphLaunch", (GraphExecutable, Stream))                                  \
  X(graph_executable_destroy, "cuGraphExecDestroy", (GraphExecutable))                         \
  X(memory_info, "cuMemGetInfo_v2", (size_t*, size_t*))                                        \
  X(memory_allocate, "cuMemAlloc_v2", (Pointer*, size_t))                                      \
  X(memory_free, "cuMemFree_v2", (Pointer))                                                    \
  X(copy_to_device, "cuMemcpyHtoDAsync_v2", (Pointer, const void*, size_t, Stream))            \
  X(copy_to_host, "cuMemcpyDtoHAsync_v2", (void*, Pointer, size_t, Stream))                    \
  X(copy_on_device, "cuMemcpyDtoDAsync_v2", (Pointer, Pointer, size_t, Stream))                \
  X(set_words, "cuMemsetD32Async", (Pointer, unsigned int, size_t, Stream))                    \
  X(granularity, "cuMemGetAllocationGranularity", (size_t*, const AllocationProperties*, int)) \
  X(create, "cuMemCreate",                                                                     \
    (AllocationHandle*, size_t, const AllocationProperties*, unsigned long long))              \
  X(release, "cuMemRelease", (AllocationHandle))                                               \
  X(export_handle, "cuMemExportToShareableHandle",                                             \
    (void*, AllocationHandle, int, unsigned long long))                                        \
  X(import_handle, "cuMemImportFromShareableHandle", (AllocationHandle*, void*, int))          \
  X(address_reserve, "cuMemAddressReserve",                                                    \
    (Pointer*, size_t, size_t, Pointer, unsigned long long))                                   \
  X(address_free, "cuMemAddressFree", (Pointer, size_t))                                       \
  X(map, "cuMemMap", (Pointer, size_t, size_t, AllocationHandle, unsigned long long))          \
  X(unmap, "cuMemUnmap", (Pointer, size_t))                                                    \
  X(set_access, "cuMemSetAccess", (Pointer, size_t, const AccessDescription*, size_t))         \
  X(encode_tensor_map, "cuTensorMapEncodeTiled",                                               \
    (TensorMap*, TensorMapType, uint32_t, void*, const uint64_t*, const uint64_t*,             \
     const uint32_t*, const uint32_t*, int, int, int, int))

// The driver's functions: a plain table that may be copied. The library stays open for good.
struct Driver {
#define ASSAY_CUDA_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
  ASSAY_CUDA_FUNCTIONS(ASSAY_CUDA_MEMBER)
#undef ASSAY_CUDA_MEMBER

  // Writes "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered" into `text`.
  void Describe(Result result, char* text, size_t text_bytes) const;
};

// Opens `library` (null: libcuda.so.1) and finds every function. Returns false if it is missing or
// too old; `why`, if not null, then says which, in at most `why_bytes`, and `missing`, if not null,
// is set to true where it is missing.
bool OpenDriver(Driver* driver, const char* library, char* why, size_t why_bytes,
                bool* missing = nullptr);

}  // namespace assay::cuda
