// Builds candidates that need the problem's description or a device.
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
  const OtherSizes* other_sizes = nullptr;  // null: one size
  const Gpu* gpu = nullptr;                 // null: judged on the CPU
  const std::string& settings;
  StopToken stop;
};

// Builds a candidate. Errors as BuildCandidate's and BuildDevice's.
Result<BuiltCandidate> BuildLate(const CandidateSource& source, const LateBuildSetup& setup);

// Returns true if a build may have failed because another took the device's memory, so that it may
// succeed alone. The candidate's own output decides; a false claim costs only a second build.
bool MayHaveLackedMemory(const BuiltCandidate& built);

}  // namespace assay
