// CUPTI, which records the kernels that this process runs on the GPU; opened at run time, as the
// driver is. libc alone. Types and numbers are those of CUPTI's activity interface (CUDA 12.4 and
// newer); cupti_test compares them with cupti.h if that is installed.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace assay::cuda {

enum CuptiResult : int { kCuptiSuccess = 0 };

// Kinds of records.
enum ActivityKind : int { kActivityConcurrentKernel = 10 };

// The common beginning of all versions of a kernel's record (CUpti_ActivityKernel4 to 10); times
// [ns].
struct KernelActivity {
  uint32_t kind;
  uint32_t untold[3];
  uint64_t start;
  uint64_t end;
  uint64_t untold_placement[9];
  const char* name;  // mangled, as in the image
};

// Callbacks: CUPTI asks for a buffer, and gives it back with `valid_bytes` of records.
using RequestBuffer = void (*)(uint8_t** buffer, size_t* size_bytes, size_t* records_max);
using CompleteBuffer = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size_bytes,
                                size_t valid_bytes);

// X(member, symbol, parameters), for every function.
#define ASSAY_CUPTI_FUNCTIONS(X)                                                           \
  X(register_callbacks, "cuptiActivityRegisterCallbacks", (RequestBuffer, CompleteBuffer)) \
  X(enable, "cuptiActivityEnable", (ActivityKind))                                         \
  X(disable, "cuptiActivityDisable", (ActivityKind))                                       \
  X(flush_all, "cuptiActivityFlushAll", (uint32_t))                                        \
  X(next_record, "cuptiActivityGetNextRecord", (uint8_t*, size_t, void**))                 \
  X(result_text, "cuptiGetResultString", (CuptiResult, const char**))

struct Cupti {
#define ASSAY_CUPTI_MEMBER(member, symbol, parameters) CuptiResult(*member) parameters = nullptr;
  ASSAY_CUPTI_FUNCTIONS(ASSAY_CUPTI_MEMBER)
#undef ASSAY_CUPTI_MEMBER
};

// Opens `library`. Null: the one that this process has loaded already (PyTorch loads one, and two
// in a process would disturb each other), else the first that the loader knows, else that of
// $CUDA_HOME or /usr/local/cuda. Returns false if there is none, or it lacks a function; `why` then
// says which, in at most `why_bytes`.
bool OpenCupti(Cupti* cupti, const char* library, char* why, size_t why_bytes);

}  // namespace assay::cuda
