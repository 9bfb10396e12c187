// Builds a candidate in Python: imported and constructed once with compilers at hand, so that its
// extensions are compiled, and on a device called once, so that what it compiles in its first call
// is there, too. Its hosts have no compiler.
#pragma once

#include <string>

#include "builders/build_candidate.h"

namespace assay {

// `built` holds the source. Errors (kEnvironment): no sandbox; kInterrupted.
Result<BuiltCandidate> BuildPython(BuiltCandidate built, const CandidateLimits& limits,
                                   const PythonRuntime& python, const std::string& init_arguments,
                                   const std::string& settings, const DeviceTarget* target,
                                   StopToken stop);

// The inputs of `plan` as the builder reads them: JSON, without a value.
std::string DescribeInputs(const wire::Plan& plan);

}  // namespace assay
