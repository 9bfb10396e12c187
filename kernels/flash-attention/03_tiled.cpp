// Attention on a CPU, in tiles.
//
// Idea: 64 queries meet 64 keys at a time. The scores of a tile (16 KB) stay in the nearest cache,
// and so do keys and values. The keys are turned round first, so that the inner loops of both
// products run along rows and become vectors; the largest scores move once a tile.
// Prediction: 40% of the library: vectors in both products, but a load and a store for each
// multiply-add, and the C library's exponential one by one.
// Measured: 59.5 ms at the size of ladder-cpu.toml with one thread, 35.7% of the library.
#include <assay/kernel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

constexpr int64_t kQueries = 64, kKeys = 64;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// turned[i][column] = k[column][i]; missing keys are zeros.
void Turn(const float* k, int64_t count, int64_t width, float* turned) {
  for (int64_t i = 0; i < width; ++i)
    for (int64_t column = 0; column < kKeys; ++column)
      turned[i * kKeys + column] = column < count ? k[column * width + i] : 0;
}

void ScoreKeys(const float* q, const float* turned, int64_t width, float scale, float* score) {
  std::fill(score, score + kKeys, 0.0f);
  for (int64_t i = 0; i < width; ++i)
    for (int64_t column = 0; column < kKeys; ++column)
      score[column] += q[i] * scale * turned[i * kKeys + column];
}

// Turns the first `count` scores into powers, and shrinks what was summed up before.
void Weigh(float* score, int64_t count, float& largest, float& sum, float* sums, int64_t width) {
  const float now = std::max(largest, *std::max_element(score, score + count));
  // Minus infinity where no score counts: (-inf) - (-inf) would be no number.
  const float base = now == kMinusInfinity ? 0 : now;
  const float shrink = std::exp(largest - base);
  largest = now;
  sum *= shrink;
  for (int64_t i = 0; i < width; ++i) sums[i] *= shrink;
  for (int64_t column = 0; column < count; ++column)
    sum += score[column] = std::exp(score[column] - base);
}

void AddValues(const float* weight, int64_t count, const float* v, int64_t width,
               float* __restrict__ sums) {
  for (int64_t column = 0; column < count; ++column)
    for (int64_t i = 0; i < width; ++i) sums[i] += weight[column] * v[column * width + i];
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 4> query, assay::Tensor<const float, 4> key,
             assay::Tensor<const float, 4> value, assay::Tensor<const bool, 1> causal,
             assay::Tensor<float, 4> out) {
  const int64_t heads = query.size(0) * query.size(1), length = query.size(2);
  const int64_t width = query.size(3);
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  std::vector<float> turned(static_cast<size_t>(width * kKeys));
  float score[kKeys], largest[kQueries], sum[kQueries];
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t first = 0; first < length; first += kQueries) {
      const int64_t rows = std::min(kQueries, length - first);
      const float* const q = query.data() + (head * length + first) * width;
      float* const sums = out.data() + (head * length + first) * width;
      std::fill(sums, sums + rows * width, 0.0f);
      std::fill(sum, sum + rows, 0.0f);
      std::fill(largest, largest + rows, kMinusInfinity);
      const int64_t end = causal.size(0) == 2 ? first + rows : length;
      for (int64_t start = 0; start < end; start += kKeys) {
        const int64_t there = std::min(kKeys, length - start);
        const float* const k = key.data() + (head * length + start) * width;
        const float* const v = value.data() + (head * length + start) * width;
        Turn(k, there, width, turned.data());
        for (int64_t row = 0; row < rows; ++row) {
          const int64_t seen =
              causal.size(0) == 2 ? std::min(there, first + row + 1 - start) : there;
          if (seen <= 0) continue;
          ScoreKeys(q + row * width, turned.data(), width, scale, score);
          Weigh(score, seen, largest[row], sum[row], sums + row * width, width);
          AddValues(score, seen, v, width, sums + row * width);
        }
      }
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t i = 0; i < width; ++i) sums[row * width + i] /= sum[row];
    }
}
