#include <assay/kernel.h>

#include <cmath>
#include <limits>

// A row is scaled and masked where its results will be; a key that is not kept is minus infinity,
// whose exponential is zero.
ASSAY_KERNEL(assay::Tensor<const float, 4> scores, assay::Tensor<const bool, 4> keep,
             assay::Tensor<const float, 3> scale, assay::Tensor<float, 4> out) {
  const int64_t batches = scores.size(0), heads = scores.size(1);
  const int64_t queries = scores.size(2), keys = scores.size(3);
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t query = 0; query < queries; ++query) {
        const int64_t row = (batch * heads + head) * queries + query;
        const float* from = scores.data() + row * keys;
        const bool* kept = keep.data() + (batch * queries + query) * keys;
        float* to = out.data() + row * keys;
        const float factor = scale.data()[head];
        float most = -std::numeric_limits<float>::infinity();
        for (int64_t key = 0; key < keys; ++key) {
          to[key] = kept[key] ? from[key] * factor : -std::numeric_limits<float>::infinity();
          most = to[key] > most ? to[key] : most;
        }
        float sum = 0;
        for (int64_t key = 0; key < keys; ++key) sum += to[key] = std::exp(to[key] - most);
        for (int64_t key = 0; key < keys; ++key) to[key] /= sum;
      }
}
