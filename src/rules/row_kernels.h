// The inner loops of gate 1, over plain arrays, written with the compiler's vector types so that
// they run at memory speed on every x86-64 machine. Sums and products are in double, where float32
// values can neither overflow nor underflow.
#pragma once

#include <cstdint>

namespace assay {

struct RowSums {
  double difference2 = 0;  // sum of (y - r)^2: NaN or infinite if y or r holds a NaN or an infinity
  double reference2 = 0;   // sum of r^2
  double difference_max = 0;  // largest |y - r|, without NaN
};

struct RowKernels {
  // float16 to float, exact. `from` need not be aligned.
  void (*widen_float16)(const void* from, int64_t count, float* to);
  void (*sums_float)(const float* y, const float* r, int64_t count, RowSums* sums);
  void (*sums_double)(const double* y, const double* r, int64_t count, RowSums* sums);
  // Largest |y - r| / (offset + slope * |r|); 0 / 0 counts as 0. Infinite if a difference is NaN.
  double (*ratio_float)(const float* y, const float* r, int64_t count, double offset, double slope);
  double (*ratio_double)(const double* y, const double* r, int64_t count, double offset,
                         double slope);
};

// Returns the kernels for this machine: AVX2 and F16C where it has them.
const RowKernels& Kernels();
// Returns the kernels that run on any machine, for tests that compare the two.
const RowKernels& PortableKernels();

}  // namespace assay
