// A tool that runs a host and looks at what it does on the GPU: the host's sandbox, loosened by
// what such a tool needs (docs/sandbox.md). Nothing that is decided may come from a host under a
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
  // argv that runs this one under it.
  std::function<std::vector<std::string>(const std::vector<std::string>&)> command;
  std::string report;  // a file below /tmp that it writes; empty: it prints
  std::map<std::string, std::string> environment = {};  // besides the host's own
};

// Has the host start under the tool: without a lockdown, with processes and the loopback of its own
// network, and with the patience that tools need.
void PutUnderTool(const HostTool& tool, HostOptions* options);

// What a host under a tool may take to start, to load the candidate and to end, and a call [s].
inline constexpr double kToolStepTimeoutS = 120;

}  // namespace assay
