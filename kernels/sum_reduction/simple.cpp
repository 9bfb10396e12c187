// Sum over the middle dimension, a strip of columns at a time.
//
// Idea: a strip's sums stay in registers and cache while the rows go by; they are kept in double,
// so that a long column loses no digits. Double takes twice the registers and
// conversions: PyTorch, which adds up in float, is done while this still computes.
// expected: slower at small
#include <assay/kernel.h>

#include <algorithm>

ASSAY_KERNEL(assay::Tensor<const float, 3> x, assay::Tensor<float, 2> out) {
  constexpr int64_t kStrip = 256;
  const int64_t batch = x.size(0);
  const int64_t rows = x.size(1);
  const int64_t columns = x.size(2);
  for (int64_t image = 0; image < batch; ++image) {
    for (int64_t first = 0; first < columns; first += kStrip) {
      const int64_t width = std::min(kStrip, columns - first);
      double sums[kStrip] = {};
      for (int64_t row = 0; row < rows; ++row) {
        const float* from = &x(image, row, first);
        for (int64_t i = 0; i < width; ++i) sums[i] += from[i];
      }
      for (int64_t i = 0; i < width; ++i) out(image, first + i) = static_cast<float>(sums[i]);
    }
  }
}
