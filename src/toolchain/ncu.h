// Nsight Compute's command line, which counts the work of a process's kernels: its command, and its
// report. Metrics have NVIDIA's names, as `ncu --query-metrics` lists them for sm_90. Pure.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile.h"

namespace assay {

// Number of launches that are profiled, from the moment when the process starts its profiler.
inline constexpr int kProfiledLaunchesMax = 64;

// Returns the argv that runs `command` under the program `ncu`, which writes its lines to the file
// `report`; if it fails, they are also printed. Clocks are left alone, and caches are flushed
// before each run of a kernel.
std::vector<std::string> NcuCommand(const std::string& ncu, const std::string& report,
                                    const std::vector<std::string>& command);

// Returns the kernels of a report, the launches of one name together, the one with the most cycles
// first. The error is the reason why there are none, in one line.
std::expected<std::vector<KernelProfile>, std::string> ReadNcuReport(std::string_view report);

// Returns ncu's reason for giving no report, from its own lines; empty if it gives none.
std::string NcuTrouble(std::string_view text);

}  // namespace assay
