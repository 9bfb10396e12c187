// Runs mutants of a problem's reference through gate 1, with the draws and comparisons of a
// judgement: each is a candidate that is known to be wrong.
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
  uint64_t memory_bytes = 0;   // limit of all slots together
  StopToken stop;
};

// Audits a problem in a new reference host. Faults of the problem are in the audit: its findings,
// or `error` if it cannot be loaded. Errors: kInterrupted alone.
Result<ProblemAudit> AuditProblem(const AuditRequest& request,
                                  const std::function<void(const std::string&, double)>& progress);

}  // namespace assay
