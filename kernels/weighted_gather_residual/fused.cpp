// Picked rows, weighted and added to the residual, a row of the result at a time.
//
// Idea: PyTorch copies every picked row into one large tensor, writes its product with the weights,
// and reads that again to add it up: all of it CHOICES times as large as the result. Here a vector
// of each picked row goes straight into the sum; the rows of the next result are asked for
// meanwhile, as no hardware can guess where they lie.
// expected: faster at small
#include <assay/kernel.h>

#include <cmath>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Vector __attribute__((vector_size(4 * kLanes)));

Vector Load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

void Store(float* to, Vector value) { __builtin_memcpy(to, &value, sizeof value); }

struct Choice {
  const float* row;
  float weight;
};

// The picked rows with the softmax of their scores.
void Pick(const int64_t* choices, const float* scores, const float* source, int64_t features,
          std::vector<Choice>& picked) {
  float largest = scores[0];
  for (size_t i = 1; i < picked.size(); ++i) largest = scores[i] > largest ? scores[i] : largest;
  float sum = 0;
  for (size_t i = 0; i < picked.size(); ++i) {
    picked[i] = {source + choices[i] * features, std::exp(scores[i] - largest)};
    sum += picked[i].weight;
  }
  for (Choice& choice : picked) choice.weight /= sum;
}

void AddUp(const float* residual, const std::vector<Choice>& picked,
           const std::vector<Choice>& next, int64_t features, float* out) {
  int64_t i = 0;
  for (; i + kLanes <= features; i += kLanes) {
    Vector sum = {};
    for (const Choice& choice : picked) sum += choice.weight * Load(choice.row + i);
    for (const Choice& choice : next) __builtin_prefetch(choice.row + i);
    Store(out + i, Load(residual + i) + sum);
  }
  for (; i < features; ++i) {
    float sum = 0;
    for (const Choice& choice : picked) sum += choice.weight * choice.row[i];
    out[i] = residual[i] + sum;
  }
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> residual, assay::Tensor<const float, 2> source,
             assay::Tensor<const int64_t, 2> choices, assay::Tensor<const float, 2> scores,
             assay::Tensor<float, 2> out) {
  const int64_t rows = residual.size(0);
  const int64_t features = residual.size(1);
  const int64_t count = choices.size(1);
  static std::vector<Choice> picked;
  static std::vector<Choice> next;
  picked.resize(static_cast<size_t>(count));
  next.resize(static_cast<size_t>(count));
  if (rows > 0) Pick(choices.data(), scores.data(), source.data(), features, next);
  for (int64_t row = 0; row < rows; ++row) {
    picked.swap(next);
    if (row + 1 < rows) {
      const int64_t after = (row + 1) * count;
      Pick(choices.data() + after, scores.data() + after, source.data(), features, next);
    }
    AddUp(residual.data() + row * features, picked, next, features, out.data() + row * features);
  }
}
