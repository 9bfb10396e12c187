/* Largest element of each 3 x 3 window, first down the columns, then along the row, in C.
 *
 * Idea: the maximum of a window is the maximum of its columns' maxima. Three rows of the image give
 * one row of those, by a loop without branches that the compiler vectorises; neighbouring windows
 * share the third of it where they overlap. PyTorch takes each window's nine elements one by one,
 * and keeps their places too.
 */
/* expected: faster at small */
/*! flags -fno-trapping-math */
#include <assay/kernel.h>

enum { STRIP = 512 }; /* columns of the image that are worked on at a time */

/* NaN wins, from either side. */
static inline float larger(float a, float b) {
  const float result = a > b ? a : b;
  return a != a ? a : result;
}

/* maxima[i] is the largest of column first + i in the rows above, middle and below. */
static void columns_of(const float* above, const float* middle, const float* below, int64_t count,
                       float* restrict maxima) {
  for (int64_t i = 0; i < count; ++i) maxima[i] = larger(larger(above[i], middle[i]), below[i]);
}

ASSAY_KERNEL_C(ASSAY_TENSOR(const float, 4, x), ASSAY_TENSOR(float, 4, out)) {
  const int64_t images = x_size[0] * x_size[1];
  const int64_t height = x_size[2];
  const int64_t width = x_size[3];
  const int64_t rows = out_size[2];
  const int64_t columns = out_size[3];
  for (int64_t image = 0; image < images; ++image) {
    for (int64_t row = 0; row < rows; ++row) {
      /* Beyond the border there is nothing: the middle row stands in for it. */
      const float* middle = x + (image * height + 2 * row) * width;
      const float* above = row > 0 ? middle - width : middle;
      const float* below = 2 * row + 1 < height ? middle + width : middle;
      float* to = out + (image * rows + row) * columns;
      for (int64_t first = 0; first < columns; first += STRIP / 2) {
        const int64_t count = columns - first < STRIP / 2 ? columns - first : STRIP / 2;
        /* maxima[1 + i] is column 2 * first + i; one more lies before, one perhaps missing after.
         */
        float maxima[STRIP + 1];
        const int64_t start = 2 * first;
        const int64_t inside = width - start < STRIP ? width - start : STRIP;
        columns_of(above + start, middle + start, below + start, inside, maxima + 1);
        if (inside < 2 * count) maxima[2 * count] = maxima[2 * count - 1];
        maxima[0] = start > 0
                        ? larger(larger(above[start - 1], middle[start - 1]), below[start - 1])
                        : maxima[1];
        for (int64_t i = 0; i < count; ++i)
          to[first + i] = larger(larger(maxima[2 * i], maxima[2 * i + 1]), maxima[2 * i + 2]);
      }
    }
  }
}
