// Product of two matrices as it is written on paper: a dot product for each element of the output.
//
// Idea: none. The inner loop walks down a column of B, one element a cache line, and one addition
// waits for the other. `assay demo gap` sets it beside PyTorch's BLAS.
// expected: slower at small
#include <assay/kernel.h>

ASSAY_KERNEL(assay::Tensor<const float, 2> a, assay::Tensor<const float, 2> b,
             assay::Tensor<float, 2> out) {
  for (int64_t row = 0; row < a.size(0); ++row) {
    for (int64_t column = 0; column < b.size(1); ++column) {
      float sum = 0;
      for (int64_t k = 0; k < a.size(1); ++k) sum += a(row, k) * b(k, column);
      out(row, column) = sum;
    }
  }
}
