// Tile by tile: the lines of 16 rows and 16 columns stay in the cache until they are done.
//
// Idea: a tile of 16x16 floats reads 16 whole lines and writes 16 whole lines, 2 KiB in all.
// The loops go through it before they go on, so each line is fetched and written once.
// Prediction: 150% of the library: a line is moved once instead of up to 16 times.
// Measured: 1.10x (as above), less than predicted: the 16 lines of a tile lie 16 KiB apart, in one
// set of the first cache, which does not hold them all.
#include <assay/kernel.h>

#include <algorithm>

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> out) {
  constexpr int64_t kTile = 16;
  const int64_t rows = x.size(0), columns = x.size(1);
  const float* from = x.data();
  float* to = out.data();
  for (int64_t first_row = 0; first_row < rows; first_row += kTile) {
    const int64_t last_row = std::min(first_row + kTile, rows);
    for (int64_t first_column = 0; first_column < columns; first_column += kTile) {
      const int64_t last_column = std::min(first_column + kTile, columns);
      for (int64_t column = first_column; column < last_column; ++column)
        for (int64_t row = first_row; row < last_row; ++row)
          to[column * rows + row] = from[row * columns + column];
    }
  }
}
