#include "wire/block_loop.h"

#include "wire/doorbell.h"

namespace assay::wire {

namespace {
// About 50 us of spinning before a futex sleep, in the mode where nobody may spin for long.
constexpr uint64_t kBriefSpin = 1000;
}  // namespace

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
