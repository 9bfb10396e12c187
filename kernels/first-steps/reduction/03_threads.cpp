// A part of the vector a thread.
//
// Idea: one core does not use all of the memory's bandwidth. With OpenMP each core takes a share of
// the chunks, and the cores' sums are added at the end.
// Prediction: 100% of the library, which uses as many threads (--threads says how many).
// Measured: 4.86 ms at the size of ladder-cpu.toml with one thread, 102.6% of the library,
// unsettled.
//! flags -fopenmp
#include <assay/kernel.h>

#include <algorithm>

ASSAY_KERNEL(assay::Tensor<const float, 1> x, assay::Tensor<float, 0> out) {
  constexpr int64_t kSums = 64, kChunk = 64 * kSums;
  const float* values = x.data();
  const int64_t count = x.count(), whole = count / kSums * kSums;
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int64_t first = 0; first < whole; first += kChunk) {
    float sums[kSums] = {};
    for (int64_t i = first; i < std::min(first + kChunk, whole); i += kSums)
      for (int64_t j = 0; j < kSums; ++j) sums[j] += values[i + j];
    for (const float part : sums) sum += part;
  }
  for (int64_t i = whole; i < count; ++i) sum += values[i];
  out() = static_cast<float>(sum);
}
