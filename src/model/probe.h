// A short run of a native candidate's calls on the processor, once its verdict is made: facts for
// feedback, which decide nothing. They come from one process each, beside no opponent.
#pragma once

#include <optional>
#include <string>

namespace assay {

// The processor's counters for one call, of all its threads.
struct CallCounts {
  double cycles = 0;
  double instructions = 0;
  double cache_misses = 0;  // of the last level
};

// Calls at a smaller size of the problem.
struct SmallerProbe {
  std::string size;    // "ROWS = 256"
  double bytes = 0;    // that a call must move there
  double share = 0;    // of the bytes that it must move at the whole size, 0 to 1
  double time_ns = 0;  // of one call
};

// Of --probe.
struct ProbeRecord {
  std::string failure;  // why there is nothing; else empty
  int threads = 0;
  double time_ns = 0;       // of one call, in the shortest of a few blocks
  double minor_faults = 0;  // page faults of one call once it is warm
  double major_faults = 0;  // of these that waited for a disk
  std::optional<CallCounts> counts;
  std::string no_counts;                // why there are none
  std::optional<SmallerProbe> smaller;  // absent: no size is half of this one, or it failed there
  std::optional<double> one_thread_ns;  // of one call on one thread; absent: it had no more
};

}  // namespace assay
