// Runs steps: single calls of a pair's two sides, outside of any row of calls (rules/steps.h). One
// slot holds new values, so nothing can be computed ahead.
#pragma once

#include "speed/gate_parts.h"

namespace assay {

// The facts of the pair that a step is compared with.
struct PairFacts {
  CallTimes row;                  // calls in a row, medians over the pair's blocks
  int64_t opponents_look_ns = 0;  // the judge's look at the opponent's outputs, the median
  // A step's waking up to this is free; nullopt: all is, as the judge's own code wakes.
  std::optional<int64_t> wake_free_ns;
};

// Runs the steps of a pair, and adds them to the ledger. Returns false if a call of the candidate
// was wrong: the ledger's checks say how. Errors: trouble, which says whose it is.
HostResult<bool> RunSteps(GateParts& parts, const PairFacts& pair, Side& reference,
                          Side& candidate);

}  // namespace assay
