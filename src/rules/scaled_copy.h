// Compares an output with an input times a constant: a candidate could give that and compute
// nothing. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/dtype.h"

namespace assay {

// An output and an input of as many elements, both contiguous.
struct CopyView {
  DType output_dtype = DType::kFloat32;
  const void* output = nullptr;   // the reference's, in its dtype
  const double* truth = nullptr;  // the same in float64; null: unknown
  DType input_dtype = DType::kFloat32;
  const void* input = nullptr;
  int64_t count = 0;
};

// Returns the factor f by which f * input is nearest to the output in the root mean square; nullopt
// if even that is off by over a quarter of the output's, beyond every bound of gate 1, or if the
// output has no finite element but zeros.
std::optional<double> NearestFactor(const CopyView& view);

// Writes factor * input in the output's dtype.
std::vector<std::byte> ScaledCopy(const CopyView& view, double factor);

// Returns true if the output is factor * input in exact arithmetic: in float64 up to its rounding;
// without it, up to that of the output's dtype. NaN equals NaN.
bool IsScaledCopy(const CopyView& view, double factor);

}  // namespace assay
