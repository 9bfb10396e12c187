// Reports of NVIDIA's tools about one call of a candidate on a GPU, in a run of their own. They are
// facts for the verdict and decide nothing. None is a time: a profiler runs each kernel many times.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// One kernel, over its profiled launches in the call. A figure is absent if the profiler has no
// value for it. Percents are 0 to 100; "of peak": of the GPU's limit over that time.
struct KernelProfile {
  std::string name;  // without parameters
  int launches = 0;
  double cycles_share = 0;                   // of the cycles of all kernels, 0 to 1
  std::optional<double> dram_percent;        // of peak: bytes to and from DRAM
  std::optional<double> memory_percent;      // of peak: the busiest of DRAM, caches, shared memory
  std::optional<double> sm_percent;          // of peak: the busiest unit of the multiprocessors
  std::optional<double> tensor_percent;      // of peak: the matrix units
  std::optional<double> dram_bytes;          // all launches together, caches cold before each
  std::optional<double> l2_hit_percent;      // of the sectors requested from L2
  std::optional<double> load_used_percent;   // of the 32-byte sectors that global loads request
  std::optional<double> store_used_percent;  // the same of global stores
  std::optional<double> conflict_percent;    // of shared memory's cycles, by bank conflicts
  std::optional<double> warps_active_percent;  // of the warps that a multiprocessor can hold
  // The largest reasons for which warps wait, as percents of all waiting. Names are Nsight
  // Compute's: "long_scoreboard" is memory beyond L1.
  std::map<std::string, double> stalls = {};
};

// The figures of a kernel by their names in JSON.
struct KernelFigure {
  const char* name;
  std::optional<double> KernelProfile::*value;
};
inline constexpr KernelFigure kKernelFigures[] = {
    {"dram_percent", &KernelProfile::dram_percent},
    {"memory_percent", &KernelProfile::memory_percent},
    {"sm_percent", &KernelProfile::sm_percent},
    {"tensor_percent", &KernelProfile::tensor_percent},
    {"dram_bytes", &KernelProfile::dram_bytes},
    {"l2_hit_percent", &KernelProfile::l2_hit_percent},
    {"load_used_percent", &KernelProfile::load_used_percent},
    {"store_used_percent", &KernelProfile::store_used_percent},
    {"conflict_percent", &KernelProfile::conflict_percent},
    {"warps_active_percent", &KernelProfile::warps_active_percent},
};

// Of `assay judge --profile`.
struct ProfileRecord {
  std::vector<KernelProfile> kernels;  // the one with the most cycles first
  std::string failure;                 // reason if there are none; else empty
};

// Of `assay judge --sanitize`.
struct SanitizerRecord {
  std::string tool;  // "memcheck", "racecheck", "initcheck", "synccheck"
  int64_t errors = 0;
  std::vector<std::string> findings;  // the first few, a line each
  std::string failure;                // reason if it gave no report; else empty
};

}  // namespace assay
