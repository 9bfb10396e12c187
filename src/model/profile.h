// What a tool that ran a candidate on a GPU once more saw of one call: facts for the verdict, by
// which nothing is decided. Nothing here is a time: a profiler runs each kernel many times over.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// One kernel, over its launches in the call that were looked at. What the profiler had no value for
// is absent. Percents are of 100; those "of peak" are of what the GPU could do in that time.
struct KernelProfile {
  std::string name;  // without parameters
  int launches = 0;
  double cycles_share = 0;                   // of the cycles of all kernels, 0 to 1
  std::optional<double> dram_percent;        // of peak: bytes to and from DRAM
  std::optional<double> memory_percent;      // of peak: the busiest of DRAM, caches, shared memory
  std::optional<double> sm_percent;          // of peak: the busiest unit of the multiprocessors
  std::optional<double> tensor_percent;      // of peak: the matrix units
  std::optional<double> dram_bytes;          // all launches together, caches cold before each
  std::optional<double> l2_hit_percent;      // of the sectors that L2 was asked for
  std::optional<double> load_used_percent;   // of each 32-byte sector that a global load asks for
  std::optional<double> store_used_percent;  // the same of global stores
  std::optional<double> conflict_percent;    // of shared memory's cycles, by bank conflicts
  std::optional<double> warps_active_percent;  // of the warps that a multiprocessor can hold
  // What warps wait for: the largest reasons, as percents of all waiting. Names are Nsight
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
  std::string failure;                 // why there are none; else empty
};

// Of `assay judge --sanitize`.
struct SanitizerRecord {
  std::string tool;  // "memcheck", "racecheck", "initcheck", "synccheck"
  int64_t errors = 0;
  std::vector<std::string> findings;  // the first few, a line each
  std::string failure;                // why it said nothing; else empty
};

}  // namespace assay
