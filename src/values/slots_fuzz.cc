// Lays out descriptions of a problem from any bytes in place of a host's ArgumentSpecs. Sound ones
// must be laid out without overlap and with guards, and damage must be found.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "values/slot_layout.h"

namespace assay {
namespace {

using wire::ArgumentSpec;
using wire::Plan;
using wire::Role;

constexpr uint64_t kGuard = 0x0123456789ABCDEF;
constexpr uint64_t kMemoryBytesMax = 1 << 20;
constexpr uint32_t kSlots = 2;

// An input gives each argument its header and the first bytes of its name; the rest is zero. The
// size is often left to follow from the shape: few inputs would be sound else.
ArgumentSpec Decode(const uint8_t* bytes, size_t count) {
  ArgumentSpec argument{};
  constexpr size_t kName = 4;
  std::memcpy(argument.name, bytes, std::min(count, kName));
  if (count <= kName) return argument;
  if (argument.name[0] == 'N') std::memset(argument.name, 'N', sizeof argument.name);
  auto* target = reinterpret_cast<uint8_t*>(&argument) + offsetof(ArgumentSpec, role);
  const size_t room = sizeof argument - offsetof(ArgumentSpec, role);
  std::memcpy(target, bytes + kName, std::min(count - kName, room));
  if (argument.name[0] != 'S') return argument;
  argument.size_bytes = wire::ElementBytes(argument.dtype);
  for (uint32_t i = 0; i < std::min(argument.rank, wire::kRankMax); ++i)
    argument.size_bytes *= static_cast<uint64_t>(argument.shape[i]);
  if (argument.kind != wire::Kind::kTensor) argument.size_bytes = 8;
  return argument;
}

// Each range starts on a line, at least the guard's width after the one before; the stride has room
// for another guard after the last.
void CheckPlaces(const Plan& plan, Role role, uint64_t stride) {
  uint64_t end = 0;
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const ArgumentSpec& argument = plan.arguments[i];
    if (argument.role != role) continue;
    ASSAY_CHECK(argument.offset % 64 == 0 && argument.offset >= end + kGuardBytes);
    end = argument.offset + argument.size_bytes;
  }
  ASSAY_CHECK(end == 0 || end + kGuardBytes <= stride);
}

void CheckMemory(const Plan& plan, uint64_t damaged_byte) {
  const uint64_t size = kSlots * plan.output_stride;
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(64, (size + 63) / 64 * 64)), &std::free);
  std::byte* outputs = memory.get();
  PoisonOutputs(plan, outputs, kSlots, kGuard);
  const uint32_t slots[] = {0, 1};
  ASSAY_CHECK(!FindGuardDamage(plan, outputs, slots, kGuard));
  for (const uint32_t slot : slots) ASSAY_CHECK(SlotIsUntouched(plan, outputs, slot, kGuard));
  const auto sample = OutputSample::Take(plan, outputs, slots, 16, damaged_byte);
  ASSAY_CHECK(sample.StillHolds());
  const uint64_t at = damaged_byte % size;
  outputs[at] = ~outputs[at];
  const auto slot = static_cast<uint32_t>(at / plan.output_stride);
  ASSAY_CHECK(!SlotIsUntouched(plan, outputs, slot, kGuard));
  ASSAY_CHECK(SlotIsUntouched(plan, outputs, 1 - slot, kGuard));
  bool inside = false;
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const ArgumentSpec& argument = plan.arguments[i];
    const uint64_t within = at % plan.output_stride;
    inside = inside || (argument.role == Role::kOutput && within >= argument.offset &&
                        within < argument.offset + argument.size_bytes);
  }
  const auto damage = FindGuardDamage(plan, outputs, slots, kGuard);
  ASSAY_CHECK(damage.has_value() == !inside);
  if (damage) ASSAY_CHECK(damage->slot == slot);
}

}  // namespace
}  // namespace assay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  if (size < 9) return 0;
  uint64_t damaged_byte = 0;
  std::memcpy(&damaged_byte, data, sizeof damaged_byte);
  const size_t piece = 1 + size_t{data[8]} % 128;
  ProblemDescription description;
  for (size_t at = 9; at < size && description.arguments.size() <= wire::kArgumentsMax; at += piece)
    description.arguments.push_back(Decode(data + at, std::min(piece, size - at)));
  std::erase_if(description.arguments,
                [](const wire::ArgumentSpec& argument) { return !IsSound(argument); });
  const auto laid = LayOutSlots(description);
  if (!laid) {
    ASSAY_CHECK(laid.error().kind == ErrorKind::kUsage && !laid.error().message.empty());
    return 0;
  }
  const auto plan = std::make_unique<wire::Plan>(*laid);
  plan->slot_count = kSlots;
  CheckPlaces(*plan, wire::Role::kInput, plan->input_stride);
  CheckPlaces(*plan, wire::Role::kParameter, plan->weights_stride);
  CheckPlaces(*plan, wire::Role::kOutput, plan->output_stride);
  if (plan->output_stride <= kMemoryBytesMax) CheckMemory(*plan, damaged_byte);
  return 0;
}
