// Candidates that were judged more than once show how often a difference is claimed where there is
// none. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "model/verdict.h"

namespace assay {

struct Repeats {
  int64_t pairs = 0;     // verdicts on the same source with one before them, both timed
  int64_t improved = 0;  // of these, the later interval lies over the earlier one: a false gain
};

// Pairs are neighbours in time among verdicts on one source at the same problem, constants, machine
// and headline baseline. An improvement is claimed as a search claims it: if the intervals of the
// two speedups separate.
Repeats RepeatsOf(const std::vector<Verdict>& verdicts);

}  // namespace assay
