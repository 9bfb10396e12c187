#include <assay/kernel.h>

#include <cmath>
#include <limits>

// One pass for the maximum, one for the exponentials, one for the division.
ASSAY_KERNEL(assay::Tensor<const float, 4> scores, assay::Tensor<const bool, 4> keep,
             assay::Tensor<const float, 3> scale, assay::Tensor<float, 4> out) {
  const int64_t batches = scores.size(0), heads = scores.size(1);
  const int64_t queries = scores.size(2), keys = scores.size(3);
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t query = 0; query < queries; ++query) {
        const float factor = scale.data()[head];
        float most = -std::numeric_limits<float>::infinity();
        for (int64_t key = 0; key < keys; ++key)
          if (keep(batch, 0, query, key))
            most = std::fmax(most, scores(batch, head, query, key) * factor);
        float sum = 0;
        for (int64_t key = 0; key < keys; ++key) {
          const float value = keep(batch, 0, query, key)
                                  ? std::exp(scores(batch, head, query, key) * factor - most)
                                  : 0.0f;
          out(batch, head, query, key) = value;
          sum += value;
        }
        for (int64_t key = 0; key < keys; ++key) out(batch, head, query, key) /= sum;
      }
}
