// Product of two matrices by tiles in registers and blocks in caches.
//
// Idea: three more loops around the tile (BLIS: NC, KC, MC). A block of B (256 x 256, 256 KB) stays
// in the second-level cache while all rows of A pass by, and the 16 columns that a tile reads (16
// KB) could stay in the first-level cache for a block of rows. C is summed up in inner / 256
// visits.
// Prediction: 30% of the library. At 1024 the rows of B are 4096 bytes apart, so all 256 lines of a
// tile's columns fall into one set of the first-level cache, which holds 12: blocks alone do not
// help.
// Measured: 32.2 ms at 1024 on one core, 28% of the library, 23% of the peak: less than predicted.
#include <assay/kernel.h>

#include <algorithm>
#include <cstring>

namespace {

// Eight floats; the compiler translates it for whatever vectors the machine has.
typedef float Vector __attribute__((vector_size(32)));

constexpr int kRows = 6;
constexpr int kVectors = 2;
constexpr int kLanes = 8;
constexpr int kColumns = kVectors * kLanes;
constexpr int64_t kRowBlock = 96;      // MC
constexpr int64_t kInnerBlock = 256;   // KC
constexpr int64_t kColumnBlock = 256;  // NC

inline Vector Load(const float* from) {
  Vector x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

inline void Store(float* to, Vector x) { std::memcpy(to, &x, sizeof x); }

// A product of a block of A and a block of B. The strides are those of the matrices.
struct Tile {
  const float* a;
  int64_t a_stride;
  const float* b;
  float* c;
  int64_t stride;  // of B and C
  int64_t inner;
  bool add;  // to what earlier blocks left in C, which is not read otherwise
};

// Up to kRows x kColumns, for the edges.
void MultiplyEdge(const Tile& tile, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      float* c = tile.c + row * tile.stride + column;
      float sum = tile.add ? *c : 0;
      for (int64_t k = 0; k < tile.inner; ++k)
        sum += tile.a[row * tile.a_stride + k] * tile.b[k * tile.stride + column];
      *c = sum;
    }
  }
}

void MultiplyTile(const Tile& tile) {
  Vector sum[kRows][kVectors] = {};
  const float* a = tile.a;
  const float* b = tile.b;
  for (int64_t k = 0; k < tile.inner; ++k, ++a, b += tile.stride) {
    const Vector b0 = Load(b), b1 = Load(b + kLanes);
#pragma GCC unroll 6
    for (int row = 0; row < kRows; ++row) {
      const float factor = a[row * tile.a_stride];
      sum[row][0] += factor * b0;
      sum[row][1] += factor * b1;
    }
  }
#pragma GCC unroll 6
  for (int row = 0; row < kRows; ++row) {
    float* c = tile.c + row * tile.stride;
    if (tile.add) sum[row][0] += Load(c);
    if (tile.add) sum[row][1] += Load(c + kLanes);
    Store(c, sum[row][0]);
    Store(c + kLanes, sum[row][1]);
  }
}

void MultiplyBlock(Tile tile, int64_t rows, int64_t columns) {
  const float* const a = tile.a;
  const float* const b = tile.b;
  float* const c = tile.c;
  for (int64_t column = 0; column < columns; column += kColumns) {
    for (int64_t row = 0; row < rows; row += kRows) {
      tile.a = a + row * tile.a_stride;
      tile.b = b + column;
      tile.c = c + row * tile.stride + column;
      const int64_t height = std::min<int64_t>(rows - row, kRows);
      const int64_t width = std::min<int64_t>(columns - column, kColumns);
      if (height == kRows && width == kColumns)
        MultiplyTile(tile);
      else
        MultiplyEdge(tile, height, width);
    }
  }
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> a, assay::Tensor<const float, 2> b,
             assay::Tensor<float, 2> out) {
  const int64_t rows = a.size(0), inner = a.size(1), columns = b.size(1);
  for (int64_t column = 0; column < columns; column += kColumnBlock) {
    const int64_t width = std::min(columns - column, kColumnBlock);
    for (int64_t k = 0; k < inner; k += kInnerBlock) {
      const int64_t depth = std::min(inner - k, kInnerBlock);
      for (int64_t row = 0; row < rows; row += kRowBlock) {
        const int64_t height = std::min(rows - row, kRowBlock);
        MultiplyBlock({a.data() + row * inner + k, inner, b.data() + k * columns + column,
                       out.data() + row * columns + column, columns, depth, k > 0},
                      height, width);
      }
    }
  }
}
