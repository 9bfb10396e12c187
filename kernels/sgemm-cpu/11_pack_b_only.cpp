// Product of two matrices, kernel of 6 x 64, with A read in place.
//
// Idea: pack B alone. Six rows of A are six streams along their lines, which every prefetcher
// follows, and at a stride of 4096 bytes they take 6 of the 12 ways of a set of the first-level
// cache; 14 rows would not fit. So the tile becomes 6 x 64 (24 accumulators, 4 vectors of B), its
// rows of C are 256 bytes long, and one panel of B at a time is packed (1024 x 64, 256 KB, in the
// second-level cache). A is read from the third-level cache once a panel: 2 bytes a cycle. Each
// step asks for the next rows.
// Prediction: 102% of the library: packing A, a tenth of the time, is gone.
// Measured: 8.55 ms at 1024 on one core, 106% of the library, 87% of the peak: as predicted.
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
constexpr int kRows = 6;
constexpr int kVectors = 4;
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
constexpr int64_t kRowBlock = 172 * kRows;  // MC
constexpr int64_t kInnerBlock = 1024;       // KC
constexpr int64_t kLine = 16;               // floats in a cache line

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

// Rows of A, where they are, times a panel of B.
struct Tile {
  const float* a;
  int64_t a_stride;
  int64_t a_ahead;  // from these rows of A to those of the next tile
  const float* b;
  float* c;
  int64_t stride;  // of C
  int64_t inner;
  bool add;   // to what earlier blocks left in C, which is not read otherwise
  Mask last;  // the lanes of the last vector that lie in C
};

template <int rows, int vectors>
void MultiplyTile(const Tile& tile) {
  const float* row[rows];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    row[r] = tile.a + r * tile.a_stride;
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v)
      __builtin_prefetch(tile.c + r * tile.stride + v * kLanes, /*write=*/1);
  }
  // Hides that C is the same below: the compiler would keep its addresses in registers meanwhile.
  float* c_start = tile.c;
  asm("" : "+m"(c_start));
  Vector sum[rows][vectors] = {};
  const float* b = tile.b;
  for (int64_t line = 0; line < tile.inner; line += kLine) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
      __builtin_prefetch(row[r] + line + tile.a_ahead, 0, /*locality=*/2);
    const int64_t end = std::min(line + kLine, tile.inner);
#pragma GCC unroll 1
    for (int64_t k = line; k < end; ++k, b += kColumns) {
      Vector x[vectors];
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) x[v] = Load(b + v * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        const Vector factor = Broadcast(row[r][k]);
#pragma GCC unroll 16
        for (int v = 0; v < vectors; ++v) sum[r][v] = MultiplyAdd(factor, x[v], sum[r][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    float* c = c_start + r * tile.stride;
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

// A panel: kColumns elements a step of k, of which `columns` are used.
void PackB(const float* from, int64_t stride, int64_t inner, int64_t columns, float* to) {
  const int64_t vectors = CeilDiv(columns, kLanes);
  const Mask last = FirstLanes(columns - (vectors - 1) * kLanes);
  for (int64_t k = 0; k < inner; ++k, from += stride, to += kColumns) {
    for (int64_t v = 0; v < vectors - 1; ++v) Store(to + v * kLanes, Load(from + v * kLanes));
    const int64_t column = (vectors - 1) * kLanes;
    Store(to + column, Load(from + column, last));
  }
}

// One buffer for as long as the process lives.
float* Buffer(int64_t count) {
  return static_cast<float*>(std::aligned_alloc(4096, static_cast<size_t>(count) * sizeof(float)));
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> a, assay::Tensor<const float, 2> b,
             assay::Tensor<float, 2> out) {
  static float* const panel = Buffer(kInnerBlock * kColumns);
  const int64_t rows = a.size(0), inner = a.size(1), columns = b.size(1);
  const float* const a_data = a.data();
  const float* const b_data = b.data();
  float* const c = out.data();
  const int64_t row_blocks = CeilDiv(rows, kRowBlock);
  const int64_t inner_blocks = CeilDiv(inner, kInnerBlock);
  for (int64_t block = 0; block < row_blocks; ++block) {
    const Range height = Part({0, rows}, block, row_blocks);
    const int64_t tiles = CeilDiv(height.size(), kRows);
    for (int64_t inner_block = 0; inner_block < inner_blocks; ++inner_block) {
      const Range depth = Part({0, inner}, inner_block, inner_blocks);
      for (int64_t column = 0; column < columns; column += kColumns) {
        const int64_t width = std::min<int64_t>(columns - column, kColumns);
        const int64_t vectors = CeilDiv(width, kLanes);
        PackB(b_data + depth.begin * columns + column, columns, depth.size(), width, panel);
        Tile tile{nullptr,      inner,           0,
                  panel,        nullptr,         columns,
                  depth.size(), depth.begin > 0, FirstLanes(width - (vectors - 1) * kLanes)};
        for (int64_t t = 0; t < tiles; ++t) {
          const Range range = Part(height, t, tiles);
          tile.a = a_data + range.begin * inner + depth.begin;
          tile.a_ahead = (t + 1 < tiles ? range.size() : height.begin - range.begin) * inner;
          tile.c = c + range.begin * columns + column;
          kKernels[static_cast<size_t>((range.size() - 1) * kVectors + vectors - 1)](tile);
        }
      }
    }
  }
}
