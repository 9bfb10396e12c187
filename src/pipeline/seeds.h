// Independent streams from a verdict's one seed.
#pragma once

#include <cstdint>

namespace assay {

enum class SeedStream : uint64_t { kWeights = 1, kDraws = 2, kValues = 3 };

// SplitMix64's finaliser (Steele, Lea, Flood 2014), without the top bit: Python and JSON readers
// keep it exactly.
inline uint64_t DeriveSeed(uint64_t seed, SeedStream stream) {
  uint64_t z = seed + 0x9E3779B97F4A7C15 * (static_cast<uint64_t>(stream) + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return (z ^ (z >> 31)) >> 1;
}

}  // namespace assay
