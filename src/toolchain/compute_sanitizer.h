// Compute Sanitizer: the command that has it look for wrong accesses of one process's kernels, and
// what it prints.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile.h"

namespace assay {

// memcheck: accesses out of bounds or misaligned; racecheck: races in shared memory; initcheck:
// reads of device memory that nobody wrote; synccheck: barriers that not all threads reach.
inline constexpr std::array<std::string_view, 4> kSanitizerTools = {"memcheck", "racecheck",
                                                                    "initcheck", "synccheck"};

// argv that runs `command` under the program `sanitizer`. Errors that functions of CUDA's return
// are left to the process.
std::vector<std::string> SanitizerCommand(const std::string& sanitizer, const std::string& tool,
                                          const std::vector<std::string>& command);

// The failure where it does not say why it came to no summary.
inline constexpr const char* kNoSummary = "compute-sanitizer printed no summary";

// What the tool found, of what it and the process printed; `failure` where it came to no summary.
SanitizerRecord ReadSanitizerOutput(const std::string& tool, std::string_view output);

}  // namespace assay
