// Measures the parts of a verdict's time.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace assay {

inline double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

// Adds its own lifetime to a sum, which must outlive it.
class Meter {
 public:
  explicit Meter(int64_t* sum_ns) : sum_ns_(sum_ns), begin_ns_(MonotonicNs()) {}
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;
  ~Meter() { *sum_ns_ += MonotonicNs() - begin_ns_; }

 private:
  int64_t* sum_ns_;
  int64_t begin_ns_;
};

}  // namespace assay
