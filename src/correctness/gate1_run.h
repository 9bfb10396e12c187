// Runs gate 1: a candidate's calls on the draws, in one fresh host.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "correctness/call_check.h"
#include "correctness/draw_set.h"
#include "model/verdict.h"
#include "sides/live_host.h"
#include "values/live_slots.h"

namespace assay {

struct Gate1Result {
  Correctness correctness;
  bool lacked_memory = false;  // the reason for its failure
  bool could_not_ask = false;  // as CallCheck's
  bool not_here = false;       // likewise
  bool wrong_values = false;   // its outputs of an ordinary draw have wrong values
  WeightsMatch weights;        // of its host
  double call_ns = 0;          // shortest single call, for calibration alone
  int64_t timed_ns = 0;        // inside blocks
};

// Runs the candidate on every draw in `host`, which must be fresh. A failed comparison is a result
// with `passed` false; trouble of the host is the error.
struct Gate1Setup {
  Oracle& oracle;
  const OracleOptions& options;  // of a second reference at this size
  LiveSlots& live;
  const DrawSet& draws;
  CompareRule rule;
  std::string tolerance_text;
  double call_timeout_s = 10;
  bool constant_weights = false;  // of all draws: as the reference constructed them
  // Its calls get the inputs of another slot than their module's: a Python host's, of a problem
  // that changes none of its inputs, with three slots at least. Who keeps inputs is then wrong.
  bool moves_inputs = false;
  // Compares the state that one call leaves in a Python host's module, too.
  bool compares_state = false;
  std::function<void(size_t, size_t)> progress;
};
HostResult<Gate1Result> RunGate1(const Gate1Setup& setup, LiveHost& host);

}  // namespace assay
