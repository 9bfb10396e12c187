// CUPTI, which tells a process what ran on the GPU for it, opened at run time as the driver is.
// libc alone. Types and numbers are those of CUPTI's activity interface (CUDA 12.4 and newer);
// cupti_test compares them with cupti.h where that is installed.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace assay::cuda {

enum CuptiResult : int { kCuptiSuccess = 0 };

// Kinds of records.
enum ActivityKind : int { kActivityConcurrentKernel = 10 };

// What all versions of a kernel's record begin with (CUpti_ActivityKernel4 to 10); times [ns].
struct KernelActivity {
  uint32_t kind;
  uint32_t untold[3];
  uint64_t start;
  uint64_t end;
  uint64_t untold_placement[9];
  const char* name;  // as in the image: mangled
};

// Where CUPTI gets a buffer for records, and gives it back with so many bytes of them.
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

// Opens `library`; null: the one that this process has loaded, as PyTorch does, else the first that
// the loader knows, else that of $CUDA_HOME or
// /usr/local/cuda: two of them in one process would be in each other's way. False where there is
// none; `why` then says so, bounded to `why_bytes`.
bool OpenCupti(Cupti* cupti, const char* library, char* why, size_t why_bytes);

}  // namespace assay::cuda
