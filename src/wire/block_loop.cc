#include "wire/block_loop.h"

#include "wire/doorbell.h"

namespace assay::wire {

namespace {
// About 50 us of spinning before a futex sleep, in the mode where nobody may spin for long.
constexpr uint64_t kBriefSpin = 1000;

void Touch(const void* data, uint64_t size_bytes) {
  const volatile char* bytes = static_cast<const char*>(data);
  if (bytes == nullptr) return;
  for (uint64_t offset = 0; offset < size_bytes; offset += 4096) (void)bytes[offset];
}
}  // namespace

void Prefault(const Plan& plan, const void* inputs, const void* outputs, const void* weights) {
  // A read maps a page of shared memory for writing too, where the mapping allows it.
  Touch(inputs, plan.slot_count * plan.input_stride);
  Touch(outputs, plan.slot_count * plan.output_stride);
  Touch(weights, plan.slot_count * plan.weights_stride);
}

bool AwaitArmed(BlockLoop& loop) {
  const Control& control = *loop.control;
  while (true) {
    const uint32_t armed = LoadAcquire(control.armed);
    if (armed != loop.sequence) {
      loop.sequence = armed;
      return __atomic_load_n(&control.call_count, __ATOMIC_ACQUIRE) != kLeaveBlocks;
    }
    FutexWait(control.armed, armed, 1'000'000'000);
  }
}

void AwaitGo(BlockLoop& loop) {
  const bool spin = LoadAcquire(loop.control->spin) != 0;
  Ring(loop.report->ready, loop.sequence, true);
  AwaitValue(loop.control->go, loop.sequence, spin ? UINT64_MAX : kBriefSpin);
  const uint32_t count = loop.control->call_count;
  loop.call_count = count < kCallsMax ? count : kCallsMax;
  loop.order = loop.control->order;
}

void SayDone(BlockLoop& loop, uint64_t settle_ns) {
  loop.report->settle_ns = settle_ns;
  Ring(loop.report->done, loop.sequence, LoadAcquire(loop.control->spin) == 0);
}

}  // namespace assay::wire
