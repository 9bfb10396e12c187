// Calls the CUDA runtime that it is linked with, as PyTorch's allocator does.
#include <stddef.h>

extern "C" {
int cudaMalloc(void** pointer, size_t size_bytes);
int cudaFree(void* pointer);

__attribute__((visibility("default"))) void* FakeAllocate(size_t size_bytes) {
  void* pointer = nullptr;
  return cudaMalloc(&pointer, size_bytes) == 0 ? pointer : nullptr;
}
__attribute__((visibility("default"))) int FakeRelease(void* pointer) { return cudaFree(pointer); }
}
