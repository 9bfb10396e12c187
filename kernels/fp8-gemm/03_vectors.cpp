// A product in float8 with scales for blocks on a CPU: decoded by bits, in vectors, once for many.
//
// Idea: no table. The seven bits of size, moved to a float's place, are the number times 2^-120,
//   which a larger exponent repairs: a shift and an addition, of 8 or 16 numbers at once. Of b, 16
//   rows of a block are decoded into 8 KB, k by k beside each other, and serve all rows of a, four
//   at a time: 64 sums in registers. Both scales come in once a block.
// Prediction: 150% of the library, which writes both matrices out in float first.
//! flags -O3 -march=native -ffp-contract=fast

#include <assay/kernel.h>

#include <cstring>
#include <vector>

using assay::bfloat16;
using assay::Tensor;

namespace {

constexpr int kDepth = 128, kColumns = 16, kRows = 4;

// Decodes `count` numbers of e4m3. NaN does not occur.
void Decode(const uint8_t* codes, int count, float* numbers) {
  for (int i = 0; i < count; ++i) {
    const uint32_t code = codes[i];
    // Subnormal floats would do for the smallest, but are slow: 2^-9 * size is exact, too.
    const uint32_t bits = ((code & 127u) << 20) + (120u << 23);
    float normal;
    std::memcpy(&normal, &bits, sizeof normal);
    const float size =
        (code & 127u) < 8u ? static_cast<float>(static_cast<int>(code & 127u)) * 0x1p-9f : normal;
    numbers[i] = code >= 128u ? -size : size;
  }
}

// Adds the products of rows of a and kColumns rows of b in a block to the totals, times `scale` of
// each row. `b`: b[k][column].
template <int rows>
void AddBlock(const float* a, const float (&b)[kDepth][kColumns], const float* scales,
              float* totals) {
  float sums[rows][kColumns] = {};
  for (int k = 0; k < kDepth; ++k)
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < kColumns; ++column)
        sums[row][column] += a[row * kDepth + k] * b[k][column];
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < kColumns; ++column)
      totals[row * kColumns + column] += sums[row][column] * scales[row];
}

}  // namespace

ASSAY_KERNEL(Tensor<const uint8_t, 2> a, Tensor<const float, 2> a_scales,
             Tensor<const uint8_t, 2> b, Tensor<const float, 2> b_scales, Tensor<bfloat16, 2> out) {
  const int64_t rows = a.size(0), inner = a.size(1), columns = b.size(0), blocks = inner / kDepth;
  // Of a: block by block, so that a block's rows follow each other.
  std::vector<float> decoded(static_cast<size_t>(rows * inner));
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t row = 0; row < rows; ++row)
      Decode(a.data() + row * inner + block * kDepth, kDepth,
             &decoded[static_cast<size_t>((block * rows + row) * kDepth)]);
  std::vector<float> totals(static_cast<size_t>(rows * kColumns));
  std::vector<float> scales(static_cast<size_t>(rows));
  alignas(64) static thread_local float tile[kDepth][kColumns];
  for (int64_t first = 0; first < columns; first += kColumns) {
    totals.assign(totals.size(), 0.0f);
    for (int64_t block = 0; block < blocks; ++block) {
      for (int column = 0; column < kColumns; ++column) {
        float line[kDepth];
        Decode(b.data() + (first + column) * inner + block * kDepth, kDepth, line);
        for (int k = 0; k < kDepth; ++k) tile[k][column] = line[k];
      }
      const float b_scale = b_scales(first / 128, block);
      for (int64_t row = 0; row < rows; ++row)
        scales[static_cast<size_t>(row)] = a_scales(block, row) * b_scale;
      const float* const of_block = &decoded[static_cast<size_t>(block * rows * kDepth)];
      int64_t row = 0;
      for (; row + kRows <= rows; row += kRows)
        AddBlock<kRows>(of_block + row * kDepth, tile, &scales[static_cast<size_t>(row)],
                        &totals[static_cast<size_t>(row * kColumns)]);
      for (; row < rows; ++row)
        AddBlock<1>(of_block + row * kDepth, tile, &scales[static_cast<size_t>(row)],
                    &totals[static_cast<size_t>(row * kColumns)]);
    }
    for (int64_t row = 0; row < rows; ++row)
      for (int column = 0; column < kColumns; ++column)
        out(row, first + column) = totals[static_cast<size_t>(row * kColumns + column)];
  }
}
