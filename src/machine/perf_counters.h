// Counters of the processor for another process (perf_event_open): all its threads, in user mode.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay {

// An event to count, as perf_event_open's type and config.
struct PerfEvent {
  uint32_t type = 0;
  uint64_t config = 0;
};

// Cycles, instructions, and misses of the last cache.
std::vector<PerfEvent> ProcessorEvents();

class PerfCounters {
 public:
  // Counts from now on, in the threads that the process has and in those that they will start.
  // Errors (kEnvironment) say why these events cannot be counted here.
  static Result<PerfCounters> Open(pid_t pid, const std::vector<PerfEvent>& events);
  // So far, by event.
  std::vector<double> Read() const;

 private:
  PerfCounters() = default;

  size_t events_ = 0;
  std::vector<UniqueFd> counters_;  // of the first thread's events, then the next one's
};

}  // namespace assay
