// 64 sums beside each other, added up every 4096 elements.
//
// Idea: 64 sums do not wait for each other. The compiler puts them into vector registers, and
// several of those are added at once. They are float, and must stay small to keep their digits:
// after 64 additions each they are added to one double.
// Prediction: 100% of the library: from here on memory is the bound.
// Measured: 0.95x (as above): additions to double every 4096 elements are not quite free.
#include <assay/kernel.h>

#include <algorithm>

ASSAY_KERNEL(assay::Tensor<const float, 1> x, assay::Tensor<float, 0> out) {
  constexpr int64_t kSums = 64, kChunk = 64 * kSums;
  const float* values = x.data();
  const int64_t count = x.count(), whole = count / kSums * kSums;
  double sum = 0;
  for (int64_t first = 0; first < whole; first += kChunk) {
    float sums[kSums] = {};
    for (int64_t i = first; i < std::min(first + kChunk, whole); i += kSums)
      for (int64_t j = 0; j < kSums; ++j) sums[j] += values[i + j];
    for (const float part : sums) sum += part;
  }
  for (int64_t i = whole; i < count; ++i) sum += values[i];
  out() = static_cast<float>(sum);
}
