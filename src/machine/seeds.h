// Derives independent seeds from a verdict's one seed. A candidate knows the seed of the weights
// (KernelBench's constructors run under it) and must not be able to work the values out from it.
#pragma once

#include <cstdint>

namespace assay {

enum class SeedStream : uint64_t { kWeights = 1, kDraws = 2, kValues = 3, kOtherSize = 4 };

// Returns the first 63 bits of a SHA-256 of both, which cannot be reversed. The top bit is left out
// because Python and JSON readers do not keep it exactly.
uint64_t DeriveSeed(uint64_t seed, SeedStream stream);

// Returns a seed of 63 bits that nobody can guess.
uint64_t FreshSeed();

}  // namespace assay
