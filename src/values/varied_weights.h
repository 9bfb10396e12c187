// Changes a few of the weights from block to block, in the memory that every host reads, so that
// work on weights cannot be done once and kept outside of the clock. A version is a number; the
// same number gives the same weights again. No host under test may run while weights change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/types.h"

namespace assay {

// About one element in this many changes; in every parameter that varies, at least one.
inline constexpr uint64_t kWeightsPerChange = 4096;

class VariedWeights {
 public:
  VariedWeights() = default;
  // `weights` holds the parameters as the reference constructed them, laid out by `plan`; both
  // outlive this object. Parameters that hold the same bytes are taken for one tensor under two
  // names, and change alike.
  VariedWeights(const wire::Plan& plan, std::byte* weights);

  // Puts the weights of this version there; 0 gives those that were constructed. Returns whether
  // anything changed.
  bool Show(uint64_t version);
  bool any_vary() const { return !groups_.empty(); }

 private:
  // Parameters that hold the same values: where each lies, from the start of the weights.
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
