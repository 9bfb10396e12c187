// Product of two matrices with the loops in the order row, inner, column.
//
// Idea: the innermost loop walks along rows of B and C, so it reads memory in order and vectorises.
// PyTorch's BLAS keeps blocks of C in registers and of A and B in cache.
// expected: slower at small
#include <assay/kernel.h>

ASSAY_KERNEL(assay::Tensor<const float, 2> a, assay::Tensor<const float, 2> b,
             assay::Tensor<float, 2> out) {
  const int64_t rows = a.size(0);
  const int64_t inner = a.size(1);
  const int64_t columns = b.size(1);
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
