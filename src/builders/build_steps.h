// Steps that the builders of candidates share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "builders/build_candidate.h"

namespace assay {

// Cuts a tool's output to the length of a verdict's log.
std::string CappedLog(std::string text);

// Returns this much memory as --memory takes it: "4G", "256M".
std::string MemoryText(uint64_t bytes);

// Sets `failure` and `line` from a compiler's output.
void SayWhatFailed(const std::string& output, BuiltCandidate* built);

// Returns a candidate's files, as its builder's sandbox has them.
std::vector<SandboxFile> SandboxFilesOf(const CandidateSource& source);

// Sets `failure`, `fault` and `line` from the end of a tool that failed.
void ExplainToolFailure(const ToolRun& run, double timeout_s, uint64_t memory_bytes,
                        BuiltCandidate* built);

// Returns the cache of artifacts, which outlives the process.
ArtifactCache Artifacts();

// Returns kernel.h and its includes, under /assay/include.
Result<std::vector<SandboxFile>> KernelHeaderFiles();

// Returns a clean environment for a compiler; PATH begins with `folder`, if given.
std::map<std::string, std::string> CompilerEnvironment(const std::string& folder = "");

}  // namespace assay
