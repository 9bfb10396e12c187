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
  bool promoted = false;  // it takes everybody's jobs, but its owner's unless is_mentors
  std::string last_seen;  // ISO 8601, UTC
  int64_t job = 0;        // at work on; 0: none
  bool is_there = true;   // it was seen lately
  int64_t id = 0;
  int64_t checked = 0, differing = 0, undecided = 0;  // of its verdicts, by spot checks
  bool is_mentors = false;                            // its owner is a mentor of the server
};

struct MachineView {
  std::vector<RunnerLine> runners;
  std::vector<MachineProfile> profiles;  // one a machine
  int64_t queued = 0, running = 0;
  double minutes_a_job = 0;  // median of the last ones; 0: not known
  int64_t for_nobody = 0;    // jobs of the queue that no runner that is there takes
  bool may_promote = false;  // the viewer may
  std::string server = {};   // "https://assay.example.org", for commands
};

std::string RenderMachinePage(const MachineView& view, PageFrame frame);

}  // namespace assay
