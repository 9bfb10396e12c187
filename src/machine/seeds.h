// Independent streams from a verdict's one seed. A candidate knows the seed of the weights
// (KernelBench's constructors run under it), and must not learn from it what the values will be.
#pragma once

#include <cstdint>

namespace assay {

enum class SeedStream : uint64_t { kWeights = 1, kDraws = 2, kValues = 3, kOtherSize = 4 };

// The first 63 bits of a SHA-256 of both: a step that cannot be turned back, and without the top
// bit, which Python and JSON readers do not keep exactly.
uint64_t DeriveSeed(uint64_t seed, SeedStream stream);

// A seed that nobody can guess.
uint64_t FreshSeed();

}  // namespace assay
