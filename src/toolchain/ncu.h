// Nsight Compute's command line: the command that has it count what kernels of one process do, and
// what it prints. Metrics are NVIDIA's names, as `ncu --query-metrics` lists them for sm_90.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile.h"

namespace assay {

// As many launches are looked at, from where the process starts its profiler on.
inline constexpr int kProfiledLaunchesMax = 64;

// argv that runs `command` under the program `ncu`, whose own lines go to the file `report`; where
// the command fails they are printed besides. Clocks are left alone, and caches are flushed before
// each run of a kernel.
std::vector<std::string> NcuCommand(const std::string& ncu, const std::string& report,
                                    const std::vector<std::string>& command);

// The kernels of a report, launches of one name together, the one with the most cycles first. The
// error is why there are none, in one line.
std::expected<std::vector<KernelProfile>, std::string> ReadNcuReport(std::string_view report);

// Why ncu gave no report, by the lines that it wrote; empty where it does not say.
std::string NcuTrouble(std::string_view text);

}  // namespace assay
