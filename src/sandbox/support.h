// What ProbeSandbox found, for the launching code alone.
#pragma once

#include <string>

#include "sandbox/cgroup.h"
#include "sandbox/command.h"
#include "sandbox/sandbox.h"

namespace assay {

struct SandboxTools {
  Bubblewrap bubblewrap;
  std::string confine;  // content of the helper
  GroupFolders groups;
  bool own_uid = false;
};

// As found by the probe; made once a process.
const SandboxTools& ProbedSandboxTools();

// Starts a sandbox that does nothing; empty when it works, else why not.
std::string TrySandbox(const SandboxTools& tools);

}  // namespace assay
