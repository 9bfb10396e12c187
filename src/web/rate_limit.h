// How often a peer may ask: a bucket that fills at a rate up to a burst; each request takes one.
// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

namespace assay {

struct RequestRate {
  double per_s = 20;
  double burst = 200;
};

class RateLimit {
 public:
  explicit RateLimit(RequestRate rate) : rate_(rate) {}
  // Returns 0 if the peer may ask now, else the seconds until it may.
  int Take(const std::string& peer, int64_t now_ms);

 private:
  struct Bucket {
    double filled = 0;
    int64_t at_ms = 0;
  };
  void Forget(int64_t now_ms);

  const RequestRate rate_;
  std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace assay
