// Asks torch.compile for the code of a problem, in a process of its own.
#pragma once

#include <string>

#include "base/result.h"
#include "base/stop_token.h"
#include "gpu/gpu.h"
#include "hosts/python_runtime.h"
#include "mine/mined.h"
#include "model/problem.h"

namespace assay {

struct MinerTerms {
  PythonRuntime python;
  const Gpu* gpu = nullptr;  // null: on the CPU
  double timeout_s = 600;    // of one problem in one mode
  StopToken stop;
};

// Runs assay_host/mine.py in the builder's sandbox, with compilers, and the device if one is given.
// A problem that cannot be loaded, a compiler that fails, crashes or takes too long is a refusal.
// Errors: kEnvironment, such as a Python without torch.compile; kInterrupted.
Result<MineAnswer> MineProblem(const MinerTerms& terms, const ProblemRequest& problem,
                               const std::string& mode);

}  // namespace assay
