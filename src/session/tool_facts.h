// Runs tools on a candidate once its verdict is made: one more host, under the tool, for one call.
// Adds facts to the verdict; outcome and numbers stay as they are.
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

// Adds the findings of the session's tools, if there are any. A tool's own failure is in the
// verdict. Errors: the device does not answer any more; kInterrupted.
Result<void> AddToolFacts(const ToolSetup& setup, Verdict* verdict);

// Fails if the device does not answer any more after a candidate was killed on it.
Result<void> CheckDevice(Workbench& bench, HostSchedule& schedule, const Verdict& verdict);

}  // namespace assay
