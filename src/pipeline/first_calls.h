// What a program's first calls cost: a fresh process, called one by one, as a careless timing would
// see it. For demonstrations; nothing is judged.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "build/build.h"
#include "model/problem.h"
#include "pipeline/host.h"

namespace assay {

struct FirstCallsRequest {
  ProblemRequest problem;
  CandidateSource candidate;
  std::string python;
  int calls = 40;
  InterruptFlag interrupt = nullptr;
};

struct FirstCalls {
  std::string candidate;             // its file's name
  std::vector<double> reference_ns;  // eager PyTorch, call by call, by the judge's clock
  std::vector<double> candidate_ns;
};

Result<FirstCalls> TimeFirstCalls(const FirstCallsRequest& request);

}  // namespace assay
