// Product of two matrices with the loops in the order row, inner, column.
//
// Idea: swap the two inner loops. Rows of B and C are now read in order, whole cache lines are
// used, and the additions of a row of C do not wait for each other.
// Prediction: 3% of the library. A load, a multiply-add and a store an element: one element a
// cycle, so 8 GFLOP/s at 4 GHz.
// Measured: 273 ms at 1024 on one core, 3.38% of the library, 2.7% of the peak: as predicted.
//! flags -O2 -fno-tree-vectorize
#include <assay/kernel.h>

ASSAY_KERNEL(assay::Tensor<const float, 2> a, assay::Tensor<const float, 2> b,
             assay::Tensor<float, 2> out) {
  const int64_t rows = a.size(0), inner = a.size(1), columns = b.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    float* __restrict__ sums = out.data() + row * columns;
    for (int64_t column = 0; column < columns; ++column) sums[column] = 0;
    for (int64_t k = 0; k < inner; ++k) {
      const float factor = a(row, k);
      const float* b_row = b.data() + k * columns;
      for (int64_t column = 0; column < columns; ++column) sums[column] += factor * b_row[column];
    }
  }
}
