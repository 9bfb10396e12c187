#include "values/varied_weights.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "values/slot_layout.h"

namespace assay {
namespace {

constexpr uint64_t kWord = sizeof(uint64_t);

// A type's layout; no bits of exponent: it does not vary.
gpu::Variation LayoutOf(wire::DType dtype) {
  switch (dtype) {
    case wire::DType::kFloat64:
      return {0, 52, 11, gpu::Change::kDrawn, false};
    case wire::DType::kFloat32:
      return {0, 23, 8, gpu::Change::kDrawn, false};
    case wire::DType::kFloat16:
      return {0, 10, 5, gpu::Change::kDrawn, false};
    case wire::DType::kBFloat16:
      return {0, 7, 8, gpu::Change::kDrawn, false};
    case wire::DType::kFloat8E4M3:
      return {0, 3, 4, gpu::Change::kDrawn, false};
    case wire::DType::kFloat8E5M2:
      return {0, 2, 5, gpu::Change::kDrawn, false};
    default:
      return {0, 0, 0, gpu::Change::kDrawn, false};
  }
}

// Returns true if elements of both signs are there, zeros aside. The sign is the highest bit.
bool BothSigns(std::span<const std::byte> elements, uint64_t element_bytes) {
  bool positive = false, negative = false;
  for (uint64_t at = 0; at + element_bytes <= elements.size(); at += element_bytes) {
    uint64_t element = 0;
    std::memcpy(&element, &elements[at], element_bytes);
    const uint64_t sign = uint64_t{1} << (8 * element_bytes - 1);
    if ((element & (sign - 1)) == 0) continue;
    ((element & sign) != 0 ? negative : positive) = true;
    if (positive && negative) return true;
  }
  return false;
}

constexpr uint64_t kPieceWords = 512;
using Piece = unsigned long long[kPieceWords];

// Varies a piece in place, whose first word has number `begin`. The layout and the change are
// constants of the loop: without that it takes three times as long.
template <unsigned kMantissaBits, unsigned kExponentBits, gpu::Change kChange>
void VaryBy(Piece& piece, uint64_t begin, uint64_t words, gpu::Variation how) {
  how.mantissa_bits = kMantissaBits;
  how.exponent_bits = kExponentBits;
  how.change = kChange;
  for (uint64_t i = 0; i < words; ++i) piece[i] = gpu::VariedWord(piece[i], begin + i, how);
}

template <unsigned kMantissaBits, unsigned kExponentBits>
void Vary(Piece& piece, uint64_t begin, uint64_t words, const gpu::Variation& how) {
  switch (how.change) {
    case gpu::Change::kDrawn:
      return VaryBy<kMantissaBits, kExponentBits, gpu::Change::kDrawn>(piece, begin, words, how);
    case gpu::Change::kLowBits:
      return VaryBy<kMantissaBits, kExponentBits, gpu::Change::kLowBits>(piece, begin, words, how);
    case gpu::Change::kScaled:
      return VaryBy<kMantissaBits, kExponentBits, gpu::Change::kScaled>(piece, begin, words, how);
  }
}

void VaryPiece(Piece& piece, uint64_t begin, uint64_t words, const gpu::Variation& how) {
  switch (how.mantissa_bits) {
    case 52:
      return Vary<52, 11>(piece, begin, words, how);
    case 23:
      return Vary<23, 8>(piece, begin, words, how);
    case 10:
      return Vary<10, 5>(piece, begin, words, how);
    case 3:
      return Vary<3, 4>(piece, begin, words, how);
    case 2:
      return Vary<2, 5>(piece, begin, words, how);
    default:
      return Vary<7, 8>(piece, begin, words, how);
  }
}

}  // namespace

VariedWeights::VariedWeights(const wire::Plan& plan, std::vector<std::byte> constructed,
                             Reach reach)
    : constructed_(std::move(constructed)) {
  std::vector<const wire::ArgumentSpec*> firsts;  // of each group
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const wire::ArgumentSpec& argument = plan.arguments[i];
    if (argument.role != wire::Role::kParameter || argument.size_bytes == 0) continue;
    gpu::Variation variation = LayoutOf(argument.dtype);
    if (argument.varies == 0 || variation.exponent_bits == 0) {
      others_.push_back({argument.offset, argument.size_bytes});
      continue;
    }
    const uint64_t element_bytes = wire::ElementBytes(argument.dtype);
    variation.signs =
        BothSigns({constructed_.data() + argument.offset, argument.size_bytes}, element_bytes);
    if (reach == Reach::kCareful)
      variation.change = argument.size_bytes / element_bytes < kScaledElementsMax
                             ? gpu::Change::kScaled
                             : gpu::Change::kLowBits;
    const auto same = std::find_if(firsts.begin(), firsts.end(), [&](const auto* first) {
      return first->dtype == argument.dtype && first->size_bytes == argument.size_bytes &&
             std::memcmp(constructed_.data() + first->offset, constructed_.data() + argument.offset,
                         argument.size_bytes) == 0;
    });
    const auto group = static_cast<uint64_t>(same - firsts.begin());
    if (same == firsts.end()) firsts.push_back(&argument);
    varied_.push_back(
        {argument.offset, (argument.size_bytes + kWord - 1) / kWord, group, variation});
  }
}

std::vector<VariedWeights::Varied> VariedWeights::TensorsOf(uint64_t version) const {
  std::vector<Varied> tensors;
  if (version == 0) return tensors;
  for (const Group& tensor : varied_) {
    Varied varied{tensor.offset, tensor.words, tensor.variation};
    varied.variation.seed = gpu::RandomBits(gpu::RandomBits(version) + tensor.group);
    tensors.push_back(varied);
  }
  return tensors;
}

void VariedWeights::Write(uint64_t version, bool whole, std::byte* copy) const {
  if (whole)
    CopyPastCaches(copy, constructed_.data(), constructed_.size());
  else if (version == 0)
    for (const Group& tensor : varied_)
      CopyPastCaches(copy + tensor.offset, constructed_.data() + tensor.offset,
                     tensor.words * kWord);
  for (const Varied& tensor : TensorsOf(version)) {
    const std::byte* from = constructed_.data() + tensor.offset;
    Piece piece;
    for (uint64_t begin = 0; begin < tensor.words; begin += kPieceWords) {
      const uint64_t words = std::min(kPieceWords, tensor.words - begin);
      std::memcpy(piece, from + begin * kWord, words * kWord);
      VaryPiece(piece, begin, words, tensor.variation);
      CopyPastCaches(copy + tensor.offset + begin * kWord,
                     reinterpret_cast<const std::byte*>(piece), words * kWord);
    }
  }
}

}  // namespace assay
