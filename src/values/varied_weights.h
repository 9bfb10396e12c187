// Versions of the weights: each differs from what the reference constructed, and from every other,
// in about every element and every bit, so that work on one call's weights does not serve another
// call. Zeros stay, and the signs of a tensor whose elements all have one. A version is a number;
// the same number gives the same weights. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/judge_tasks.h"
#include "wire/types.h"

namespace assay {

// With careful changes: of a tensor with fewer elements, each is halved, doubled or left. Such a
// tensor may hold an exponent or a number of steps.
inline constexpr uint64_t kScaledElementsMax = 256;

// How far versions differ. Careful ones serve a reference that gives NaN or infinity, or fails,
// with weights that are drawn: elements then keep their sign and about their value.
enum class Reach { kDrawn, kCareful };

class VariedWeights {
 public:
  VariedWeights() = default;
  // `constructed`: the parameters as the reference constructed them, laid out by `plan`, a whole
  // stride. Parameters with the same bytes count as one tensor under two names, and change alike.
  VariedWeights(const wire::Plan& plan, std::vector<std::byte> constructed,
                Reach reach = Reach::kDrawn);

  // A part of the weights. Parts that stay have no variation.
  struct Tensor {
    uint64_t offset, size_bytes;
  };
  struct Varied {
    uint64_t offset, words;
    gpu::Variation variation;
  };
  // Returns the parameters that vary, as this version has them; for version 0: none.
  std::vector<Varied> TensorsOf(uint64_t version) const;
  // Returns the parameters that stay in every version.
  const std::vector<Tensor>& others() const { return others_; }
  bool any_vary() const { return !varied_.empty(); }
  const std::vector<std::byte>& constructed() const { return constructed_; }

  // Writes a version into a copy in this process's memory, past the caches. A copy that never held
  // any is written whole, else the parameters that vary alone.
  void Write(uint64_t version, bool whole, std::byte* copy) const;

 private:
  struct Group {
    uint64_t offset, words, group;
    gpu::Variation variation;
  };
  std::vector<std::byte> constructed_;
  std::vector<Group> varied_;
  std::vector<Tensor> others_;
};

}  // namespace assay
