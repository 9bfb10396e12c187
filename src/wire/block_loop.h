// The host's half of a timed block (docs/protocol.md), shared by the native and the python host.
// libc only. One thread of the host calls these, in this order, for each block:
//
//   while (AwaitArmed(loop)) {       // asleep until the judge wakes this process for a block
//     ...restore state...
//     AwaitGo(loop);                 // says ready, then waits; the work is known only on return
//     for (i < loop.call_count) run slot loop.order[i];
//     SayDone(loop, settle_ns);
//   }
#pragma once

#include "wire/types.h"

namespace assay::wire {

struct BlockLoop {
  const Control* control;
  Report* report;
  uint32_t sequence;    // of the block in hand
  uint32_t call_count;  // valid after AwaitGo; at most kCallsMax
  const uint32_t* order;
};

// Touches every page of the slots that blocks will use and of the weights, so that no call pays for
// a first touch. Regions that are not attached are null.
void Prefault(const Plan& plan, const void* inputs, const void* outputs, const void* weights);

// Waits for the next block. False when the judge ends the loop.
bool AwaitArmed(BlockLoop& loop);
void AwaitGo(BlockLoop& loop);
void SayDone(BlockLoop& loop, uint64_t settle_ns);

}  // namespace assay::wire
