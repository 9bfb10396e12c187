// One pair of the speed gate: a fresh host of the candidate's beside one of its opponent's, and
// interleaved blocks of both on the same new values, every call checked. A pair gives one log
// ratio.
#pragma once

#include <functional>
#include <optional>

#include "speed/gate_parts.h"
#include "speed/warm_up.h"
#include "speed/watch.h"

namespace assay {

struct PairOutcome {
  PairEnd end = PairEnd::kGood;
  double log_ratio = 0;  // if it ended well
  CallTimes row;         // if it ended well: calls in a row, medians over its blocks
};

// Chooses the calls of a block from the opponent's time for one call and the candidate's rough one.
// Errors: trouble, the opponent's or the oracle's.
HostResult<void> Calibrate(const Gate2Setup& setup, GateParts& parts);

// Measures a pair whose hosts have started: warm-up, rounds, steps. `rest` as in WarmUpPair.
// Errors: trouble, which says whose it is.
HostResult<PairOutcome> MeasurePair(GateParts& parts, Side& reference, Side& candidate,
                                    const std::function<void()>& rest);

// Starts the hosts of pair `index`, measures it, and ends it. `watched`: set if the candidate is to
// be watched after a good end; receives what was seen. Errors: trouble, which says whose it is.
HostResult<PairOutcome> RunPair(const Gate2Setup& setup, GateParts& parts, int index,
                                WatchedTime* watched);

}  // namespace assay
