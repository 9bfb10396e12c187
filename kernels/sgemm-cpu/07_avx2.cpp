// Product of two matrices with an AVX2 kernel by intrinsics.
//
// Idea: write the kernel of 6 x 16 in the instructions themselves: 12 accumulators, 2 vectors of B
// and a broadcast element of A are 15 of the 16 registers of AVX2. Tiles inside C are stored
// straight from the registers. Where AVX2 is missing, the compiler's own vectors do the same with 4
// lanes.
// Prediction: 50% of the library; the compiler had found the same registers, so the store is all
// there is to gain. What this rung is for is the next one: a layer of six functions that hides the
// vectors.
// Measured: 17.1 ms at 1024 on one core, 53.2% of the library, 44% of the peak: more than
//   predicted.
#include <assay/kernel.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX2__) && defined(__FMA__)
using Vector = __m256;
constexpr int kRows = 6;
inline Vector Load(const float* from) { return _mm256_loadu_ps(from); }
inline void Store(float* to, Vector x) { _mm256_storeu_ps(to, x); }
inline Vector Broadcast(float x) { return _mm256_set1_ps(x); }
inline Vector Add(Vector x, Vector y) { return _mm256_add_ps(x, y); }
inline Vector MultiplyAdd(Vector x, Vector y, Vector sum) { return _mm256_fmadd_ps(x, y, sum); }
#else
typedef float Vector __attribute__((vector_size(16)));
constexpr int kRows = 6;
inline Vector Load(const float* from) {
  Vector x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
inline void Store(float* to, Vector x) { std::memcpy(to, &x, sizeof x); }
inline Vector Broadcast(float x) { return Vector{x, x, x, x}; }
inline Vector Add(Vector x, Vector y) { return x + y; }
inline Vector MultiplyAdd(Vector x, Vector y, Vector sum) { return x * y + sum; }
#endif

constexpr int kVectors = 2;
constexpr int kLanes = sizeof(Vector) / sizeof(float);
constexpr int kColumns = kVectors * kLanes;
constexpr int64_t kRowBlock = 96;       // MC
constexpr int64_t kInnerBlock = 256;    // KC
constexpr int64_t kColumnBlock = 4096;  // NC

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
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      const Vector factor = Broadcast(a[row]);
      sum[row][0] = MultiplyAdd(factor, b0, sum[row][0]);
      sum[row][1] = MultiplyAdd(factor, b1, sum[row][1]);
    }
  }
  if (tile.rows == kRows && tile.columns == kColumns) {
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      float* c = tile.c + row * tile.stride;
      if (tile.add) sum[row][0] = Add(sum[row][0], Load(c));
      if (tile.add) sum[row][1] = Add(sum[row][1], Load(c + kLanes));
      Store(c, sum[row][0]);
      Store(c + kLanes, sum[row][1]);
    }
    return;
  }
  float result[kRows][kColumns];
#pragma GCC unroll 16
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
