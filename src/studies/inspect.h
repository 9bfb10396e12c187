// Describes a problem without judging anything: its signature, bytes and operations at any size,
// and, if it fits into memory, a profile of its reference.
#pragma once

#include <string>

#include "base/result.h"
#include "hosts/host.h"
#include "model/inspection.h"

namespace assay {

struct InspectRequest {
  ProblemRequest problem;
  std::string python;
  int threads = 0;  // 0: as many as a judgement gives
  bool profile = false;
  StopToken stop;
};

// Errors: kUsage for faults of the problem's file; kEnvironment for the machine's, and if a profile
// is asked for and the problem does not fit into memory.
Result<Inspection> InspectProblem(const InspectRequest& request);

}  // namespace assay
