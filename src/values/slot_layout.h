// Where each tensor lies in a slot, and what the judge does to slots while no host runs: fill,
// poison, guard, flush. Pure memory work on regions that the judge has mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/problem.h"
#include "wire/types.h"

namespace assay {

// Tensors start on 64-byte boundaries with at least this many guard bytes before, between and after
// them.
inline constexpr uint64_t kGuardBytes = 1024;

// All slots' tensors together, or the weights, may take so much: sums of offsets cannot overflow.
inline constexpr uint64_t kRegionBytesMax = uint64_t{1} << 46;

// A description comes from another process: its name ends, its numbers are those that the wire
// defines, and its size follows from its shape. Outputs and parameters are tensors.
bool IsSound(const wire::ArgumentSpec& argument);

// Chooses offsets and strides for every argument. Needs sound ones. Errors (kUsage): more arguments
// than the protocol carries, more bytes than kRegionBytesMax.
Result<wire::Plan> LayOutSlots(const ProblemDescription& description);

// Bytes of a slot's tensors alone.
uint64_t TensorBytes(const wire::Plan& plan, wire::Role role);

// The bytes that outputs hold before a call: NaN for floating-point types, an unlikely pattern for
// others.
std::byte PoisonByte(wire::DType dtype);

// Poisons each output of the slots [0, slots) and sets every other byte of them to the guard
// pattern; cold, as CopyPastCaches leaves its target.
void PoisonOutputs(const wire::Plan& plan, std::byte* outputs, uint32_t slots, uint64_t guard);
// The same for one slot.
void PoisonSlot(const wire::Plan& plan, std::byte* outputs, uint32_t slot, uint64_t guard);

// Reads every line of the slots [0, slots), as checking them does.
void ReadOutputs(const wire::Plan& plan, const std::byte* outputs, uint32_t slots);

struct GuardDamage {
  uint32_t slot;
  std::string output;      // the nearest output
  int64_t distance_bytes;  // from its end (positive) or its start (negative)
};
// First byte of a guard in these slots that changed, or nullopt.
std::optional<GuardDamage> FindGuardDamage(const wire::Plan& plan, const std::byte* outputs,
                                           std::span<const uint32_t> slots, uint64_t guard);

// Slots that were poisoned but must not have been written (not named in the block): true when all
// still are as set.
bool SlotIsUntouched(const wire::Plan& plan, const std::byte* outputs, uint32_t slot,
                     uint64_t guard);

// Copies so that the target is in memory alone, not in a cache.
void CopyPastCaches(std::byte* target, const std::byte* source, uint64_t size_bytes);

// Writes the lines back and drops them from all caches, so that the next reader goes to memory.
void FlushFromCaches(const std::byte* data, uint64_t size_bytes);

// A few 64-byte lines of outputs at random places, read at the instant a block ends.
class OutputSample {
 public:
  // Reads `lines` lines among the outputs of the named slots.
  static OutputSample Take(const wire::Plan& plan, const std::byte* outputs,
                           std::span<const uint32_t> slots, uint32_t lines, uint64_t seed);
  // True when the same lines still hold the same bytes.
  bool StillHolds() const;

 private:
  struct Line {
    const std::byte* address;
    uint32_t size;
    std::byte content[64];
  };
  std::vector<Line> lines_;
};

// Calls visit(const wire::ArgumentSpec&) with each output.
template <typename Visit>
void ForEachOutput(const wire::Plan& plan, Visit visit) {
  for (uint32_t i = 0; i < plan.argument_count; ++i)
    if (plan.arguments[i].role == wire::Role::kOutput) visit(plan.arguments[i]);
}

// Calls visit(const wire::ArgumentSpec&) with each number among the inputs.
template <typename Visit>
void ForEachNumber(const wire::Plan& plan, Visit visit) {
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const wire::ArgumentSpec& argument = plan.arguments[i];
    if (argument.role == wire::Role::kInput && argument.kind != wire::Kind::kTensor)
      visit(argument);
  }
}

}  // namespace assay
