// Describes a problem without judging anything: its signature, bytes and operations at any size,
// and, if it fits into memory, a profile of its reference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hosts/host.h"
#include "model/problem.h"

namespace assay {

struct OperatorTime {
  std::string name;
  double calls = 0;
  double self_ns = 0;  // of one forward, without nested operators
};

struct Profile {
  double wall_ns = 0;                   // one forward, median, without the profiler
  std::vector<OperatorTime> operators;  // longest first
};

struct InspectRequest {
  ProblemRequest problem;
  std::string python;
  int threads = 0;  // 0: as many as a judgement gives
  bool profile = false;
  StopToken stop;
};

struct Inspection {
  WorkAccount account;
  uint64_t input_bytes = 0, parameter_bytes = 0, output_bytes = 0;
  std::optional<Profile> profile;
};

// Errors: kUsage for faults of the problem's file; kEnvironment for the machine's, and if a profile
// is asked for and the problem does not fit into memory.
Result<Inspection> InspectProblem(const InspectRequest& request);

}  // namespace assay
