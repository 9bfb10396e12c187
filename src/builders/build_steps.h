// What the builders of candidates share.
#pragma once

#include <string>
#include <vector>

#include "builders/build_candidate.h"

namespace assay {

// What a tool printed, cut for a verdict's log.
std::string CappedLog(std::string text);

// Fills in `failure` from a tool that ended badly.
void ExplainToolFailure(const ToolRun& run, double timeout_s, uint64_t memory_bytes,
                        BuiltCandidate* built);

// Where artifacts are kept from one call to the next.
ArtifactCache Artifacts();

// kernel.h and what it includes, under /assay/include.
Result<std::vector<SandboxFile>> KernelHeaderFiles();

// A clean environment for a compiler; PATH begins with `folder` where one is given.
std::map<std::string, std::string> CompilerEnvironment(const std::string& folder = "");

}  // namespace assay
