// The tools that ProbeSandbox found, for the launching code alone.
#pragma once

#include <string>

#include "sandbox/cgroup.h"
#include "sandbox/command.h"
#include "sandbox/sandbox.h"

namespace assay {

struct SandboxTools {
  Bubblewrap bubblewrap;
  std::string confine;   // content of the helper
  std::string breakout;  // likewise
  SandboxFilters filters;
  GroupFolders groups;
  bool own_uid = false;
};

// The tools of this machine, found once a process.
const SandboxTools& ProbedSandboxTools();

// RunToolInSandbox with these tools, even if the self-test broke out.
Result<ToolRun> RunToolWith(const SandboxTools& tools, const SandboxRequest& request,
                            const std::string& artifact_path, Deadline deadline,
                            StopToken stop = {});

}  // namespace assay
