// The naive softmax with one slip: the loop that divides by the sum stops a column early.
//
// Idea: what a hurried edit looks like. Every row is right but for its last element, one in
// thousands. The verdict has a hint that points at the last column.
// expected: wrong
#include <assay/kernel.h>

#include <algorithm>
#include <cmath>
#include <limits>

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y) {
  const int64_t rows = x.size(0);
  const int64_t columns = x.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t column = 0; column < columns; ++column) {
      largest = std::max(largest, x(row, column));
    }
    double sum = 0;  // thousands of floats added one by one would lose digits
    for (int64_t column = 0; column < columns; ++column) {
      y(row, column) = std::exp(x(row, column) - largest);
      sum += y(row, column);
    }
    for (int64_t column = 0; column < columns - 1; ++column) {
      y(row, column) = static_cast<float>(y(row, column) / sum);
    }
  }
}
