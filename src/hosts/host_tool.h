// Runs a host under a tool that watches its work on the GPU, in the host's sandbox with the
// permissions that such a tool needs (docs/sandbox.md). No decision may rest on a host under a
// tool.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hosts/host.h"
#include "toolchain/gpu_tools.h"

namespace assay {

struct HostTool {
  GpuTool program;
  // Returns the argv that runs the given argv under the tool.
  std::function<std::vector<std::string>(const std::vector<std::string>&)> command;
  std::string report;  // file below /tmp that it writes; empty: it prints
  std::map<std::string, std::string> environment = {};  // besides the host's own
};

// Changes `options` so that the host starts under the tool: without lockdown, with new processes
// and the loopback of its own network allowed, and with longer timeouts.
void PutUnderTool(const HostTool& tool, HostOptions* options);

// Timeout of each step of a host under a tool: start, load of the candidate, call, end [s].
inline constexpr double kToolStepTimeoutS = 120;

}  // namespace assay
