// Shares a device's memory among the values of a problem, from shapes alone. Pure.
#pragma once

#include <cstdint>

namespace assay {

// Of one call [bytes].
struct CallBytes {
  uint64_t inputs = 0, weights = 0, outputs = 0;
  uint64_t truth = 0;    // the outputs in float64
  uint64_t working = 0;  // most that is alive inside forward; 0: not known
};

struct MemoryPlan {
  uint32_t masters = 1;     // inputs with native outputs
  uint32_t with_truth = 1;  // of which so many have float64 outputs
  uint32_t slots = 1;       // live ones
};

// Returns what a judgement on a device takes with one master and one live slot [bytes]: both, what
// the oracle takes to fill a master, and of each side the outputs, the results that it leaves, and
// what forward takes.
uint64_t LeastBytes(const CallBytes& call);

// Returns what a judgement takes that may take `memory_bytes` [bytes]: by PlanMemory, with the
// hosts of three pairs and values of other sizes. It may be more than there is.
uint64_t PlannedBytes(const CallBytes& call, uint64_t memory_bytes);

// Returns how many there are of each where `memory_bytes` are free: one at least, more by fixed
// shares as long as the least of the other parts fits beside them.
MemoryPlan PlanMemory(const CallBytes& call, uint64_t memory_bytes);

}  // namespace assay
