// Verifying drafted tokens on a CPU, probabilities written out.
//
// Idea: none; the starting point. All rows of logits become rows of probabilities, then tokens are
// tested, then the next one is drawn.
// Prediction: 60% of the library.
// Measured: 1.48 ms at the size of ladder-cpu.toml with one thread, 64.9% of the library.

#include <assay/kernel.h>

#include <algorithm>
#include <cmath>
#include <vector>

using assay::bfloat16;
using assay::Tensor;

namespace {

std::vector<float> Soften(const bfloat16* logits, int64_t count) {
  float largest = -INFINITY, sum = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, static_cast<float>(logits[i]));
  std::vector<float> probabilities(count);
  for (int64_t i = 0; i < count; ++i)
    sum += probabilities[i] = std::exp(static_cast<float>(logits[i]) - largest);
  for (float& probability : probabilities) probability /= sum;
  return probabilities;
}

}  // namespace

ASSAY_KERNEL(Tensor<const bfloat16, 3> target, Tensor<const bfloat16, 3> draft,
             Tensor<const int64_t, 2> tokens, Tensor<const float, 2> u,
             Tensor<const float, 2> noise, Tensor<int64_t, 1> out, Tensor<int64_t, 1> out1) {
  const int64_t drafted = tokens.size(1), vocabulary = noise.size(1);
  for (int64_t b = 0; b < out.size(0); ++b) {
    std::vector<std::vector<float>> p, q;
    for (int64_t i = 0; i <= drafted; ++i)
      p.push_back(Soften(target.data() + (b * (drafted + 1) + i) * vocabulary, vocabulary));
    for (int64_t i = 0; i < drafted; ++i)
      q.push_back(Soften(draft.data() + (b * drafted + i) * vocabulary, vocabulary));
    int64_t stand = 0;
    while (stand < drafted && u(b, stand) * q[stand][tokens(b, stand)] < p[stand][tokens(b, stand)])
      ++stand;
    std::vector<float> weight = p[stand];
    if (stand < drafted) {
      float sum = 0;
      for (int64_t i = 0; i < vocabulary; ++i)
        sum += weight[i] = std::max(p[stand][i] - q[stand][i], 0.0f);
      if (sum == 0) weight = p[stand];
    }
    for (int64_t i = 0; i < vocabulary; ++i) weight[i] *= noise(b, i);
    out(b) = stand;
    out1(b) = std::max_element(weight.begin(), weight.end()) - weight.begin();
  }
}
