// Attention on a CPU, the online softmax.
//
// Idea: one pass over keys and values for each query, and no score is stored. Kept are the largest
// score so far, the sum of the powers and the weighted sum of the values; when a larger score
// comes, both sums are multiplied by the power of the difference. The values' inner loop runs along
// rows now, and the compiler makes vectors of it.
//
// An example in two parts, scores 1, 3 and then 2, 5:
//   1, 3: largest 3, sum e^(1-3) + e^(3-3) = 1.1353
//   2, 5: largest 5, sum 1.1353 e^(3-5) + e^(2-5) + e^(5-5) = 1.2034
//   all at once: e^(1-5) + e^(3-5) + e^(2-5) + e^(5-5) = 1.2034
// Prediction: 6% of the library: the dot product, still one by one, is all that counts.
// Measured: 226 ms at the size of ladder-cpu.toml with one thread, 8.7% of the library.
#include <assay/kernel.h>

#include <cmath>
#include <limits>

ASSAY_KERNEL(assay::Tensor<const float, 4> query, assay::Tensor<const float, 4> key,
             assay::Tensor<const float, 4> value, assay::Tensor<const bool, 1> causal,
             assay::Tensor<float, 4> out) {
  const int64_t heads = query.size(0) * query.size(1), length = query.size(2);
  const int64_t width = query.size(3);
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t row = 0; row < length; ++row) {
      const float* const q = query.data() + (head * length + row) * width;
      const float* k = key.data() + head * length * width;
      const float* v = value.data() + head * length * width;
      float* __restrict__ const sums = out.data() + (head * length + row) * width;
      for (int64_t i = 0; i < width; ++i) sums[i] = 0;
      float largest = -std::numeric_limits<float>::infinity(), sum = 0;
      const int64_t keys = causal.size(0) == 2 ? row + 1 : length;
      for (int64_t column = 0; column < keys; ++column, k += width, v += width) {
        float score = 0;
        for (int64_t i = 0; i < width; ++i) score += q[i] * k[i];
        score *= scale;
        if (score > largest) {
          const float shrink = std::exp(largest - score);
          largest = score;
          sum *= shrink;
          for (int64_t i = 0; i < width; ++i) sums[i] *= shrink;
        }
        const float weight = std::exp(score - largest);
        sum += weight;
        for (int64_t i = 0; i < width; ++i) sums[i] += weight * v[i];
      }
      for (int64_t i = 0; i < width; ++i) sums[i] /= sum;
    }
}
