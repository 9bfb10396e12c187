// Routing to experts on a CPU, by sorting.
//
// Idea: none; the starting point. Each token's experts are sorted by their logits, and then all
// places by their experts.
// Prediction: 80% of the library.
// Measured: 3.78 ms at the size of ladder-cpu.toml with one thread, 122.2% of the library.

#include <assay/kernel.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

using assay::bfloat16;
using assay::Tensor;

ASSAY_KERNEL(Tensor<const bfloat16, 2> logits, Tensor<bfloat16, 2> out, Tensor<int32_t, 2> out1,
             Tensor<int32_t, 1> out2, Tensor<int32_t, 1> out3) {
  const int64_t tokens = logits.size(0), experts = logits.size(1), top = out.size(1);
  std::vector<int32_t> numbers(experts);
  for (int64_t token = 0; token < tokens; ++token) {
    std::iota(numbers.begin(), numbers.end(), 0);
    std::stable_sort(numbers.begin(), numbers.end(), [&](int32_t a, int32_t b) {
      return static_cast<float>(logits(token, a)) > static_cast<float>(logits(token, b));
    });
    const float largest = static_cast<float>(logits(token, numbers[0]));
    float sum = 0;
    for (int64_t k = 0; k < top; ++k)
      sum += std::exp(static_cast<float>(logits(token, numbers[k])) - largest);
    for (int64_t k = 0; k < top; ++k) {
      out(token, k) = std::exp(static_cast<float>(logits(token, numbers[k])) - largest) / sum;
      out1(token, k) = numbers[k];
    }
  }
  const int32_t* const chosen = out1.data();
  std::iota(out2.data(), out2.data() + tokens * top, 0);
  std::stable_sort(out2.data(), out2.data() + tokens * top,
                   [&](int32_t a, int32_t b) { return chosen[a] < chosen[b]; });
  for (int64_t i = 0; i <= experts; ++i)
    out3(i) = static_cast<int32_t>(
        std::count_if(chosen, chosen + tokens * top, [&](int32_t expert) { return expert < i; }));
}
