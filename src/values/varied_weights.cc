#include "values/varied_weights.h"

#include <cstring>
#include <random>

namespace assay {
namespace {

// How many bits of mantissa lie below the exponent, and how wide the exponent is.
struct Layout {
  uint32_t mantissa_bits, exponent_bits;
};
Layout LayoutOf(wire::DType dtype) {
  switch (dtype) {
    case wire::DType::kFloat64:
      return {52, 11};
    case wire::DType::kFloat32:
      return {23, 8};
    case wire::DType::kFloat16:
      return {10, 5};
    case wire::DType::kBFloat16:
      return {7, 8};
    default:
      return {0, 0};
  }
}

// Twice or half of the number, by its exponent alone; zeros, denormals, infinities, NaN and what
// would become one of them stay. Zeros are often structure.
uint64_t Scaled(uint64_t bits, Layout layout, bool up) {
  const uint64_t exponent_max = (uint64_t{1} << layout.exponent_bits) - 1;
  const uint64_t exponent = bits >> layout.mantissa_bits & exponent_max;
  const uint64_t unit = uint64_t{1} << layout.mantissa_bits;
  if (exponent == 0 || exponent == exponent_max) return bits;
  if (up) return exponent + 1 < exponent_max ? bits + unit : bits - unit;
  return exponent > 1 ? bits - unit : bits + unit;
}

}  // namespace

VariedWeights::VariedWeights(const wire::Plan& plan, std::byte* weights) : weights_(weights) {
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const wire::ArgumentSpec& argument = plan.arguments[i];
    const bool floating = LayoutOf(argument.dtype).exponent_bits != 0;
    if (argument.role != wire::Role::kParameter || argument.varies == 0 || !floating ||
        argument.size_bytes == 0)
      continue;
    const uint64_t count = argument.size_bytes / wire::ElementBytes(argument.dtype);
    Group* same = nullptr;
    for (Group& group : groups_)
      if (group.dtype == argument.dtype && group.count == count &&
          std::memcmp(weights_ + group.offsets.front(), weights_ + argument.offset,
                      argument.size_bytes) == 0)
        same = &group;
    if (same == nullptr) same = &groups_.emplace_back(Group{argument.dtype, count, {}});
    same->offsets.push_back(argument.offset);
  }
}

bool VariedWeights::Show(uint64_t version) {
  if (version == version_ || groups_.empty()) return false;
  // In reverse: an element may have been changed twice.
  for (auto saved = saved_.rbegin(); saved != saved_.rend(); ++saved)
    std::memcpy(saved->at, saved->content, saved->size_bytes);
  saved_.clear();
  version_ = version;
  if (version == 0) return true;
  std::mt19937_64 random(version);
  for (const Group& group : groups_) {
    const uint64_t changes = 1 + group.count / kWeightsPerChange;
    for (uint64_t change = 0; change < changes; ++change) {
      const uint64_t element = random() % group.count;
      Change(group, element, random() % 2 == 0);
    }
  }
  return true;
}

void VariedWeights::Change(const Group& group, uint64_t element, bool up) {
  const uint32_t size = wire::ElementBytes(group.dtype);
  for (const uint64_t offset : group.offsets) {
    std::byte* at = weights_ + offset + element * size;
    Saved saved{at, size, {}};
    std::memcpy(saved.content, at, size);
    saved_.push_back(saved);
    uint64_t bits = 0;
    std::memcpy(&bits, at, size);
    bits = Scaled(bits, LayoutOf(group.dtype), up);
    std::memcpy(at, &bits, size);
  }
}

}  // namespace assay
