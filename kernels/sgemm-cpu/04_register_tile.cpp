// Product of two matrices by tiles of C that stay in registers.
//
// Idea: a tile of 6 rows and 16 columns is summed over the whole of k before it is stored once. Two
// vectors of B serve six rows, so a step of k loads 22 numbers for 96 multiply-adds, where the rung
// before loaded 2 and stored 1 for each. The tile is 12 vectors of 8: 12 chains of additions, which
// is enough to fill two units of 4 cycles' latency (8 at least).
// Prediction: 25% of the library. The arithmetic would allow half (vectors of 8, not of 16), but a
// step of k jumps 4096 bytes in B, a page a step, and a column of such lines shares few cache sets.
// Measured: 55 ms at 1024 on one core, 17.4% of the library, 14% of the peak: less than predicted.
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

inline Vector Load(const float* from) {
  Vector x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

inline void Store(float* to, Vector x) { std::memcpy(to, &x, sizeof x); }

// C[rows x columns] of up to kRows x kColumns, for the edges.
void MultiplyEdge(const float* a, const float* b, float* c, int64_t rows, int64_t inner,
                  int64_t columns, int64_t stride) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      float sum = 0;
      for (int64_t k = 0; k < inner; ++k) sum += a[row * inner + k] * b[k * stride + column];
      c[row * stride + column] = sum;
    }
  }
}

void MultiplyTile(const float* a, const float* b, float* c, int64_t inner, int64_t stride) {
  Vector sum[kRows][kVectors] = {};
  for (int64_t k = 0; k < inner; ++k) {
    const Vector b0 = Load(b + k * stride), b1 = Load(b + k * stride + kLanes);
#pragma GCC unroll 6
    for (int row = 0; row < kRows; ++row) {
      const float factor = a[row * inner + k];
      sum[row][0] += factor * b0;
      sum[row][1] += factor * b1;
    }
  }
#pragma GCC unroll 6
  for (int row = 0; row < kRows; ++row) {
    Store(c + row * stride, sum[row][0]);
    Store(c + row * stride + kLanes, sum[row][1]);
  }
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> a, assay::Tensor<const float, 2> b,
             assay::Tensor<float, 2> out) {
  const int64_t rows = a.size(0), inner = a.size(1), columns = b.size(1);
  for (int64_t row = 0; row < rows; row += kRows) {
    for (int64_t column = 0; column < columns; column += kColumns) {
      const float* a_rows = a.data() + row * inner;
      const float* b_columns = b.data() + column;
      float* c = out.data() + row * columns + column;
      const int64_t height = rows - row, width = columns - column;
      if (height >= kRows && width >= kColumns)
        MultiplyTile(a_rows, b_columns, c, inner, columns);
      else
        MultiplyEdge(a_rows, b_columns, c, std::min<int64_t>(height, kRows), inner,
                     std::min<int64_t>(width, kColumns), columns);
    }
  }
}
