// The host's half of a timed block (docs/protocol.md), shared by the native and the python host.
// libc only. One thread of the host calls these, in this order, for each block:
//
//   while (AwaitArmed(loop)) {       // sleeps until the judge wakes this process for a block
//     ...restore state...
//     AwaitGo(loop);                 // says ready, then waits; only its return tells the work
//     for (i < loop.call_count) run slot loop.order[i];
//     SayDone(loop, settle_ns);
//   }
#pragma once

#include "wire/types.h"

namespace assay::wire {

struct BlockLoop {
  const Control* control;
  Report* report;
  uint32_t sequence;      // of the block in hand
  uint32_t call_count;    // valid after AwaitGo; at most kCallsMax
  const uint32_t* order;  // slots to run; valid after AwaitGo
};

// Touches every page of the slots, so that no call pays for a first touch. Null: a
// region that is not attached.
void Prefault(const Plan& plan, const void* inputs, const void* outputs, const void* weights);

// Waits for the next block. Returns false when the judge ends the loop.
bool AwaitArmed(BlockLoop& loop);
void AwaitGo(BlockLoop& loop);
// `settle_ns`: time within the block spent copying results into slots.
void SayDone(BlockLoop& loop, uint64_t settle_ns);

}  // namespace assay::wire
