#include "speed/block_length.h"

#include <bit>
#include <cmath>

#include "wire/types.h"

namespace assay {
namespace {

// A block of the faster side lasts about this long: the doorbell (1 us spinning, 50 us on a futex)
// and what a head start between wake-up and go could hide (about 50 us) stay near 1%.
constexpr double kBlockNs = 2.5e6;
// On a device, where the values that every call takes are dear.
constexpr double kDeviceBlockNs = 1e6;
// Blocks there have so many calls while they last at most so long: before the first one's kernels
// the device waits for the processor, a tenth of a millisecond or more, by code that is cold.
constexpr double kDeviceCalls = 4, kDeviceCallsNs = 6e6;
// A block of the slower side lasts at most about this long, unless one call does.
constexpr double kSlowBlockNs = 2e8;
// Blocks of a pair, each with values of its own; and slots that a block may have in any case.
constexpr uint32_t kBlocksOfAPair = 8, kSlotsEnough = 64;
// Drawing the values of one block takes at most about this long.
constexpr double kDrawNs = 0.8e9;

double BlockNs(const BlockLimits& limits) { return limits.on_device ? kDeviceBlockNs : kBlockNs; }

// On a device a pair's values are dear to draw, and lie there for the next: those of all its blocks
// together, unless blocks would get short.
uint32_t PoolRoom(const BlockLimits& limits) {
  const uint32_t all = limits.pool_slots;
  return limits.on_device ? std::min(all, std::max(all / kBlocksOfAPair, kSlotsEnough)) : all;
}

}  // namespace

uint32_t CallsFor(const CallTimes& times, const BlockLimits& limits) {
  double wanted = std::ceil(BlockNs(limits) / times.shorter_ns());
  if (limits.on_device)
    wanted =
        std::max(wanted, std::min(kDeviceCalls, std::ceil(kDeviceCallsNs / times.shorter_ns())));
  const double bearable = std::floor(kSlowBlockNs / times.longer_ns());
  const uint32_t room = std::min(limits.live_slots, PoolRoom(limits));
  const double drawable = std::max(16.0, kDrawNs / std::max(1.0, limits.draw_ns));
  const double limit = std::min({double{wire::kCallsMax}, (room - 1) * 8.0 / 9.0, drawable});
  const auto calls = static_cast<uint32_t>(std::max(1.0, std::min({wanted, bearable, limit})));
  if (!limits.on_device) return calls;
  // Steps of a half or a third: candidates of one problem share the values that were drawn.
  const uint32_t power = std::bit_floor(calls);
  return calls >= power + power / 2 ? power + power / 2 : power;
}

BlockLength LengthOf(uint32_t calls, const BlockLimits& limits) {
  const uint32_t spare = 1 + calls / 8;
  return {calls, spare, std::min({limits.live_slots, limits.pool_slots, calls + spare})};
}

std::optional<BlockLength> LongerThan(const BlockLength& present, const CallTimes& times,
                                      const BlockLimits& limits) {
  const double present_ns = present.calls * std::min(times.reference_ns, times.candidate_ns);
  if (present_ns > BlockNs(limits) / 2) return std::nullopt;
  const uint32_t calls = CallsFor(times, limits);
  if (calls < 2 * present.calls) return std::nullopt;
  return LengthOf(calls, limits);
}

uint32_t SlotsToPrepare(uint32_t count, uint32_t most_so_far, const BlockLimits& limits) {
  if (!limits.on_device) return count;
  return std::min(std::bit_ceil(std::max(count, most_so_far)), limits.live_slots);
}

}  // namespace assay
