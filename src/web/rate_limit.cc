#include "web/rate_limit.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

constexpr size_t kPeersMax = 20'000;

}  // namespace

int RateLimit::Take(const std::string& peer, int64_t now_ms) {
  const std::scoped_lock lock(mutex_);
  if (buckets_.size() >= kPeersMax && !buckets_.contains(peer)) Forget(now_ms);
  Bucket& bucket = buckets_.try_emplace(peer, Bucket{rate_.burst, now_ms}).first->second;
  const double passed_s = static_cast<double>(std::max<int64_t>(0, now_ms - bucket.at_ms)) / 1e3;
  bucket.filled = std::min(rate_.burst, bucket.filled + passed_s * rate_.per_s);
  bucket.at_ms = now_ms;
  if (bucket.filled < 1)
    return std::max(1, static_cast<int>(std::ceil((1 - bucket.filled) / rate_.per_s)));
  bucket.filled -= 1;
  return 0;
}

// Those that are full again are as if they had never been; if there are none, all are.
void RateLimit::Forget(int64_t now_ms) {
  std::erase_if(buckets_, [&](const auto& each) {
    const double passed_s = static_cast<double>(now_ms - each.second.at_ms) / 1e3;
    return each.second.filled + passed_s * rate_.per_s >= rate_.burst;
  });
  if (buckets_.size() >= kPeersMax) buckets_.clear();
}

}  // namespace assay
