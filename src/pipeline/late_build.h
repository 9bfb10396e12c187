// Builds what needs the problem's description, or a device, first.
#pragma once

#include <string>

#include "pipeline/candidate.h"
#include "pipeline/judge.h"
#include "pipeline/other_size.h"

namespace assay {

struct LateBuildSetup {
  const JudgeRequest& request;
  const PythonRuntime& python;
  const Oracle& oracle;
  const OtherSize* other_size = nullptr;  // null: one size
  const Gpu* gpu = nullptr;               // null: judged on the CPU
  const std::string& settings;
  InterruptFlag interrupt = nullptr;
};

// Errors as BuildCandidate's and BuildDevice's.
Result<BuiltCandidate> BuildLate(const CandidateSource& source, const LateBuildSetup& setup);

// Whether it may be that a build beside this one had the device's memory: by itself it may go well.
// What the candidate printed decides, which costs it no more than a second build.
bool MayHaveLackedMemory(const BuiltCandidate& built);

}  // namespace assay
