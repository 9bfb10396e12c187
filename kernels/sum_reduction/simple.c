/* Sum over the middle dimension in C: the same strip of columns as simple.cpp.
 *
 * Idea: shows the C form of a candidate. */
/* expected: slower at small */
/*! flags -O3 -std=c17 */
#include <assay/kernel.h>

enum { STRIP = 256 };

ASSAY_KERNEL_C(ASSAY_TENSOR(const float, 3, x), ASSAY_TENSOR(float, 2, out)) {
  const int64_t batch = x_size[0];
  const int64_t rows = x_size[1];
  const int64_t columns = x_size[2];
  for (int64_t image = 0; image < batch; ++image) {
    for (int64_t first = 0; first < columns; first += STRIP) {
      const int64_t width = columns - first < STRIP ? columns - first : STRIP;
      double sums[STRIP] = {0};
      for (int64_t row = 0; row < rows; ++row) {
        const float* from = x + (image * rows + row) * columns + first;
        for (int64_t i = 0; i < width; ++i) sums[i] += from[i];
      }
      for (int64_t i = 0; i < width; ++i) out[image * columns + first + i] = (float)sums[i];
    }
  }
}
