// Sparse attention over a paged cache on a CPU: whole numbers by vectors, a cut without a sort.
//
// Idea: a key is widened to 16 bits once for all heads of the indexer, whose dots the compiler
// turns into multiply-adds of pairs. The cut is the score of the last chosen token, found by
// std::nth_element; one pass over the tokens in their order then takes those above it, and of those
// at it the first. Chosen rows are converted in tiles of 16, which serve eight heads. Threads share
// out stretches of tokens, then sequences and groups of heads.
// Prediction: 500% of the library, which converts all keys and writes all dots.
// Measured: 2.06 ms at the size of ladder-cpu.toml with one thread, 157.3% of the library.
//! flags -fopenmp

#include <assay/kernel.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

using assay::bfloat16;
using assay::Tensor;

namespace {

constexpr int kLanes = 16;
constexpr int64_t kStretch = 256;          // tokens of a task of the indexer
constexpr int64_t kRows = 16, kHeads = 8;  // in a tile, in a task of attention

int32_t Dot(const int16_t* a, const int16_t* b, int64_t count) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

float Dot(const float* a, const float* b, int64_t count) {
  float sums[kLanes] = {}, sum = 0;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (; i < count; ++i) sum += a[i] * b[i];
  for (const float part : sums) sum += part;
  return sum;
}

// One sequence's part of the indexer's queries.
struct Indexer {
  std::vector<int16_t> queries;
  const int8_t* weights;
  int64_t heads, width;

  int32_t ScoreOf(const int8_t* key, int16_t* wide) const {
    for (int64_t d = 0; d < width; ++d) wide[d] = key[d];
    int32_t score = 0;
    for (int64_t h = 0; h < heads; ++h)
      score += weights[h] * std::max(Dot(queries.data() + h * width, wide, width), 0);
    return score;
  }
};

// The `count` tokens with the largest scores, of equal ones the first, in ascending order.
std::vector<int32_t> Choose(const std::vector<int32_t>& score, int64_t count) {
  std::vector<int32_t> chosen;
  if (count == 0) return chosen;
  std::vector<int32_t> sorted = score;
  std::nth_element(sorted.begin(), sorted.begin() + count - 1, sorted.end(), std::greater<>());
  const int32_t cut = sorted[count - 1];
  int64_t at_cut =
      count - std::count_if(score.begin(), score.end(), [&](int32_t each) { return each > cut; });
  for (size_t token = 0; token < score.size(); ++token)
    if (score[token] > cut || (score[token] == cut && at_cut-- > 0))
      chosen.push_back(static_cast<int32_t>(token));
  return chosen;
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
    for (int64_t i = 0; i < count; ++i)
      for (size_t d = 0; d < sums.size(); ++d) sums[d] += score[i] * rows[i * width + d];
  }
};

}  // namespace

ASSAY_KERNEL(Tensor<const bfloat16, 3> q, Tensor<const bfloat16, 3> cache,
             Tensor<const int8_t, 3> index_q, Tensor<const int8_t, 2> index_weights,
             Tensor<const int8_t, 3> index_keys, Tensor<const int32_t, 2> page_table,
             Tensor<const int32_t, 1> lengths, Tensor<bfloat16, 3> out, Tensor<int32_t, 2> out1) {
  const int64_t batch = q.size(0), width = q.size(2), latent = out.size(2), page = cache.size(1);
  const int64_t top = out1.size(1), index_heads = index_q.size(1), index_width = index_q.size(2);
  const int64_t groups = (q.size(1) + kHeads - 1) / kHeads;
  const float scale = 1 / std::sqrt(static_cast<float>(128 + width - latent));
  const auto row_of = [&](int64_t b, int64_t token) {
    return static_cast<int64_t>(page_table(b, token / page)) * page + token % page;
  };
  std::vector<std::vector<int32_t>> scores(batch), chosen(batch);
  std::vector<Indexer> indexers(batch);
  for (int64_t b = 0; b < batch; ++b) {
    scores[b].resize(lengths(b));
    const int8_t* const queries = index_q.data() + b * index_heads * index_width;
    indexers[b] = {{queries, queries + index_heads * index_width},
                   index_weights.data() + b * index_heads,
                   index_heads,
                   index_width};
  }
  const int64_t stretches = (page_table.size(1) * page + kStretch - 1) / kStretch;
#pragma omp parallel
  {
    std::vector<int16_t> wide(index_width);
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < batch * stretches; ++task) {
      const int64_t b = task / stretches, first = task % stretches * kStretch;
      for (int64_t token = first; token < std::min<int64_t>(first + kStretch, lengths(b)); ++token)
        scores[b][token] =
            indexers[b].ScoreOf(index_keys.data() + row_of(b, token) * index_width, wide.data());
    }
#pragma omp for schedule(dynamic)
    for (int64_t b = 0; b < batch; ++b) {
      chosen[b] = Choose(scores[b], std::min<int64_t>(lengths(b), top));
      for (int64_t i = 0; i < top; ++i)
        out1(b, i) = i < static_cast<int64_t>(chosen[b].size()) ? chosen[b][i] : -1;
    }
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < batch * groups; ++task) {
      const int64_t b = task / groups, first = task % groups * kHeads;
      const int64_t all = static_cast<int64_t>(chosen[b].size());
      std::vector<float> rows(kRows * width);
      std::vector<Head> heads(std::min(kHeads, q.size(1) - first));
      for (size_t h = 0; h < heads.size(); ++h) {
        heads[h].sums.assign(latent, 0.0f);
        for (int64_t d = 0; d < width; ++d)
          heads[h].query.push_back(static_cast<float>(q(b, first + static_cast<int64_t>(h), d)) *
                                   scale);
      }
      for (int64_t start = 0; start < all; start += kRows) {
        const int64_t count = std::min(kRows, all - start);
        for (int64_t i = 0; i < count; ++i) {
          const bfloat16* const from = cache.data() + row_of(b, chosen[b][start + i]) * width;
          for (int64_t d = 0; d < width; ++d) rows[i * width + d] = static_cast<float>(from[d]);
        }
        for (Head& head : heads) head.Add(rows.data(), count);
      }
      for (size_t h = 0; h < heads.size(); ++h)
        for (int64_t d = 0; d < latent; ++d)
          out(b, first + static_cast<int64_t>(h), d) =
              all > 0 ? heads[h].sums[d] / heads[h].total : 0.0f;
    }
  }
}
