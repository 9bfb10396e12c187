#include "search/random.h"

#include <fmt/format.h>

#include <string>

#include "base/check.h"
#include "base/hash.h"

namespace assay {

StepRandom::StepRandom(uint64_t seed, std::string_view key)
    : state_(std::stoull(Sha256Hex(fmt::format("assay.search {} {}", seed, key)).substr(0, 16),
                         nullptr, 16)) {}

// SplitMix64 (Steele, Lea and Flood, 2014).
uint64_t StepRandom::Next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

size_t StepRandom::Below(size_t count) {
  ASSAY_CHECK(count > 0);
  return static_cast<size_t>(Unit() * static_cast<double>(count));
}

double StepRandom::Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

}  // namespace assay
