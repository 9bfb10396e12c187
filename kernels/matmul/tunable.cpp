// Product of two matrices with seven choices left open, for `assay search`: 2760 variants.
//
// Idea: a tile of C stays in registers while a block of the inner dimension passes by. How many
// rows and vectors a tile has, how deep a block is, whether the columns of B are copied side by
// side first, and how far ahead they are asked for depend on registers and caches. The first value
// of each line is taken by `assay judge`.
// expected: slower at small
//! tune LANES = 4 8 16
//! tune ROWS = 1 2 3 4 6 8
//! tune VECTORS = 1 2 3 4
//! tune DEPTH = 64 32 128 256 512
//! tune PACKED = 0 1
//! tune UNROLLED = 1 4
//! tune AHEAD = 0 8
//! require ROWS * VECTORS <= 24
#include <assay/kernel.h>

namespace {

constexpr int kUnrolled = UNROLLED;  // a pragma reads no macro
constexpr int64_t kColumns = LANES * VECTORS;  // of a tile
typedef float Vector __attribute__((vector_size(4 * LANES)));

Vector Load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

void Store(float* to, Vector value) { __builtin_memcpy(to, &value, sizeof value); }

// Rows of A and of C, and a block of the inner dimension.
struct Block {
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t b_stride;
  float* c;
  int64_t c_stride;
  int64_t depth;
  bool first;  // of its tile: C holds nothing yet
};

template <int kRows>
void Tile(const Block& block) {
  Vector sum[kRows][VECTORS];
  for (int row = 0; row < kRows; ++row)
    for (int v = 0; v < VECTORS; ++v)
      sum[row][v] = block.first ? Vector{} : Load(block.c + row * block.c_stride + v * LANES);
  const float* b = block.b;
#pragma GCC unroll kUnrolled
  for (int64_t k = 0; k < block.depth; ++k, b += block.b_stride) {
    if (AHEAD > 0)
      for (int v = 0; v < VECTORS; ++v) __builtin_prefetch(b + AHEAD * block.b_stride + v * LANES);
    Vector of_b[VECTORS];
    for (int v = 0; v < VECTORS; ++v) of_b[v] = Load(b + v * LANES);
    for (int row = 0; row < kRows; ++row) {
      const float factor = block.a[row * block.a_stride + k];
      for (int v = 0; v < VECTORS; ++v) sum[row][v] += factor * of_b[v];
    }
  }
  for (int row = 0; row < kRows; ++row)
    for (int v = 0; v < VECTORS; ++v)
      Store(block.c + row * block.c_stride + v * LANES, sum[row][v]);
}

// Columns that fill no tile.
void Edge(const Block& block, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      float sum = block.first ? 0 : block.c[row * block.c_stride + column];
      for (int64_t k = 0; k < block.depth; ++k)
        sum += block.a[row * block.a_stride + k] * block.b[k * block.b_stride + column];
      block.c[row * block.c_stride + column] = sum;
    }
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> a, assay::Tensor<const float, 2> b,
             assay::Tensor<float, 2> out) {
  const int64_t rows = a.size(0), inner = a.size(1), columns = b.size(1);
  alignas(64) static thread_local float panel[PACKED ? DEPTH * kColumns : 1];
  for (int64_t begin = 0; begin < inner; begin += DEPTH) {
    const int64_t depth = inner - begin < DEPTH ? inner - begin : DEPTH;
    for (int64_t column = 0; column < columns; column += kColumns) {
      const float* from = b.data() + begin * columns + column;
      Block block{a.data() + begin, inner, from, columns, out.data() + column, columns, depth,
                  begin == 0};
      if (columns - column < kColumns) {
        Edge(block, rows, columns - column);
        continue;
      }
      if (PACKED) {
        for (int64_t k = 0; k < depth; ++k)
          for (int v = 0; v < VECTORS; ++v)
            Store(panel + k * kColumns + v * LANES, Load(from + k * columns + v * LANES));
        block.b = panel;
        block.b_stride = kColumns;
      }
      int64_t row = 0;
      for (; row + ROWS <= rows; row += ROWS) {
        Tile<ROWS>(block);
        block.a += ROWS * inner;
        block.c += ROWS * columns;
      }
      for (; row < rows; ++row) {
        Tile<1>(block);
        block.a += inner;
        block.c += columns;
      }
    }
  }
}
