// Lays out tensors in slots, and works on slots while no host runs: fill, poison, guard, flush.
// Pure memory work on regions that the judge has mapped.
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

// Limit of all slots' tensors together, and of the weights: sums of offsets cannot overflow.
inline constexpr uint64_t kRegionBytesMax = uint64_t{1} << 46;

// Checks a description from another process. Returns true if its name ends, its enumerations are
// the wire's, its size follows from its shape, and outputs and parameters are tensors.
bool IsSound(const wire::ArgumentSpec& argument);

// Returns true if twins (wire::ArgumentSpec) are pairs of an input and an output of one dtype and
// shape, and these outputs stand last. `arguments`: each sound.
bool TwinsAreSound(std::span<const wire::ArgumentSpec> arguments);

// Chooses offsets and strides for every argument; all must be sound. Errors (kUsage): more
// arguments than the protocol carries, more bytes than kRegionBytesMax.
Result<wire::Plan> LayOutSlots(const ProblemDescription& description);

// Returns the bytes of a slot's tensors of this role, without guards.
uint64_t TensorBytes(const wire::Plan& plan, wire::Role role);

// Returns the bytes of a region with the weights of so many slots, at least one page.
uint64_t WeightsBytes(const wire::Plan& plan, uint64_t slots);

// Returns the byte that fills outputs before a call: it gives NaN for floating-point types, an
// unlikely pattern for others.
std::byte PoisonByte(wire::DType dtype);

// Poisons each output of the slots [0, slots) and sets every other byte to the guard pattern.
// Leaves nothing of them in the caches.
void PoisonOutputs(const wire::Plan& plan, std::byte* outputs, uint32_t slots, uint64_t guard);
// The same for one slot.
void PoisonSlot(const wire::Plan& plan, std::byte* outputs, uint32_t slot, uint64_t guard);

// Lays the values of changed inputs (wire::IsChangedInput) among the outputs of a poisoned slot, or
// says if they still lie there. `inputs` and `outputs`: of this slot. Leaves nothing in the caches.
void LayChangedInputs(const wire::Plan& plan, const std::byte* inputs, std::byte* outputs);
bool ChangedInputsStand(const wire::Plan& plan, const std::byte* inputs, const std::byte* outputs);

// Reads every line of the slots [0, slots), as a check does.
void ReadOutputs(const wire::Plan& plan, const std::byte* outputs, uint32_t slots);

struct GuardDamage {
  uint32_t slot;
  std::string output;  // the nearest output
  // From its end to behind the last changed byte (positive), or from its start to the first one
  // (negative), as far as the guard reaches.
  int64_t distance_bytes;
};
// Returns the first changed guard in these slots, or nullopt.
std::optional<GuardDamage> FindGuardDamage(const wire::Plan& plan, const std::byte* outputs,
                                           std::span<const uint32_t> slots, uint64_t guard);

// Returns the offset in a poisoned slot of its first changed byte, guards included, or nullopt.
// Passes over changed inputs.
std::optional<uint64_t> FirstTouched(const wire::Plan& plan, const std::byte* outputs,
                                     uint32_t slot, uint64_t guard);

// Says how far an offset in a slot lies from the argument of this role that is nearest below it:
// "20 bytes past the end of output out", "4 bytes before the start of output out", "byte 3 of
// output out". The offset may lie before or behind the slot. "": there is no such argument.
std::string DistanceText(const wire::Plan& plan, wire::Role role, int64_t offset);

// Returns true if a poisoned slot is unchanged, as a slot that the block does not name must be.
// Passes over changed inputs.
bool SlotIsUntouched(const wire::Plan& plan, const std::byte* outputs, uint32_t slot,
                     uint64_t guard);

// Copies, and leaves nothing of the target in a cache.
void CopyPastCaches(std::byte* target, const std::byte* source, uint64_t size_bytes);

// Writes the lines back and drops them from all caches, so that the next reader goes to memory.
void FlushFromCaches(const std::byte* data, uint64_t size_bytes);

// A sample of 64-byte lines of outputs at random places, read at the instant a block ends.
class OutputSample {
 public:
  // Reads `lines` lines among the outputs of the named slots, or among their changed inputs alone.
  enum class Of { kAll, kChangedInputs };
  static OutputSample Take(const wire::Plan& plan, const std::byte* outputs,
                           std::span<const uint32_t> slots, uint32_t lines, uint64_t seed,
                           Of which = Of::kAll);
  // Returns true if these lines still hold the same bytes.
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

// The same with each output that is a result of forward, and with each that is a changed input.
template <typename Visit>
void ForEachResult(const wire::Plan& plan, Visit visit) {
  ForEachOutput(plan, [&](const wire::ArgumentSpec& output) {
    if (!wire::IsChangedInput(output)) visit(output);
  });
}
template <typename Visit>
void ForEachChangedInput(const wire::Plan& plan, Visit visit) {
  ForEachOutput(plan, [&](const wire::ArgumentSpec& output) {
    if (wire::IsChangedInput(output)) visit(output);
  });
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
