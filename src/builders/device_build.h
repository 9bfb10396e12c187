// Compiles for the judge's GPU: the judge's kernels, and candidates in the device form. NVRTC runs
// in the builder's sandbox.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "builders/build_candidate.h"
#include "toolchain/build.h"

namespace assay {

// Returns the judge's kernels as a device image for `architecture` ("sm_90a"), from the cache if
// possible. Errors (kEnvironment): no NVRTC, no sandbox.
Result<std::string> JudgeKernelImage(const std::string& architecture, StopToken stop);

// Returns an image of other kernels of Assay: the first of `files` (names in src/gpu) has them and
// includes the others.
Result<std::string> OwnKernelImage(std::span<const std::string_view> files,
                                   std::span<const char* const> kernels,
                                   const std::string& architecture, StopToken stop);

// Builds image and launches of a candidate in the device form, for the sizes of `target`. A source
// that does not build is a result with `failure`; errors are the machine's.
Result<BuiltCandidate> BuildDevice(const CandidateSource& source, const CandidateLimits& limits,
                                   const DeviceTarget& target, StopToken stop);
// The same where no device is needed; `architecture`: NVRTC's name, "sm_90a".
Result<BuiltCandidate> BuildDevice(const CandidateSource& source, const CandidateLimits& limits,
                                   const wire::Plan& plan, const std::string& architecture,
                                   StopToken stop, const Constants& constants = {});

}  // namespace assay
