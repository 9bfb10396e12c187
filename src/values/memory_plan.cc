#include "values/memory_plan.h"

#include <algorithm>

#include "values/draw_kinds.h"

namespace assay {
namespace {

// The two sides of a pair.
constexpr uint64_t kSides = 2;
// Lent memory has this room for forward's intermediate tensors (values/left_results.h).
constexpr uint64_t kBesidesBytes = uint64_t{1} << 30;
// Copies of the weights: in the oracle, in the judge, in a slot, and those of a pair's hosts, which
// clone them as they load.
constexpr uint64_t kWeightsCopies = 12;
// Masters' share of the memory, in which it is taken whole, touched or not; and float64's.
constexpr uint64_t kMastersShare = 4, kTruthShare = 8;
constexpr uint64_t kMastersBytesMax = uint64_t{36} << 30;
constexpr uint32_t kMastersMax = 8192, kWithTruthMax = kDrawsMax;
// Live slots: memory that they take at most, and their share; and up to so many slots where they
// take more, within that much memory and that share. Hosts under test have outputs of their own,
// and memory for the results that they leave, as references have: some twenty live at a time.
constexpr uint64_t kSlotsBytesMax = uint64_t{4} << 30, kSlotsShare = 32;
constexpr uint64_t kFewSlots = 8;
constexpr uint64_t kFewBytesMax = uint64_t{8} << 30, kFewShare = 8;

// Other sizes have this part of the memory (Oracle::OpenOther).
constexpr uint64_t kOtherSizesShare = 8;
constexpr uint64_t kPairsSideBySide = 3;

uint32_t AsCount(uint64_t count, uint64_t most) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(count, 1, most));
}

// A slot of outputs, and the results that stay where forward put them.
uint64_t SideBytes(const CallBytes& call) {
  const uint64_t besides = call.working - std::min(call.working, call.outputs);
  return 2 * call.outputs + std::max(besides, std::min(kBesidesBytes, 8 * call.outputs));
}

}  // namespace

uint64_t LeastBytes(const CallBytes& call) {
  const uint64_t master = call.inputs + call.outputs + call.truth;
  const uint64_t slot = call.inputs;
  // It draws inputs and changes them, or runs forward on a copy.
  const uint64_t oracle = call.inputs + std::max({call.inputs, call.outputs, call.working});
  return master + slot + oracle + kSides * SideBytes(call) + kWeightsCopies * call.weights;
}

uint64_t PlannedBytes(const CallBytes& call, uint64_t memory_bytes) {
  const MemoryPlan plan = PlanMemory(call, memory_bytes);
  return LeastBytes(call) + (plan.masters - 1) * (call.inputs + call.outputs) +
         (plan.with_truth - 1) * call.truth +
         (plan.slots - 1) * (call.inputs + call.weights + 3 * call.outputs) +
         (kPairsSideBySide - 1) * kSides * SideBytes(call) + memory_bytes / kOtherSizesShare;
}

MemoryPlan PlanMemory(const CallBytes& call, uint64_t memory_bytes) {
  const uint64_t least = LeastBytes(call);
  const uint64_t spare = memory_bytes - std::min(memory_bytes, least);
  const uint64_t master = std::max<uint64_t>(1, call.inputs + call.outputs);
  const uint64_t slot = std::max<uint64_t>(1, call.inputs + call.weights + call.outputs);
  MemoryPlan plan;
  plan.masters = AsCount(
      std::min({spare / 2, memory_bytes / kMastersShare, kMastersBytesMax}) / master, kMastersMax);
  plan.with_truth =
      AsCount(std::min(spare / 4, memory_bytes / kTruthShare) / std::max<uint64_t>(1, call.truth),
              std::min(kWithTruthMax, plan.masters));
  const uint64_t few = std::min({spare / 4, kFewBytesMax, memory_bytes / kFewShare});
  plan.slots = AsCount(std::max(std::min(kSlotsBytesMax, memory_bytes / kSlotsShare) / slot,
                                std::min(kFewSlots, few / (slot + call.outputs))),
                       kMastersMax);
  // Two where they fit: what a call writes into another's memory then shows.
  if (plan.slots == 1 && spare / 4 >= slot + 2 * call.outputs) plan.slots = 2;
  return plan;
}

}  // namespace assay
