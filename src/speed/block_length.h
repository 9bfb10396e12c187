// Chooses how many calls a timed block has. Pure. Blocks are long, so that the time around them
// counts little; calls, slots and values that can be drawn bound them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace assay {

// The time of one call of each side [ns].
struct CallTimes {
  double reference_ns = 0, candidate_ns = 0;
  // Of the faster side, at least 100 ns.
  double shorter_ns() const { return std::max(100.0, std::min(reference_ns, candidate_ns)); }
  double longer_ns() const { return std::max(reference_ns, candidate_ns); }
};

// The calls of a pair's blocks, and their slots.
struct BlockLength {
  uint32_t calls = 1;
  uint32_t spare = 1;  // slots filled besides: a host does not know its calls before the clock
  uint32_t slots = 2;  // that hosts prepare

  // Returns the slots to fill for a block of `count` calls.
  uint32_t SlotsFor(uint32_t count) const { return std::min(slots, count + spare); }
};

// The limits of a block.
struct BlockLimits {
  bool on_device = false;
  uint32_t live_slots = 0;      // that both sides can see
  uint32_t pool_slots = 0;      // whose values can be held at the same time
  double draw_ns = 0;           // of one value, the mean so far
  bool changes_inputs = false;  // forward does: a slot serves one call of a block
};

// Returns the calls of a block if calls take so long.
uint32_t CallsFor(const CallTimes& times, const BlockLimits& limits);

// Returns the length of blocks of `calls` calls.
BlockLength LengthOf(uint32_t calls, const BlockLimits& limits);

// Returns a longer length if blocks of `present` are too short, calls taking so long, and blocks of
// at least twice the calls can be had; otherwise nullopt.
std::optional<BlockLength> LongerThan(const BlockLength& present, const CallTimes& times,
                                      const BlockLimits& limits);

// Returns how many slots hosts prepare where `count` are needed. On a device no fewer than
// `most_so_far`: a warm host then keeps its views, which take long to make.
uint32_t SlotsToPrepare(uint32_t count, uint32_t most_so_far, const BlockLimits& limits);

}  // namespace assay
