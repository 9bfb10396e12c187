// Sparse attention over a paged cache on a CPU, the formula.
//
// Idea: none; the starting point. Each token's score is summed up head by head, tokens are sorted
// by score and then by position, and each head of queries reads the chosen rows for itself.
// Prediction: 40% of the library.
// Measured: 10.1 ms at the size of ladder-cpu.toml with one thread, 42.2% of the library.

#include <assay/kernel.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

using assay::bfloat16;
using assay::Tensor;

ASSAY_KERNEL(Tensor<const bfloat16, 3> q, Tensor<const bfloat16, 3> cache,
             Tensor<const int8_t, 3> index_q, Tensor<const int8_t, 2> index_weights,
             Tensor<const int8_t, 3> index_keys, Tensor<const int32_t, 2> page_table,
             Tensor<const int32_t, 1> lengths, Tensor<bfloat16, 3> out, Tensor<int32_t, 2> out1) {
  const int64_t width = q.size(2), latent = out.size(2), page = cache.size(1), top = out1.size(1);
  // The width of keys before absorption: 128 numbers and those of position.
  const float scale = 1 / std::sqrt(static_cast<float>(128 + width - latent));
  for (int64_t b = 0; b < q.size(0); ++b) {
    const int64_t length = lengths(b), count = std::min(length, top);
    std::vector<int32_t> score(length, 0), tokens(length);
    for (int64_t token = 0; token < length; ++token) {
      const int64_t number = page_table(b, token / page);
      for (int64_t h = 0; h < index_q.size(1); ++h) {
        int32_t dot = 0;
        for (int64_t d = 0; d < index_q.size(2); ++d)
          dot += index_q(b, h, d) * index_keys(number, token % page, d);
        score[token] += index_weights(b, h) * std::max(dot, 0);
      }
    }
    std::iota(tokens.begin(), tokens.end(), 0);
    std::stable_sort(tokens.begin(), tokens.end(),
                     [&](int32_t i, int32_t j) { return score[i] > score[j]; });
    tokens.resize(count);
    std::sort(tokens.begin(), tokens.end());
    for (int64_t i = 0; i < top; ++i) out1(b, i) = i < count ? tokens[i] : -1;

    for (int64_t h = 0; h < q.size(1); ++h) {
      std::vector<float> weight(count), sums(latent, 0.0f);
      float largest = -INFINITY, total = 0;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t number = page_table(b, tokens[i] / page), place = tokens[i] % page;
        float dot = 0;
        for (int64_t d = 0; d < width; ++d)
          dot += static_cast<float>(q(b, h, d)) * static_cast<float>(cache(number, place, d));
        weight[i] = dot * scale;
        largest = std::max(largest, weight[i]);
      }
      for (int64_t i = 0; i < count; ++i) {
        const int64_t number = page_table(b, tokens[i] / page), place = tokens[i] % page;
        const float power = std::exp(weight[i] - largest);
        total += power;
        for (int64_t d = 0; d < latent; ++d)
          sums[d] += power * static_cast<float>(cache(number, place, d));
      }
      for (int64_t d = 0; d < latent; ++d) out(b, h, d) = count > 0 ? sums[d] / total : 0.0f;
    }
  }
}
