// The machines that judge: their ceilings and noise, the runners, the queue. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/machine_profile.h"
#include "web/layout.h"

namespace assay {

struct RunnerLine {
  std::string name, device, version;
  std::string owner;      // empty: of this server
  bool promoted = false;  // it takes everybody's jobs
  std::string last_seen;  // ISO 8601, UTC
  int64_t job = 0;        // at work on; 0: none
};

struct MachineView {
  std::vector<RunnerLine> runners;
  std::vector<MachineProfile> profiles;  // one a machine
  int64_t queued = 0, running = 0;
  double minutes_a_job = 0;  // median of the last ones; 0: not known
};

std::string RenderMachinePage(const MachineView& view, PageFrame frame);

}  // namespace assay
