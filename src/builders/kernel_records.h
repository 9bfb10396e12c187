// Records a GPU candidate's compiled kernels for its verdict, read from the machine code, in all
// forms whose code is readable.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/stop_token.h"
#include "builders/build_candidate.h"
#include "gpu/gpu.h"
#include "model/verdict.h"
#include "toolchain/nvcc.h"
#include "toolchain/sass.h"

namespace assay {

// Returns one record for each kernel; in the device form, for each distinct launch.
std::vector<KernelRecord> KernelRecordsOf(const BuiltCandidate& candidate, const GpuFacts& gpu);

// Returns the instruction mix of each kernel of an artifact, by nvdisasm in the builder's sandbox
// or from the cache. Empty if nvdisasm is missing or fails: these facts decide nothing. Errors:
// kInterrupted.
Result<std::map<std::string, InstructionMix>> Disassemble(const std::string& artifact,
                                                          StopToken stop);

// Returns nvdisasm's listings of an artifact's cubins, one after another. Errors (kEnvironment):
// nvdisasm fails, or the artifact has no cubin that can be read; kInterrupted.
Result<std::string> ListMachineCode(const std::string& artifact, const Nvdisasm& nvdisasm,
                                    StopToken stop);

}  // namespace assay
