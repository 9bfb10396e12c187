// Softmax, the textbook's way: three loops over each row, one exponential from the C library an
// element.
//
// Idea: none; the starting point. The largest value is subtracted first, so that no exponential
// overflows. The compiler cannot vectorise a call to the library.
// expected: slower at small
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
    for (int64_t column = 0; column < columns; ++column) {
      y(row, column) = static_cast<float>(y(row, column) / sum);
    }
  }
}
