// Theory of operation. CUPTI asks for buffers, fills them with records and gives them back: on this
// thread when it is told to flush, or earlier on one of its own. Hence the lock, and hence records
// go straight into the judge's region. CUPTI may be opened late: it sees all later launches, single
// calls and graphs alike.
#include "kernel_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cupti.h"

namespace assay::trace {
namespace {

using cuda::CuptiResult;

constexpr size_t kBufferBytes = 1 << 20;
constexpr size_t kRecordAlignment = 8;
constexpr uint32_t kFlushForced = 1;  // records that are not complete are given back, too

struct Tracer {
  cuda::Cupti cupti;
  bool opened = false;
  wire::KernelTrace* trace = nullptr;  // null: nothing is noted
  bool locked = false;
};
Tracer tracer;

class Lock {
 public:
  Lock() {
    while (__atomic_test_and_set(&tracer.locked, __ATOMIC_ACQUIRE)) {
    }
  }
  ~Lock() { __atomic_clear(&tracer.locked, __ATOMIC_RELEASE); }
};

void Note(wire::KernelTrace& trace, const char* name, uint64_t time_ns) {
  if (name == nullptr) name = "";
  const uint32_t count = trace.kernel_count;
  for (uint32_t i = 0; i < wire::kTracedKernelsMax; ++i) {
    wire::TracedKernel& kernel = trace.kernels[i];
    if (i >= count) {
      snprintf(kernel.name, sizeof kernel.name, "%s", name);
      kernel.time_ns = kernel.runs = 0;
      trace.kernel_count = i + 1;
    }
    if (i >= count || strncmp(kernel.name, name, sizeof kernel.name - 1) == 0) {
      kernel.time_ns += time_ns;
      ++kernel.runs;
      return;
    }
  }
  trace.untold_ns += time_ns;
}

void GiveBuffer(uint8_t** buffer, size_t* size_bytes, size_t* records_max) {
  void* memory = nullptr;
  if (posix_memalign(&memory, kRecordAlignment, kBufferBytes) != 0) memory = nullptr;
  *buffer = static_cast<uint8_t*>(memory);
  *size_bytes = memory == nullptr ? 0 : kBufferBytes;
  *records_max = 0;  // as many as fit
}

void TakeBuffer(void*, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  void* record = nullptr;
  const Lock lock;
  while (tracer.trace != nullptr &&
         tracer.cupti.next_record(buffer, valid_bytes, &record) == cuda::kCuptiSuccess) {
    const auto& kernel = *static_cast<const cuda::KernelActivity*>(record);
    if (kernel.kind == cuda::kActivityConcurrentKernel && kernel.end >= kernel.start)
      Note(*tracer.trace, kernel.name, kernel.end - kernel.start);
  }
  free(buffer);
}

void Fail(const char* doing, CuptiResult result) {
  const Lock lock;
  if (tracer.trace == nullptr) return;
  const char* words = nullptr;
  if (tracer.cupti.result_text(result, &words) != cuda::kCuptiSuccess || words == nullptr)
    words = "an error without a name";
  snprintf(tracer.trace->message, sizeof tracer.trace->message, "CUPTI cannot %s: %s (%d)", doing,
           words, static_cast<int>(result));
  tracer.trace->failed = 1;
  tracer.trace = nullptr;
}

}  // namespace

void Start(wire::KernelTrace* trace) {
  memset(trace, 0, sizeof *trace);
  if (!tracer.opened) {
    if (!cuda::OpenCupti(&tracer.cupti, nullptr, trace->message, sizeof trace->message)) {
      trace->failed = 1;
      return;
    }
    tracer.opened = true;
  }
  {
    const Lock lock;
    tracer.trace = trace;
  }
  CuptiResult result = tracer.cupti.register_callbacks(GiveBuffer, TakeBuffer);
  if (result != cuda::kCuptiSuccess) return Fail("hand over records", result);
  result = tracer.cupti.enable(cuda::kActivityConcurrentKernel);
  if (result != cuda::kCuptiSuccess) Fail("note kernels", result);
}

void Stop() {
  if (tracer.trace == nullptr) return;
  const CuptiResult result = tracer.cupti.flush_all(kFlushForced);
  tracer.cupti.disable(cuda::kActivityConcurrentKernel);
  if (result != cuda::kCuptiSuccess) return Fail("hand over what it noted", result);
  const Lock lock;
  tracer.trace = nullptr;
}

}  // namespace assay::trace
