// Tools that look at a candidate once its verdict is made: one more host of it, under the tool, for
// one call. What comes of it is facts beside the verdict; outcome and numbers stay as they are.
#pragma once

#include <functional>
#include <string>

#include "session/batch.h"
#include "session/host_schedule.h"
#include "session/workbench.h"

namespace assay {

struct ToolSetup {
  Workbench& bench;
  Batch& batch;
  HostSchedule& schedule;
  const BuiltCandidate& candidate;
  std::function<void(const std::string& text)> progress;
};

// What the session's tools see of the candidate, where there are any. Errors: the device does not
// answer any more, kInterrupted; a failure of a tool's own is in the verdict.
Result<void> AddToolFacts(const ToolSetup& setup, Verdict* verdict);

// Whether the device still answers, after a candidate that was killed on it.
Result<void> CheckDevice(Workbench& bench, HostSchedule& schedule, const Verdict& verdict);

}  // namespace assay
