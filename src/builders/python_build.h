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

// Starts the nursery from which builds without the device come, where they load no extensions: it
// imports PyTorch meanwhile. Errors: kEnvironment.
Result<void> StartBuildNursery(const PythonRuntime& python, const Gpu& gpu);

// Returns true if all that a candidate compiles is compiled when it is imported and constructed.
// Triton and torch.compile compile at the first call.
bool CompilesAtImport(const std::string& source);

// Returns true if a candidate has no compiler at hand: it imports PyTorch and common modules alone,
// and names neither Triton nor a compiler of PyTorch's. False: perhaps it has one.
bool CompilesNothing(const std::string& source);

// Compiles what importing a candidate compiles, without the device and before its problem is open,
// and keeps it in the cache of artifacts, where BuildPython finds it. `settings`: as BuildPython's;
// their constants count. A candidate that fails so is left to BuildPython, and so is one that
// compiles nothing then. Errors as BuildPython's.
Result<void> CompileImports(const CandidateSource& source, const CandidateLimits& limits,
                            const PythonRuntime& python, const std::string& settings,
                            const Gpu& gpu, StopToken stop);

// Returns the inputs of `plan` as JSON for the builder, without values.
std::string DescribeInputs(const wire::Plan& plan);

}  // namespace assay
