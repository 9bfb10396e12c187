// Product of two matrices by blocks that are copied before they are used.
//
// Idea: copy (pack) each block into the order in which the tiles read it. B becomes panels of 16
// columns, A panels of 6 rows, k outermost in both, so a tile reads two streams without a gap: no
// set of a cache is used more than another, a page is used whole, and rows past the edge are zeros,
// so that one kernel serves all tiles. The copies cost inner * columns + inner * rows loads and
// stores for inner * rows * columns multiply-adds. Blocks of B may be larger now: 256 x 4096.
// Prediction: 48% of the library: near the peak of vectors of 8 floats, which is half of the
// machine's.
// Measured: 17.5 ms at 1024 on one core, 52.4% of the library, 43% of the peak: more than
//   predicted.
#include <assay/kernel.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace {

// Eight floats; the compiler translates it for whatever vectors the machine has.
typedef float Vector __attribute__((vector_size(32)));

constexpr int kRows = 6;
constexpr int kVectors = 2;
constexpr int kLanes = 8;
constexpr int kColumns = kVectors * kLanes;
constexpr int64_t kRowBlock = 96;       // MC
constexpr int64_t kInnerBlock = 256;    // KC
constexpr int64_t kColumnBlock = 4096;  // NC

inline Vector Load(const float* from) {
  Vector x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

inline void Store(float* to, Vector x) { std::memcpy(to, &x, sizeof x); }

// A panel of A times a panel of B. No more than `rows` x `columns` of the result are kept.
struct Tile {
  const float* a;
  const float* b;
  float* c;
  int64_t stride;  // of C
  int64_t inner;
  bool add;  // to what earlier blocks left in C, which is not read otherwise
  int64_t rows;
  int64_t columns;
};

void MultiplyTile(const Tile& tile) {
  Vector sum[kRows][kVectors] = {};
  const float* a = tile.a;
  const float* b = tile.b;
  for (int64_t k = 0; k < tile.inner; ++k, a += kRows, b += kColumns) {
    const Vector b0 = Load(b), b1 = Load(b + kLanes);
#pragma GCC unroll 6
    for (int row = 0; row < kRows; ++row) {
      sum[row][0] += a[row] * b0;
      sum[row][1] += a[row] * b1;
    }
  }
  float result[kRows][kColumns];
#pragma GCC unroll 6
  for (int row = 0; row < kRows; ++row) {
    Store(result[row], sum[row][0]);
    Store(result[row] + kLanes, sum[row][1]);
  }
  for (int64_t row = 0; row < tile.rows; ++row) {
    float* c = tile.c + row * tile.stride;
    for (int64_t column = 0; column < tile.columns; ++column)
      c[column] = result[row][column] + (tile.add ? c[column] : 0);
  }
}

// Panels of kRows rows, k outermost, zeros past the last row.
void PackA(const float* from, int64_t stride, int64_t rows, int64_t inner, float* to) {
  for (int64_t row = 0; row < rows; row += kRows)
    for (int64_t k = 0; k < inner; ++k)
      for (int64_t r = row; r < row + kRows; ++r) *to++ = r < rows ? from[r * stride + k] : 0;
}

// Panels of kColumns columns, k outermost, zeros past the last column.
void PackB(const float* from, int64_t stride, int64_t inner, int64_t columns, float* to) {
  for (int64_t column = 0; column < columns; column += kColumns) {
    const int64_t width = std::min<int64_t>(columns - column, kColumns);
    for (int64_t k = 0; k < inner; ++k, to += kColumns) {
      const float* row = from + k * stride + column;
      if (width == kColumns) {
        std::memcpy(to, row, sizeof(float) * kColumns);
      } else {
        std::fill(std::copy_n(row, width, to), to + kColumns, 0.0f);
      }
    }
  }
}

// One buffer for as long as the process lives.
float* Buffer(int64_t count) {
  return static_cast<float*>(std::aligned_alloc(4096, static_cast<size_t>(count) * sizeof(float)));
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> a, assay::Tensor<const float, 2> b,
             assay::Tensor<float, 2> out) {
  static float* const a_panels = Buffer(kRowBlock * kInnerBlock);
  static float* const b_panels = Buffer(kInnerBlock * kColumnBlock);
  const int64_t rows = a.size(0), inner = a.size(1), columns = b.size(1);
  float* const c = out.data();
  for (int64_t left = 0; left < columns; left += kColumnBlock) {
    const int64_t width = std::min(columns - left, kColumnBlock);
    for (int64_t k = 0; k < inner; k += kInnerBlock) {
      const int64_t depth = std::min(inner - k, kInnerBlock);
      PackB(b.data() + k * columns + left, columns, depth, width, b_panels);
      for (int64_t top = 0; top < rows; top += kRowBlock) {
        const int64_t height = std::min(rows - top, kRowBlock);
        PackA(a.data() + top * inner + k, inner, height, depth, a_panels);
        for (int64_t column = 0; column < width; column += kColumns) {
          for (int64_t row = 0; row < height; row += kRows) {
            MultiplyTile({a_panels + row * depth, b_panels + column * depth,
                          c + (top + row) * columns + left + column, columns, depth, k > 0,
                          std::min<int64_t>(height - row, kRows),
                          std::min<int64_t>(width - column, kColumns)});
          }
        }
      }
    }
  }
}
