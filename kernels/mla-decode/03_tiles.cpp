// Latent attention over a paged cache on a CPU, tiles of rows, shared out to threads.
//
// Idea: 16 rows at a time are converted, and stay in the second cache while heads use them; a
// head's sums are read and written once for the 16. A sequence and eight heads are a task; threads
// take tasks as they come, since lengths differ.
// Prediction: 250% of the library, which has as many threads.
// Measured: 1.48 ms at the size of ladder-cpu.toml with one thread, 106.7% of the library.
//! flags -fopenmp

#include <assay/kernel.h>

#include <algorithm>
#include <cmath>
#include <vector>

using assay::bfloat16;
using assay::Tensor;

namespace {

constexpr int kLanes = 16;
constexpr int64_t kRows = 16, kHeads = 8;  // in a tile, in a task

float Dot(const float* a, const float* b, int64_t count) {
  float sums[kLanes] = {}, sum = 0;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (; i < count; ++i) sum += a[i] * b[i];
  for (const float part : sums) sum += part;
  return sum;
}

// Of one head of queries.
struct Head {
  std::vector<float> query, sums;
  float largest = -INFINITY, total = 0;

  // `count` more rows, of which the first `sums.size()` numbers are the value, too.
  void Add(const float* rows, int64_t count) {
    const int64_t width = static_cast<int64_t>(query.size());
    float score[kRows], now = largest;
    for (int64_t i = 0; i < count; ++i) {
      score[i] = Dot(query.data(), rows + i * width, width);
      now = std::max(now, score[i]);
    }
    const float shrink = std::exp(largest - now);  // 0 for the first rows
    largest = now;
    total *= shrink;
    for (int64_t i = 0; i < count; ++i) total += score[i] = std::exp(score[i] - now);
    for (size_t d = 0; d < sums.size(); ++d) sums[d] *= shrink;
    for (int64_t i = 0; i < count; i += 4) {
      const float* const four = rows + i * width;
      if (i + 4 <= count) {
        for (size_t d = 0; d < sums.size(); ++d)
          sums[d] += score[i] * four[d] + score[i + 1] * four[width + d] +
                     score[i + 2] * four[2 * width + d] + score[i + 3] * four[3 * width + d];
      } else {
        for (int64_t j = i; j < count; ++j)
          for (size_t d = 0; d < sums.size(); ++d) sums[d] += score[j] * rows[j * width + d];
      }
    }
  }
};

}  // namespace

ASSAY_KERNEL(Tensor<const bfloat16, 3> q, Tensor<const bfloat16, 3> cache,
             Tensor<const int32_t, 2> page_table, Tensor<const int32_t, 1> lengths,
             Tensor<bfloat16, 3> out) {
  const int64_t width = q.size(2), latent = out.size(2), page = cache.size(1);
  const int64_t groups = (q.size(1) + kHeads - 1) / kHeads;
  const float scale = 1 / std::sqrt(static_cast<float>(128 + width - latent));
#pragma omp parallel for schedule(dynamic)
  for (int64_t task = 0; task < q.size(0) * groups; ++task) {
    const int64_t b = task / groups, first = task % groups * kHeads;
    std::vector<float> rows(kRows * width);
    std::vector<Head> heads(std::min(kHeads, q.size(1) - first));
    for (size_t h = 0; h < heads.size(); ++h) {
      heads[h].sums.assign(latent, 0.0f);
      for (int64_t d = 0; d < width; ++d)
        heads[h].query.push_back(static_cast<float>(q(b, first + static_cast<int64_t>(h), d)) *
                                 scale);
    }
    for (int64_t start = 0; start < lengths(b); start += kRows) {
      const int64_t count = std::min<int64_t>(kRows, lengths(b) - start);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t number = page_table(b, (start + i) / page);
        const bfloat16* const from = cache.data() + (number * page + (start + i) % page) * width;
        for (int64_t d = 0; d < width; ++d) rows[i * width + d] = static_cast<float>(from[d]);
      }
      for (Head& head : heads) head.Add(rows.data(), count);
    }
    for (size_t h = 0; h < heads.size(); ++h)
      for (int64_t d = 0; d < latent; ++d)
        out(b, first + static_cast<int64_t>(h), d) =
            lengths(b) > 0 ? heads[h].sums[d] / heads[h].total : 0.0f;
  }
}
