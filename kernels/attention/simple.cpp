// Attention, one query at a time: its scores, their softmax, the weighted sum of the values.
//
// Idea: the matrix of all scores is never stored; one row of it is, and lies in cache. The flags
// let the compiler reorder the additions of a dot product, without which it stays scalar.
// PyTorch's products are blocked, these are not.
// expected: slower at small
//! flags -fassociative-math -fno-signed-zeros -fno-trapping-math -fno-math-errno
#include <assay/kernel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

// Scores of one query against every key, turned into weights that sum to one.
void Weights(const float* query, const float* keys, int64_t sequence, int64_t features,
             std::vector<float>& weights) {
  const float scale = 1 / std::sqrt(static_cast<float>(features));
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t other = 0; other < sequence; ++other) {
    const float* key = keys + other * features;
    float score = 0;
    for (int64_t i = 0; i < features; ++i) score += query[i] * key[i];
    weights[static_cast<size_t>(other)] = score * scale;
    largest = std::max(largest, score * scale);
  }
  float sum = 0;
  for (float& weight : weights) {
    weight = std::exp(weight - largest);
    sum += weight;
  }
  for (float& weight : weights) weight /= sum;
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 4> query, assay::Tensor<const float, 4> key,
             assay::Tensor<const float, 4> value, assay::Tensor<float, 4> out) {
  const int64_t heads = query.size(0) * query.size(1);
  const int64_t sequence = query.size(2);
  const int64_t features = query.size(3);
  std::vector<float> weights(static_cast<size_t>(sequence));
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t start = head * sequence * features;
    for (int64_t position = 0; position < sequence; ++position) {
      const int64_t row = start + position * features;
      Weights(query.data() + row, key.data() + start, sequence, features, weights);
      float* __restrict__ sums = out.data() + row;
      std::fill(sums, sums + features, 0.0f);
      for (int64_t other = 0; other < sequence; ++other) {
        const float weight = weights[static_cast<size_t>(other)];
        const float* values = value.data() + start + other * features;
        for (int64_t i = 0; i < features; ++i) sums[i] += weight * values[i];
      }
    }
  }
}
