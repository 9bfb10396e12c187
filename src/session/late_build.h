// Builds what needs the problem's description, or a device, first.
#pragma once

#include <string>

#include "builders/build_candidate.h"
#include "correctness/other_size.h"
#include "session/terms.h"

namespace assay {

struct LateBuildSetup {
  const SessionTerms& terms;
  const PythonRuntime& python;
  const Oracle& oracle;
  const OtherSize* other_size = nullptr;  // null: one size
  const Gpu* gpu = nullptr;               // null: judged on the CPU
  const std::string& settings;
  StopToken stop;
};

// Errors as BuildCandidate's and BuildDevice's.
Result<BuiltCandidate> BuildLate(const CandidateSource& source, const LateBuildSetup& setup);

// Whether it may be that a build beside this one had the device's memory: by itself it may go well.
// What the candidate printed decides, which costs it no more than a second build.
bool MayHaveLackedMemory(const BuiltCandidate& built);

}  // namespace assay
