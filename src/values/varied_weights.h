// Changes a few of the weights from block to block, in the memory that every host reads, so that no
// candidate can do work on weights once, outside of the clock. A version is a number; the same
// number gives the same weights. No host under test may run while weights change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/types.h"

namespace assay {

// About one element in this many changes; at least one in every parameter that varies.
inline constexpr uint64_t kWeightsPerChange = 4096;

class VariedWeights {
 public:
  VariedWeights() = default;
  // `weights` holds the parameters as the reference constructed them, laid out by `plan`; both
  // outlive this object. Parameters with the same bytes count as one tensor under two names, and
  // change alike.
  VariedWeights(const wire::Plan& plan, std::byte* weights);

  // Writes the weights of this version; 0: as constructed. Returns true if anything changed.
  bool Show(uint64_t version);
  bool any_vary() const { return !groups_.empty(); }

 private:
  // Parameters with the same values, by their offsets in the weights.
  struct Group {
    wire::DType dtype;
    uint64_t count;
    std::vector<uint64_t> offsets;
  };
  struct Saved {
    std::byte* at;
    uint32_t size_bytes;
    std::byte content[8];
  };
  void Change(const Group& group, uint64_t element, bool up);

  std::byte* weights_ = nullptr;
  std::vector<Group> groups_;
  std::vector<Saved> saved_;
  uint64_t version_ = 0;
};

}  // namespace assay
