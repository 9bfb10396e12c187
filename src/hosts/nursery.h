// Nurseries: processes that have imported PyTorch, and fork Python hosts into sandboxes
// (assay_host/nursery.py). A host so starts in a part of the time; its walls are those of any
// other.
#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "sandbox/sandbox.h"

namespace assay {

// A nursery of this process. One serves hosts of one name and environment, one after the other:
// hosts that must not share a layout of memory have other names.
struct Nursery {
  std::string name;
  std::string python;       // the interpreter
  std::string bytecode;     // as PythonRuntime's
  bool only_ahead = false;  // without StartNurseryAhead() it does not start, and hosts are executed
};

// Starts the nursery that such a request will ask for, unless it runs, so that it imports PyTorch
// meanwhile.
void StartNurseryAhead(const Nursery& nursery, const SandboxRequest& request);

// Has the command of `request`, a Python host or another program, forked by the nursery, which is
// started if it does not run. `kept`: descriptors that must stay open until the sandbox has begun.
// If no nursery can be had the request stays as it is; one that fails later has the command
// executed.
void ForkFromNursery(const Nursery& nursery, SandboxRequest* request, std::vector<UniqueFd>* kept);

}  // namespace assay
