// Runs mutants of a problem's reference through gate 1: the same draws and the same comparison as a
// judgement, with a candidate that is known to be wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "hosts/host.h"
#include "hosts/python_runtime.h"
#include "model/audit.h"

namespace assay {

struct AuditRequest {
  ProblemRequest problem;
  PythonRuntime python;
  int threads = 1;
  std::string precision, tolerance;  // as in a judgement; empty: the problem's
  uint64_t seed = 0;
  bool ordinary_only = false;  // the draws of get_inputs() alone
  uint64_t memory_bytes = 0;   // that all slots may take
  StopToken stop;
};

// Starts the reference host anew. What is wrong with the problem itself is in the audit: its
// findings, or `error` for one that cannot be loaded. Errors: kInterrupted alone.
Result<ProblemAudit> AuditProblem(const AuditRequest& request,
                                  const std::function<void(const std::string&, double)>& progress);

}  // namespace assay
