// Times a program's first calls, one by one in a fresh process, as careless timing does. For
// demonstrations; nothing is judged.
#pragma once

#include <string>

#include "base/result.h"
#include "hosts/host.h"
#include "model/inspection.h"
#include "toolchain/build.h"

namespace assay {

struct FirstCallsRequest {
  ProblemRequest problem;
  CandidateSource candidate;
  std::string python;
  int calls = 40;
  StopToken stop;
};

Result<FirstCalls> TimeFirstCalls(const FirstCallsRequest& request);

}  // namespace assay
