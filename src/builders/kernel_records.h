// What a candidate for a GPU was compiled to, for its verdict: read from its machine code, in all
// forms that keep it readable.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/stop_token.h"
#include "builders/build_candidate.h"
#include "gpu/gpu.h"
#include "model/verdict.h"
#include "toolchain/sass.h"

namespace assay {

// One record for each kernel; in the device form, for each launch that differs.
std::vector<KernelRecord> KernelRecordsOf(const BuiltCandidate& candidate, const GpuFacts& gpu);

// Which instructions the kernels of an artifact consist of, by nvdisasm in the builder's sandbox;
// from the cache where it was asked before. Empty where there is no nvdisasm or it fails: facts are
// no part of the judgement. Error kInterrupted.
Result<std::map<std::string, InstructionMix>> Disassemble(const std::string& artifact,
                                                          StopToken stop);

}  // namespace assay
