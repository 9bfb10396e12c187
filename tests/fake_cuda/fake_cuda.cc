// A CUDA driver without a GPU, for tests of what stands around one: device memory is memory of this
// machine behind memfds, a module is a shared library, a launch is a function call. It is strict:
// what a real driver refuses for its arguments is refused here. Errors of kernels stick, as the
// real ones do.
#include "fake_cuda.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <vector>

using namespace assay::cuda;

#define FAKE extern "C" __attribute__((visibility("default"))) Result

namespace {

constexpr size_t kGranularity = size_t{2} << 20;
constexpr unsigned kSharedBytesMax = 227 * 1024, kSharedBytesByDefault = 48 * 1024;

bool initialised = false, has_context = false;
Result sticky = kSuccess;
std::map<Pointer, size_t> reserved;
std::map<Function, int> shared_bytes;

// A launch that was captured: its arguments are those of the capture.
struct CapturedLaunch {
  LaunchConfig config;
  Function function;
  std::vector<TensorMap> values;  // one each, whatever its size
};
using Captured = std::vector<CapturedLaunch>;
Captured* capturing = nullptr;
bool uploaded = false;

Result Ready() {
  if (!initialised) return static_cast<Result>(3);    // CUDA_ERROR_NOT_INITIALIZED
  if (!has_context) return static_cast<Result>(201);  // CUDA_ERROR_INVALID_CONTEXT
  return sticky;
}

// What a profiler would see, a line each, in the file that FAKE_CUDA_PROFILER names.
void Note(const char* what) {
  const char* path = getenv("FAKE_CUDA_PROFILER");
  FILE* file = path != nullptr ? fopen(path, "a") : nullptr;
  if (file == nullptr) return;
  fprintf(file, "%s\n", what);
  fclose(file);
}

// As a profiler that works off what it has when the process exits.
struct NotesTheExit {
  ~NotesTheExit() { Note("exit"); }
} notes_the_exit;

// As long as it has blocks, a microsecond each.
void TellCupti(const LaunchConfig& config, Function function) {
  void* cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  if (cupti == nullptr) return;
  const auto ran =
      reinterpret_cast<void (*)(const char*, unsigned long long)>(dlsym(cupti, "FakeCuptiRan"));
  Dl_info info;
  if (ran != nullptr && dladdr(reinterpret_cast<void*>(function), &info) != 0)
    ran(info.dli_sname, 1000ull * config.grid_x);
}

bool IsGranular(size_t bytes) { return bytes > 0 && bytes % kGranularity == 0; }

}  // namespace

FAKE cuInit(unsigned int flags) {
  if (flags != 0) return kInvalidValue;
  if (getenv("FAKE_CUDA_NO_DEVICE") != nullptr) return kNoDevice;
  initialised = true;
  return kSuccess;
}
FAKE cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
FAKE cuGetErrorName(Result result, const char** name) {
  *name = result == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == kOutOfMemory  ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == kNoDevice     ? "CUDA_ERROR_NO_DEVICE"
                                    : "CUDA_ERROR_OF_THE_FAKE";
  return kSuccess;
}
FAKE cuGetErrorString(Result, const char** text) {
  *text = "as the fake driver says";
  return kSuccess;
}
FAKE cuDeviceGetCount(int* count) {
  *count = 1;
  return initialised ? kSuccess : static_cast<Result>(3);
}
FAKE cuDeviceGet(Device* device, int index) {
  *device = 0;
  return index == 0 ? kSuccess : kInvalidValue;
}
FAKE cuDeviceGetName(char* name, int bytes, Device) {
  snprintf(name, static_cast<size_t>(bytes), "Fake GPU");
  return kSuccess;
}
FAKE cuDeviceGetAttribute(int* value, DeviceAttribute attribute, Device) {
  switch (attribute) {
    case kComputeCapabilityMajor:
      *value = 9;
      return kSuccess;
    case kComputeCapabilityMinor:
      *value = 0;
      return kSuccess;
    case kMultiprocessorCount:
      *value = 132;
      return kSuccess;
    case kMaxThreadsPerMultiprocessor:
      *value = 2048;
      return kSuccess;
    case kMaxBlocksPerMultiprocessor:
      *value = 32;
      return kSuccess;
    case kMaxRegistersPerMultiprocessor:
      *value = 65536;
      return kSuccess;
    case kMaxSharedBytesPerMultiprocessor:
      *value = 228 * 1024;
      return kSuccess;
    case kReservedSharedBytesPerBlock:
      *value = 1024;
      return kSuccess;
    case kMaxSharedBytesPerBlockOptin:
      *value = kSharedBytesMax;
      return kSuccess;
    default:
      *value = 1;
      return kSuccess;
  }
}
FAKE cuDeviceTotalMem_v2(size_t* bytes, Device) {
  *bytes = size_t{8} << 30;
  return kSuccess;
}
FAKE cuDeviceGetUuid_v2(unsigned char* uuid, Device) {
  memset(uuid, 7, 16);
  return kSuccess;
}
FAKE cuDevicePrimaryCtxRetain(Context* context, Device) {
  if (!initialised) return static_cast<Result>(3);
  *context = reinterpret_cast<Context>(&has_context);
  return kSuccess;
}
FAKE cuDevicePrimaryCtxRelease_v2(Device) { return kSuccess; }
FAKE cuCtxSetCurrent(Context context) {
  has_context = context != nullptr;
  return kSuccess;
}
FAKE cuCtxSynchronize() { return Ready(); }
FAKE cuCtxResetPersistingL2Cache() { return Ready(); }
FAKE cuProfilerStart() {
  Note("start");
  return Ready();
}
FAKE cuProfilerStop() {
  Note("stop");
  return Ready();
}
FAKE cuStreamCreate(Stream* stream, unsigned int) {
  *stream = reinterpret_cast<Stream>(&sticky);
  return Ready();
}
FAKE cuStreamDestroy_v2(Stream) { return Ready(); }
FAKE cuStreamSynchronize(Stream) { return Ready(); }
FAKE cuStreamQuery(Stream) { return getenv("FAKE_CUDA_HANGS") != nullptr ? kNotReady : Ready(); }
FAKE cuEventCreate(Event* event, unsigned int) {
  *event = reinterpret_cast<Event>(&sticky);
  return Ready();
}
FAKE cuEventDestroy_v2(Event) { return Ready(); }
FAKE cuEventRecord(Event, Stream) { return Ready(); }
FAKE cuEventSynchronize(Event) { return Ready(); }
FAKE cuEventElapsedTime(float* ms, Event, Event) {
  const char* const wanted = getenv("FAKE_CUDA_EVENT_MS");
  *ms = wanted != nullptr ? static_cast<float>(atof(wanted)) : 1;
  return Ready();
}

// The image's length is not given: the last thing in it is its table of sections.
FAKE cuModuleLoadData(Module* module, const void* image) {
  if (const Result ready = Ready(); ready != kSuccess) return ready;
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return static_cast<Result>(200);
  const size_t bytes = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  const int file = memfd_create("fake-module", 0);
  if (file < 0 || write(file, image, bytes) != static_cast<ssize_t>(bytes)) return kOutOfMemory;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  *module = static_cast<Module>(dlopen(path, RTLD_NOW | RTLD_LOCAL));
  if (*module == nullptr) fprintf(stderr, "fake CUDA: %s\n", dlerror());
  return *module == nullptr ? static_cast<Result>(200) : kSuccess;
}
FAKE cuModuleUnload(Module) { return Ready(); }
FAKE cuModuleGetFunction(Function* function, Module module, const char* name) {
  *function = reinterpret_cast<Function>(dlsym(module, name));
  return *function == nullptr ? static_cast<Result>(500) : Ready();
}
FAKE cuFuncGetAttribute(int* value, FunctionAttribute, Function) {
  *value = 16;
  return Ready();
}
FAKE cuFuncSetAttribute(Function function, FunctionAttribute attribute, int value) {
  if (attribute != kFunctionMaxDynamicSharedBytes) return Ready();
  if (value > static_cast<int>(kSharedBytesMax)) return kInvalidValue;
  shared_bytes[function] = value;
  return Ready();
}
FAKE cuFuncGetParamInfo(Function function, size_t index, size_t* offset, size_t* bytes) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(function), &info) == 0 || info.dli_sname == nullptr)
    return kInvalidValue;
  char name[300];
  snprintf(name, sizeof name, "%s_parameters", info.dli_sname);
  void* library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  const auto* sizes = static_cast<const size_t*>(dlsym(library, name));
  if (sizes == nullptr) return kInvalidValue;
  *offset = 0;
  for (size_t i = 0; i < index; ++i) {
    if (sizes[i] == 0) return kInvalidValue;
    *offset += sizes[i];
  }
  *bytes = sizes[index];
  return *bytes == 0 ? kInvalidValue : kSuccess;
}
FAKE cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function, int, size_t) {
  *blocks = 2;
  return Ready();
}
namespace {
void RunKernel(const LaunchConfig* config, Function function, void** values) {
  FakeLaunch launch{config, values};
  reinterpret_cast<void (*)(FakeLaunch&)>(function)(launch);
  sticky = launch.result;
  TellCupti(*config, function);
}
}  // namespace
FAKE cuLaunchKernelEx(const LaunchConfig* config, Function function, void** values, void**) {
  if (const Result ready = Ready(); ready != kSuccess) return ready;
  const auto threads = uint64_t{config->block_x} * config->block_y * config->block_z;
  const auto blocks = uint64_t{config->grid_x} * config->grid_y * config->grid_z;
  const auto allowed = shared_bytes.contains(function)
                           ? static_cast<unsigned>(shared_bytes[function])
                           : kSharedBytesByDefault;
  if (threads == 0 || threads > 1024 || blocks == 0 || config->shared_bytes > allowed)
    return kInvalidValue;
  if (capturing != nullptr && config->stream != nullptr) {
    CapturedLaunch launch{*config, function, {}};
    size_t offset = 0, bytes = 0;
    for (size_t i = 0; cuFuncGetParamInfo(function, i, &offset, &bytes) == kSuccess; ++i)
      memcpy(&launch.values.emplace_back(), values[i], bytes);
    capturing->push_back(std::move(launch));
    return kSuccess;
  }
  Note("launch");
  RunKernel(config, function, values);
  return kSuccess;  // the device is asynchronous: its errors come with the next call
}
FAKE cuStreamBeginCapture_v2(Stream stream, int) {
  if (getenv("FAKE_CUDA_NO_GRAPHS") != nullptr) return static_cast<Result>(801);  // not supported
  if (stream == nullptr || capturing != nullptr) return kInvalidValue;
  capturing = new Captured;
  return Ready();
}
FAKE cuStreamEndCapture(Stream, Graph* graph) {
  if (capturing == nullptr) return kInvalidValue;
  *graph = reinterpret_cast<Graph>(capturing);
  capturing = nullptr;
  return Ready();
}
FAKE cuGraphDestroy(Graph graph) {
  delete reinterpret_cast<Captured*>(graph);
  return Ready();
}
FAKE cuGraphInstantiateWithFlags(GraphExecutable* executable, Graph graph, unsigned long long) {
  *executable =
      reinterpret_cast<GraphExecutable>(new Captured(*reinterpret_cast<Captured*>(graph)));
  uploaded = false;
  return Ready();
}
FAKE cuGraphUpload(GraphExecutable, Stream) {
  uploaded = true;
  return Ready();
}
FAKE cuGraphLaunch(GraphExecutable executable, Stream) {
  if (!uploaded) return kInvalidValue;  // stricter than the real one, which would take longer
  for (CapturedLaunch& launch : *reinterpret_cast<Captured*>(executable)) {
    std::vector<void*> values;
    for (TensorMap& value : launch.values) values.push_back(&value);
    RunKernel(&launch.config, launch.function, values.data());
  }
  return kSuccess;
}
FAKE cuGraphExecDestroy(GraphExecutable executable) {
  delete reinterpret_cast<Captured*>(executable);
  return Ready();
}
FAKE cuMemGetInfo_v2(size_t* available, size_t* total) {
  const char* free_gigabytes = getenv("FAKE_CUDA_FREE_GIB");
  *available = size_t{free_gigabytes != nullptr ? strtoull(free_gigabytes, nullptr, 10) : 6} << 30;
  *total = size_t{8} << 30;
  return Ready();
}
FAKE cuMemAlloc_v2(Pointer* pointer, size_t bytes) {
  if (bytes == 0) return kInvalidValue;
  if (bytes > size_t{8} << 30) return kOutOfMemory;
  *pointer = reinterpret_cast<Pointer>(aligned_alloc(256, (bytes + 255) / 256 * 256));
  return *pointer == 0 ? kOutOfMemory : Ready();
}
FAKE cuMemFree_v2(Pointer pointer) {
  free(reinterpret_cast<void*>(pointer));
  return Ready();
}
FAKE cuMemcpyHtoDAsync_v2(Pointer target, const void* source, size_t bytes, Stream) {
  memcpy(reinterpret_cast<void*>(target), source, bytes);
  return Ready();
}
FAKE cuMemcpyDtoHAsync_v2(void* target, Pointer source, size_t bytes, Stream) {
  memcpy(target, reinterpret_cast<void*>(source), bytes);
  return Ready();
}
FAKE cuMemcpyDtoDAsync_v2(Pointer target, Pointer source, size_t bytes, Stream) {
  memcpy(reinterpret_cast<void*>(target), reinterpret_cast<void*>(source), bytes);
  return Ready();
}
FAKE cuMemsetD32Async(Pointer target, unsigned int word, size_t count, Stream) {
  if (getenv("FAKE_CUDA_LOSES_WRITES") != nullptr) return Ready();
  for (size_t i = 0; i < count; ++i) reinterpret_cast<unsigned int*>(target)[i] = word;
  return Ready();
}
FAKE cuMemGetAllocationGranularity(size_t* bytes, const AllocationProperties*, int) {
  *bytes = kGranularity;
  return kSuccess;
}
FAKE cuMemCreate(AllocationHandle* handle, size_t bytes, const AllocationProperties* properties,
                 unsigned long long) {
  if (!IsGranular(bytes) || properties->type != 1) return kInvalidValue;
  if (bytes > size_t{8} << 30) return kOutOfMemory;
  const int file = memfd_create("fake-device-memory", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  *handle = static_cast<AllocationHandle>(file);
  return Ready();
}
FAKE cuMemRelease(AllocationHandle handle) {
  return close(static_cast<int>(handle)) == 0 ? kSuccess : kInvalidValue;
}
FAKE cuMemExportToShareableHandle(void* descriptor, AllocationHandle handle, int type,
                                  unsigned long long) {
  if (type != 1) return kInvalidValue;
  const int copy = fcntl(static_cast<int>(handle), F_DUPFD_CLOEXEC, 3);
  memcpy(descriptor, &copy, sizeof copy);
  return copy < 0 ? kInvalidValue : kSuccess;
}
FAKE cuMemImportFromShareableHandle(AllocationHandle* handle, void* descriptor, int type) {
  if (const Result ready = Ready(); ready != kSuccess) return ready;
  const int copy =
      fcntl(static_cast<int>(reinterpret_cast<intptr_t>(descriptor)), F_DUPFD_CLOEXEC, 3);
  *handle = static_cast<AllocationHandle>(copy);
  return copy < 0 || type != 1 ? kInvalidValue : kSuccess;
}
FAKE cuMemAddressReserve(Pointer* address, size_t bytes, size_t, Pointer, unsigned long long) {
  if (!IsGranular(bytes)) return kInvalidValue;
  void* memory =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return kOutOfMemory;
  *address = reinterpret_cast<Pointer>(memory);
  reserved[*address] = bytes;
  return kSuccess;
}
FAKE cuMemAddressFree(Pointer address, size_t bytes) {
  reserved.erase(address);
  return munmap(reinterpret_cast<void*>(address), bytes) == 0 ? kSuccess : kInvalidValue;
}
FAKE cuMemMap(Pointer address, size_t bytes, size_t offset, AllocationHandle handle,
              unsigned long long) {
  struct stat status;
  if (!reserved.contains(address) || offset != 0 || !IsGranular(bytes) ||
      fstat(static_cast<int>(handle), &status) != 0 || static_cast<size_t>(status.st_size) < bytes)
    return kInvalidValue;
  void* memory = mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
                      static_cast<int>(handle), 0);
  return memory == MAP_FAILED ? kInvalidValue : kSuccess;
}
FAKE cuMemUnmap(Pointer address, size_t bytes) {
  void* memory = mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return memory == MAP_FAILED ? kInvalidValue : kSuccess;
}
FAKE cuMemSetAccess(Pointer address, size_t bytes, const AccessDescription* access, size_t count) {
  if (count != 1 || access->flags != 3) return kInvalidValue;
  return mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE) == 0
             ? kSuccess
             : kInvalidValue;
}
// The fake's tensor map says what it was made of: address, rank, then shape and box.
FAKE cuTensorMapEncodeTiled(TensorMap* map, TensorMapType, uint32_t rank, void* address,
                            const uint64_t* shape, const uint64_t* strides, const uint32_t* box,
                            const uint32_t*, int, int, int, int) {
  if (rank == 0 || rank > 5 || reinterpret_cast<uintptr_t>(address) % 16 != 0) return kInvalidValue;
  memset(map, 0, sizeof *map);
  map->opaque[0] = reinterpret_cast<uint64_t>(address);
  map->opaque[1] = rank;
  for (uint32_t axis = 0; axis < rank; ++axis) {
    if (axis + 1 < rank && strides[axis] % 16 != 0) return kInvalidValue;
    map->opaque[2 + axis] = shape[axis];
    map->opaque[7 + axis] = box[axis];
  }
  return kSuccess;
}
