// Product of two matrices as it is written on paper: a dot product for each element of C.
//
// Idea: none. The inner loop walks down a column of B, a cache line an element, and each addition
// waits for the one before. The flags keep the compiler from vectorising, here and in the next
// rung.
// Prediction: 0.5% of the library. At 1024 a column of B is 1024 lines, all in the same set of the
// first-level cache: every element comes from the second level or further out, 10 to 15 cycles.
// Measured: 3.58 s at 1024 on one core, 0.26% of the library; one call a block settles no more.
//! flags -O2 -fno-tree-vectorize
#include <assay/kernel.h>

ASSAY_KERNEL(assay::Tensor<const float, 2> a, assay::Tensor<const float, 2> b,
             assay::Tensor<float, 2> out) {
  const int64_t rows = a.size(0), inner = a.size(1), columns = b.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      float sum = 0;
      for (int64_t k = 0; k < inner; ++k) sum += a(row, k) * b(k, column);
      out(row, column) = sum;
    }
  }
}
