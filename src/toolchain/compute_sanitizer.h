// Compute Sanitizer, which finds wrong accesses of a process's kernels: its command, and its
// output. Pure.
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

// Returns the argv that runs `command` under the program `sanitizer`. Errors that CUDA's functions
// return are left to the process.
std::vector<std::string> SanitizerCommand(const std::string& sanitizer, const std::string& tool,
                                          const std::vector<std::string>& command);

// Reads the tool's findings from the output of tool and process. Without a summary `failure` is
// set; `silent`, if not null, is set to true where the output gives no reason for that.
SanitizerRecord ReadSanitizerOutput(const std::string& tool, std::string_view output,
                                    bool* silent = nullptr);

}  // namespace assay
