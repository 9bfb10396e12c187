// Computes how many of a kernel's blocks a multiprocessor holds at once, and what limits that.
// Pure. Source: the CUDA Programming Guide, "Multiprocessor Level" and its table of technical
// specifications (compute capability 8.0 and newer): registers are given out per warp, 256 at a
// time, shared memory per block, 128 bytes at a time.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay {

// Of one multiprocessor, as the driver gives them.
struct MultiprocessorLimits {
  int threads = 0;
  int blocks = 0;
  int registers = 0;
  int64_t shared_bytes = 0;
  int64_t reserved_shared_bytes = 0;  // of it, taken by CUDA for each block
};

struct BlockDemand {
  int64_t threads = 0;
  int registers = 0;         // a thread
  int64_t shared_bytes = 0;  // static and dynamic
};

struct Occupancy {
  int blocks = 0;            // at once; 0: not one fits
  double share = 0;          // of the warps that a multiprocessor can hold, 0 to 1
  std::string_view limiter;  // "registers", "shared memory", "threads" or "blocks"
};

// Ignores clusters: their blocks start together, so fewer may fit.
Occupancy OccupancyOf(const BlockDemand& demand, const MultiprocessorLimits& limits);

}  // namespace assay
