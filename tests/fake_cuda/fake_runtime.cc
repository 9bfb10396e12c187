// A CUDA runtime that counts what it is asked for: what stands before it must pass everything else
// on. Its functions have versions, as the real one's have.
#include <stdlib.h>

#define FAKE extern "C" __attribute__((visibility("default"))) int

namespace {
int allocated = 0, freed = 0, waited = 0;
}

FAKE cudaMalloc(void** pointer, size_t size_bytes) {
  ++allocated;
  *pointer = malloc(size_bytes);
  return *pointer == nullptr ? 2 : 0;
}
FAKE cudaFree(void* pointer) {
  ++freed;
  free(pointer);
  return 0;
}
FAKE cudaDeviceSynchronize() {
  ++waited;
  return 0;
}
FAKE FakeRuntimeAllocated() { return allocated; }
FAKE FakeRuntimeFreed() { return freed; }
FAKE FakeRuntimeWaited() { return waited; }
