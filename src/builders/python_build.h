// Builds a candidate in Python: imports and constructs it once with compilers available, so that
// its extensions are compiled, and on a device calls it once, for code that the first call
// compiles. Its hosts have no compiler.
#pragma once

#include <string>

#include "builders/build_candidate.h"

namespace assay {

// `built` holds the source. Errors (kEnvironment): no sandbox; kInterrupted.
Result<BuiltCandidate> BuildPython(BuiltCandidate built, const CandidateLimits& limits,
                                   const PythonRuntime& python, const std::string& init_arguments,
                                   const std::string& settings, const DeviceTarget* target,
                                   StopToken stop);

// Returns the inputs of `plan` as JSON for the builder, without values.
std::string DescribeInputs(const wire::Plan& plan);

}  // namespace assay
