// Device memory for results that stay where forward put them (blocks.py). The judge lends a region
// that it can read itself, and PyTorch's unchanged allocator takes its segments from there. This
// library is preloaded, so that these two functions come before the CUDA runtime's. Before the
// first block of that kind, and for sizes that no result has, they pass calls on.
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "spin_lock.h"

#define ASSAY_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// What the allocator asks for is a multiple of this, and so is all that is served.
constexpr uint64_t kUnitBytes = uint64_t{2} << 20;
constexpr uint32_t kUnitsMax = 1 << 16;  // 128 GiB
constexpr size_t kSizesMax = 64;
constexpr uint32_t kNone = UINT32_MAX;
constexpr int kNoRuntime = 3;  // cudaErrorInitializationError

// A size that is served, and the pieces of it that are free.
struct Size {
  uint32_t units;
  uint32_t free;  // the unit that it begins at, or kNone
};

struct Arena {
  char lock = 0;
  uint64_t begin = 0, end = 0;  // 0: nothing is served
  uint32_t unit_count = 0, next = 0;
  size_t size_count = 0;
  Size sizes[kSizesMax] = {};
  uint32_t units[kUnitsMax] = {};      // of the piece that begins there
  uint32_t next_free[kUnitsMax] = {};  // of the same size
};
Arena arena;

// Null: this size is not served.
Size* Find(uint64_t size_bytes) {
  for (size_t i = 0; i < arena.size_count; ++i)
    if (arena.sizes[i].units * kUnitBytes == size_bytes) return &arena.sizes[i];
  return nullptr;
}

uint64_t Take(uint64_t size_bytes) {
  const SpinLocked locked(&arena.lock);
  Size* const size = Find(size_bytes);
  if (size == nullptr) return 0;
  uint32_t unit = size->free;
  if (unit != kNone) {
    size->free = arena.next_free[unit];
  } else {
    if (arena.unit_count - arena.next < size->units) return 0;
    unit = arena.next;
    arena.next += size->units;
    arena.units[unit] = size->units;
  }
  return arena.begin + unit * kUnitBytes;
}

// Nothing happens for what is no piece's begin.
void Give(uint64_t address) {
  const SpinLocked locked(&arena.lock);
  const uint64_t offset = address - arena.begin;
  const auto unit = static_cast<uint32_t>(offset / kUnitBytes);
  if (offset % kUnitBytes != 0 || unit >= arena.next || arena.units[unit] == 0) return;
  if (Size* const size = Find(arena.units[unit] * kUnitBytes); size != nullptr) {
    arena.next_free[unit] = size->free;
    size->free = unit;
  }
}

// The path of the CUDA runtime that is loaded, whatever its version.
int FindRuntime(dl_phdr_info* info, size_t, void* found) {
  const char* const name = strrchr(info->dlpi_name, '/');
  if (name == nullptr || strncmp(name + 1, "libcudart", 9) != 0) return 0;
  strncpy(static_cast<char*>(found), info->dlpi_name, PATH_MAX - 1);
  return 1;
}

// The runtime's own function, which this library stands before; null: there is no runtime. Kept in
// `*kept` (a static of a function would need more than the C library). `caller`: in a library that
// may have the runtime within itself.
void* Real(const char* name, void** kept, void* caller) {
  if (void* const known = __atomic_load_n(kept, __ATOMIC_RELAXED); known != nullptr) return known;
  char path[PATH_MAX] = {};
  if (dl_iterate_phdr(FindRuntime, path) == 0) {
    Dl_info info;
    if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return nullptr;
    strncpy(path, info.dli_fname, PATH_MAX - 1);
  }
  void* const runtime = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  void* const found = runtime == nullptr ? nullptr : dlsym(runtime, name);
  __atomic_store_n(kept, found, __ATOMIC_RELAXED);
  return found;
}

void* real_malloc = nullptr;
void* real_free = nullptr;
void* real_synchronize = nullptr;

}  // namespace

// From now on memory of these sizes, and what PyTorch's allocator takes where it needs less, comes
// from the region, as long as that lasts. Once a process.
ASSAY_EXPORT void AssayServeDeviceResults(uint64_t begin, uint64_t size_bytes,
                                          const uint64_t* sizes, uint64_t count) {
  const SpinLocked locked(&arena.lock);
  if (arena.begin != 0) return;
  const uint64_t of_the_allocator[] = {kUnitBytes, 10 * kUnitBytes};
  const auto add = [](uint64_t size) {
    const uint64_t units = (size + kUnitBytes - 1) / kUnitBytes;
    if (units == 0 || units > kUnitsMax || arena.size_count == kSizesMax) return;
    if (Find(units * kUnitBytes) == nullptr)
      arena.sizes[arena.size_count++] = {static_cast<uint32_t>(units), kNone};
  };
  for (const uint64_t size : of_the_allocator) add(size);
  for (uint64_t i = 0; i < count; ++i) add(sizes[i]);
  const uint64_t units = size_bytes / kUnitBytes;
  arena.unit_count = static_cast<uint32_t>(units < kUnitsMax ? units : kUnitsMax);
  arena.end = begin + arena.unit_count * kUnitBytes;
  arena.begin = begin;
}

ASSAY_EXPORT int cudaMalloc(void** pointer, size_t size_bytes) {
  if (arena.begin != 0 && pointer != nullptr)
    if (const uint64_t taken = Take(size_bytes); taken != 0) {
      *pointer = reinterpret_cast<void*>(taken);
      return 0;
    }
  void* const real = Real("cudaMalloc", &real_malloc, __builtin_return_address(0));
  return real == nullptr ? kNoRuntime
                         : reinterpret_cast<int (*)(void**, size_t)>(real)(pointer, size_bytes);
}

ASSAY_EXPORT int cudaFree(void* pointer) {
  const uint64_t address = reinterpret_cast<uint64_t>(pointer);
  if (address >= arena.begin && address < arena.end) {
    // As the runtime's own: what still works on it ends first.
    void* const synchronize =
        Real("cudaDeviceSynchronize", &real_synchronize, __builtin_return_address(0));
    const int result =
        synchronize == nullptr ? kNoRuntime : reinterpret_cast<int (*)()>(synchronize)();
    Give(address);
    return result;
  }
  void* const real = Real("cudaFree", &real_free, __builtin_return_address(0));
  return real == nullptr ? kNoRuntime : reinterpret_cast<int (*)(void*)>(real)(pointer);
}
