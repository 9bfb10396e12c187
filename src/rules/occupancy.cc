#include "rules/occupancy.h"

#include <algorithm>

namespace assay {
namespace {

constexpr int64_t kWarpThreads = 32;
constexpr int64_t kRegistersAtATime = 256;  // of a warp's
constexpr int64_t kWarpsAtATime = 4;        // one for each of a multiprocessor's four parts
constexpr int64_t kSharedBytesAtATime = 128;

int64_t RoundedUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

Occupancy OccupancyOf(const BlockDemand& demand, const MultiprocessorLimits& limits) {
  Occupancy occupancy;
  const int64_t warps_max = limits.threads / kWarpThreads;
  if (demand.threads <= 0 || warps_max <= 0) return occupancy;
  const int64_t warps = RoundedUp(demand.threads, kWarpThreads) / kWarpThreads;
  // The first of several that limit alike is named: what a candidate can change the most.
  int64_t blocks = warps_max / warps;
  occupancy.limiter = "threads";
  const auto limit = [&](int64_t count, std::string_view name) {
    if (count >= blocks) return;
    blocks = count;
    occupancy.limiter = name;
  };
  if (demand.registers > 0) {
    const int64_t warp_registers = RoundedUp(demand.registers * kWarpThreads, kRegistersAtATime);
    const int64_t warps_fit = limits.registers / warp_registers / kWarpsAtATime * kWarpsAtATime;
    limit(warps_fit / warps, "registers");
  }
  const int64_t shared =
      RoundedUp(demand.shared_bytes + limits.reserved_shared_bytes, kSharedBytesAtATime);
  if (shared > 0) limit(limits.shared_bytes / shared, "shared memory");
  if (limits.blocks > 0) limit(limits.blocks, "blocks");
  occupancy.blocks = static_cast<int>(blocks);
  occupancy.share = static_cast<double>(blocks * warps) / static_cast<double>(warps_max);
  return occupancy;
}

}  // namespace assay
