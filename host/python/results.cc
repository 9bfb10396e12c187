// Memory for results that stay where forward put them (blocks.py): each call of a block leaves one,
// and the next block's calls get the same memory again. The C library's allocator does not do that:
// a freed aligned piece is too small for the next such piece, so every block would fault in new
// pages. This library is preloaded, so that these functions replace the process's. Before the first
// block of that kind, and for small pieces always, they pass calls on.
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "spin_lock.h"

extern "C" {
// The C library's own, under the names that it exports for such a purpose.
void* __libc_memalign(size_t alignment, size_t size_bytes);
void* __libc_realloc(void* piece, size_t size_bytes);
void __libc_free(void* piece);
}

#define ASSAY_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t kAlignment = 64;  // PyTorch's
constexpr size_t kSmallestBytes = 1024;
constexpr size_t kSizesMax = 64;

// Before each piece.
struct alignas(kAlignment) Head {
  size_t size_bytes;
  Head* next_free;
};

// A size that is served, and the pieces of it that are free, the last one that was freed first.
struct Size {
  size_t size_bytes;
  Head* free;
};

struct Arena {
  char lock = 0;
  size_t size_count = 0;
  char* begin = nullptr;  // null: nothing is served
  char* next = nullptr;
  char* end = nullptr;
  Size sizes[kSizesMax] = {};
};
Arena arena;

bool IsOurs(const void* piece) {
  const char* const at = static_cast<const char*>(piece);
  return at >= arena.begin && at < arena.end;
}

Head* HeadOf(void* piece) { return static_cast<Head*>(piece) - 1; }

size_t Rounded(size_t size_bytes) {
  return (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Null: this size is not served.
Size* Find(size_t rounded) {
  for (size_t i = 0; i < arena.size_count; ++i)
    if (arena.sizes[i].size_bytes == rounded) return &arena.sizes[i];
  return nullptr;
}

void* Take(size_t size_bytes) {
  const size_t rounded = Rounded(size_bytes);
  const SpinLocked locked(&arena.lock);
  Size* const size = Find(rounded);
  if (size == nullptr) return nullptr;
  if (Head* const head = size->free; head != nullptr) {
    size->free = head->next_free;
    return head + 1;
  }
  if (static_cast<size_t>(arena.end - arena.next) < rounded + sizeof(Head)) return nullptr;
  Head* const head = reinterpret_cast<Head*>(arena.next);
  arena.next += rounded + sizeof(Head);
  head->size_bytes = rounded;
  return head + 1;
}

void Give(void* piece) {
  Head* const head = HeadOf(piece);
  const SpinLocked locked(&arena.lock);
  if (Size* const size = Find(head->size_bytes); size != nullptr) {
    head->next_free = size->free;
    size->free = head;
  }
}

}  // namespace

// From now on memory for tensors of these sizes comes from `size_bytes` of its own, as long as they
// last. Others would pile up there: no piece is used for another size.
ASSAY_EXPORT void AssayServeResults(size_t size_bytes, const uint64_t* sizes, size_t count) {
  if (arena.begin != nullptr) return;
  for (size_t i = 0; i < count && arena.size_count < kSizesMax; ++i)
    if (sizes[i] >= kSmallestBytes) arena.sizes[arena.size_count++].size_bytes = Rounded(sizes[i]);
  void* const memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  const SpinLocked locked(&arena.lock);
  arena.next = static_cast<char*>(memory);
  arena.end = arena.next + size_bytes;
  arena.begin = arena.next;
}

ASSAY_EXPORT int posix_memalign(void** piece, size_t alignment, size_t size_bytes) {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
    return EINVAL;
  void* taken = nullptr;
  if (arena.begin != nullptr && alignment <= kAlignment && size_bytes >= kSmallestBytes)
    taken = Take(size_bytes);
  if (taken == nullptr) taken = __libc_memalign(alignment, size_bytes);
  if (taken == nullptr) return ENOMEM;
  *piece = taken;
  return 0;
}

ASSAY_EXPORT void free(void* piece) {
  if (piece != nullptr && IsOurs(piece)) {
    Give(piece);
  } else {
    __libc_free(piece);
  }
}

ASSAY_EXPORT void* realloc(void* piece, size_t size_bytes) {
  if (piece == nullptr || !IsOurs(piece)) return __libc_realloc(piece, size_bytes);
  if (size_bytes == 0) {
    Give(piece);
    return nullptr;
  }
  void* const larger = malloc(size_bytes);
  if (larger == nullptr) return nullptr;
  const size_t had_bytes = HeadOf(piece)->size_bytes;
  memcpy(larger, piece, had_bytes < size_bytes ? had_bytes : size_bytes);
  Give(piece);
  return larger;
}

ASSAY_EXPORT size_t malloc_usable_size(void* piece) {
  if (piece != nullptr && IsOurs(piece)) return HeadOf(piece)->size_bytes;
  // Asked each time: few ask, and a static of a function needs more than the C library.
  auto* const real = reinterpret_cast<size_t (*)(void*)>(dlsym(RTLD_NEXT, "malloc_usable_size"));
  return real == nullptr ? 0 : real(piece);
}
