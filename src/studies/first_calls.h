// Times a program's first calls, one by one in a fresh process, as careless timing does. For
// demonstrations; nothing is judged.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "hosts/host.h"
#include "model/problem.h"
#include "toolchain/build.h"

namespace assay {

struct FirstCallsRequest {
  ProblemRequest problem;
  CandidateSource candidate;
  std::string python;
  int calls = 40;
  StopToken stop;
};

struct FirstCalls {
  std::string candidate;             // its file's name
  std::vector<double> reference_ns;  // eager PyTorch, call by call, by the judge's clock
  std::vector<double> candidate_ns;
};

Result<FirstCalls> TimeFirstCalls(const FirstCallsRequest& request);

}  // namespace assay
