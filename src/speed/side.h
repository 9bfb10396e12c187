// One side of a pair as blocks see it: a host with its outputs. Its own outputs alone are poisoned,
// compared and read; inputs are in inputs.h. host_side.h has the side of a real host; tests stand
// in for it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "correctness/call_check.h"
#include "gpu/clocks.h"
#include "hosts/host.h"
#include "values/draw_kinds.h"
#include "values/value_pool.h"

namespace assay {

// The contents of slots: masters[i] is in slot i.
struct FilledSlots {
  std::vector<uint32_t> masters;
  const Draw* probe = nullptr;  // an unusual draw, in slot `probe_slot`
  uint32_t probe_slot = 0;

  // Returns the unusual draw in this slot, or nullptr.
  const Draw* ProbeIn(uint32_t slot) const { return slot == probe_slot ? probe : nullptr; }
};

// The way in which a host runs a block.
struct BlockMode {
  wire::Results results = wire::Results::kIntoSlots;
  bool replay = false;  // as a CUDA graph
};

struct SideBlock {
  BlockResult result;
  bool replayed = false;
};

// The check of one or several calls.
struct BlockCheck {
  int64_t calls = 0;  // that were compared: none after a wrong one
  double error_ratio = 0;
  std::optional<CallCheck> wrong;
};

// Trouble of a function is the host's, without a word on whose side it is on (TroubleOf). After
// kVoid the slots must be filled anew.
class Side {
 public:
  virtual ~Side() = default;
  virtual bool is_candidate() const = 0;

  // Enters blocks anew with the slots that are prepared now (Inputs::Prepare).
  virtual HostResult<void> EnterAgain() = 0;
  // Poison the outputs, in all slots or in one.
  virtual void Poison() = 0;
  virtual void PoisonSlot(uint32_t slot) = 0;
  // Drops the inputs and weights of slots from the caches.
  virtual void Flush(std::span<const uint32_t> slots) = 0;
  // Runs a timed block on the present inputs, in outputs as they are.
  virtual HostResult<SideBlock> RunBlock(std::span<const uint32_t> order, BlockMode mode) = 0;
  // Runs a block that does not count, in poisoned outputs.
  virtual HostResult<void> RunUncounted(std::span<const uint32_t> order, BlockMode mode) = 0;
  // Returns the device's clock, if it can be read.
  virtual std::optional<ClockState> Clock() = 0;

  // Compares the outputs of all calls of a block, and looks for writes outside of them.
  virtual BlockCheck Check(std::span<const uint32_t> called, const FilledSlots& filled) = 0;
  // Compares the outputs in one slot. `probe`: the unusual draw in it, or nullptr.
  virtual BlockCheck CheckOne(uint32_t slot, uint32_t master, const Draw* probe) = 0;
  // Returns true if the host wrote outside of the outputs of these calls.
  virtual bool WroteAstray(std::span<const uint32_t> called) = 0;
  // Reads all outputs, as a check does.
  virtual void Read() = 0;

  virtual int64_t PageFaults() = 0;
};

inline ValuesFor ValuesOf(const Side& side) {
  return side.is_candidate() ? ValuesFor::kCandidate : ValuesFor::kOpponent;
}

// A side's trouble, which says whose it is.
inline std::unexpected<HostTrouble> TroubleOf(const Side& side, HostTrouble trouble) {
  if (!side.is_candidate()) return OpponentsTrouble(std::move(trouble));
  return std::unexpected(std::move(trouble));
}

}  // namespace assay
