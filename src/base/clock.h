// The judge's clock, CLOCK_MONOTONIC in nanoseconds, and the date of records.
#pragma once

#include <time.h>

#include <cstdint>
#include <string>

namespace assay {

inline int64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Returns the present time as records have it, such as "2026-11-27T02:30:00Z".
std::string UtcTimestamp();

// A point in time that bounds a wait.
class Deadline {
 public:
  static Deadline AfterSeconds(double seconds) {
    return Deadline(MonotonicNs() + static_cast<int64_t>(seconds * 1e9));
  }
  // 0 once the deadline has passed.
  int64_t RemainingNs() const {
    const int64_t left = end_ns_ - MonotonicNs();
    return left > 0 ? left : 0;
  }
  // Rounded up, for poll().
  int RemainingMs() const { return static_cast<int>((RemainingNs() + 999'999) / 1'000'000); }
  bool Expired() const { return MonotonicNs() >= end_ns_; }
  void Extend(int64_t ns) { end_ns_ += ns; }

 private:
  explicit Deadline(int64_t end_ns) : end_ns_(end_ns) {}
  int64_t end_ns_;
};

}  // namespace assay
