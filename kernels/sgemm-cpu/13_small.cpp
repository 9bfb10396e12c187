// Product of two matrices, kernel of 6 x 64, with small matrices read in place.
//
// Idea: where B has 64 KB or less, do not pack it. It fits the caches as it is, its rows are too
// short to fall into few sets, and the copy was for little use: at 128 a panel serves 22 tiles. The
// kernel takes the stride of B, and reads the last vector of a row under a mask. While it
// multiplies, it asks for the next panel in the place where it would copy it.
// Prediction: nothing at 1024; 10% faster than the rung before at 128.
// Measured: 8.4 ms at 1024 on one core, 109% of the library, 89% of the peak: as predicted.
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
constexpr int64_t kInPlace = 1 << 14;       // elements of B that are not packed
constexpr int64_t kRowsAhead = 12;          // how far B is fetched before it is copied

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

// Rows of A, where they are, times a panel of B, packed or where it is.
struct Tile {
  const float* a;
  int64_t a_stride;
  int64_t a_ahead;  // from these rows of A to those of the next tile
  const float* b;
  float* c;
  int64_t stride;  // of C, and of B in place
  int64_t inner;
  bool add;   // to what earlier blocks left in C, which is not read otherwise
  Mask last;  // the lanes of the last vector that lie in C
};

// Rows of the next panel of B, copied on the side: kColumns wide, whatever the panel uses of them.
struct Copy {
  const float* from;
  int64_t stride;
  float* to;
  int64_t rows;         // left to copy
  int64_t rows_a_line;  // no more than these for each kLine steps of k
};

template <bool packed, int rows, int vectors>
void MultiplyTile(const Tile& tile, Copy& copy) {
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
  const int64_t b_stride = packed ? kColumns : tile.stride;
  for (int64_t line = 0; line < tile.inner; line += kLine) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
      __builtin_prefetch(row[r] + line + tile.a_ahead, 0, /*locality=*/2);
    for (int64_t count = std::min(copy.rows, copy.rows_a_line); count > 0; --count) {
#pragma GCC unroll 16
      for (int v = 0; v <= kVectors; ++v)
        __builtin_prefetch(copy.from + kRowsAhead * copy.stride + v * kLanes);
#pragma GCC unroll 16
      for (int v = 0; packed && v < kVectors; ++v)
        Store(copy.to + v * kLanes, Load(copy.from + v * kLanes));
      copy.from += copy.stride;
      copy.to += kColumns;
      --copy.rows;
    }
    const int64_t end = std::min(line + kLine, tile.inner);
#pragma GCC unroll 1
    for (int64_t k = line; k < end; ++k, b += b_stride) {
      Vector x[vectors];
#pragma GCC unroll 16
      for (int v = 0; v < vectors - 1; ++v) x[v] = Load(b + v * kLanes);
      const float* const last = b + (vectors - 1) * kLanes;
      x[vectors - 1] = packed ? Load(last) : Load(last, tile.last);
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

using Kernel = void (*)(const Tile&, Copy&);

template <bool packed, int... number>
constexpr std::array<Kernel, sizeof...(number)> Kernels(std::integer_sequence<int, number...>) {
  return {&MultiplyTile<packed, number / kVectors + 1, number % kVectors + 1>...};
}

// The kernel for `rows` rows and `vectors` vectors, counted from one, is at
// (rows - 1) * kVectors + vectors - 1.
constexpr std::make_integer_sequence<int, kRows * kVectors> kNumbers;
constexpr auto kPacked = Kernels<true>(kNumbers);
constexpr auto kUnpacked = Kernels<false>(kNumbers);

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

// A panel of B, and the rows of C that it is used for.
struct Panel {
  Range rows;
  Range inner;
  Range columns;
};

// One buffer for as long as the process lives.
float* Buffer(int64_t count) {
  return static_cast<float*>(std::aligned_alloc(4096, static_cast<size_t>(count) * sizeof(float)));
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> a, assay::Tensor<const float, 2> b,
             assay::Tensor<float, 2> out) {
  static float* const buffer = Buffer(2 * kInnerBlock * kColumns);
  const int64_t rows = a.size(0), inner = a.size(1), columns = b.size(1);
  const float* const a_data = a.data();
  const float* const b_data = b.data();
  float* const c = out.data();
  if (rows == 0 || columns == 0) return;
  const bool packed = inner * columns > kInPlace;
  const auto& kernels = packed ? kPacked : kUnpacked;
  const int64_t row_blocks = packed ? CeilDiv(rows, kRowBlock) : 1;
  const int64_t inner_blocks = packed ? CeilDiv(inner, kInnerBlock) : 1;
  const int64_t column_blocks = CeilDiv(columns, kColumns);
  const int64_t panels = row_blocks * inner_blocks * column_blocks;
  const auto panel_at = [&](int64_t index) {
    const Range vectors = Part({0, CeilDiv(columns, kLanes)}, index % column_blocks, column_blocks);
    return Panel{Part({0, rows}, index / column_blocks / inner_blocks, row_blocks),
                 Part({0, inner}, index / column_blocks % inner_blocks, inner_blocks),
                 {vectors.begin * kLanes, std::min(vectors.end * kLanes, columns)}};
  };
  const auto start_of = [&](const Panel& panel) {
    return b_data + panel.inner.begin * columns + panel.columns.begin;
  };

  float* here = buffer;
  float* there = buffer + kInnerBlock * kColumns;
  Panel now = panel_at(0);
  if (packed) PackB(start_of(now), columns, now.inner.size(), now.columns.size(), here);
  for (int64_t index = 0; index < panels; ++index) {
    const bool more = index + 1 < panels;
    const Panel next = more ? panel_at(index + 1) : Panel{};
    // Rows of B that are copied whole must not end behind the matrix.
    const int64_t over = std::max<int64_t>(0, next.columns.begin + kColumns - columns);
    const int64_t copied =
        more ? std::max<int64_t>(0, next.inner.size() - CeilDiv(over, columns)) : 0;
    Copy copy{start_of(next), columns, there, 0, 0};

    const int64_t vectors = CeilDiv(now.columns.size(), kLanes);
    const int64_t tiles = CeilDiv(now.rows.size(), kRows);
    Tile tile{nullptr,
              inner,
              0,
              packed ? here : start_of(now),
              nullptr,
              columns,
              now.inner.size(),
              now.inner.begin > 0,
              FirstLanes(now.columns.size() - (vectors - 1) * kLanes)};
    for (int64_t t = 0; t < tiles; ++t) {
      const Range range = Part(now.rows, t, tiles);
      copy.rows += Part({0, copied}, t, tiles).size();
      copy.rows_a_line = CeilDiv(copy.rows, std::max<int64_t>(1, tile.inner / kLine));
      tile.a = a_data + range.begin * inner + now.inner.begin;
      tile.a_ahead = (t + 1 < tiles ? range.size() : now.rows.begin - range.begin) * inner;
      tile.c = c + range.begin * columns + now.columns.begin;
      kernels[static_cast<size_t>((range.size() - 1) * kVectors + vectors - 1)](tile, copy);
    }
    if (packed && more)
      PackB(copy.from, columns, next.inner.size() - copied + copy.rows, next.columns.size(),
            copy.to);
    std::swap(here, there);
    now = next;
  }
}
