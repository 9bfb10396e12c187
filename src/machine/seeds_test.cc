#include "machine/seeds.h"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

TEST(Seeds, StreamsAreTheSameEachTimeAndDiffer) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 1; seed < 200; ++seed)
    for (const auto stream : {SeedStream::kWeights, SeedStream::kDraws, SeedStream::kValues}) {
      EXPECT_EQ(DeriveSeed(seed, stream), DeriveSeed(seed, stream));
      seen.insert(DeriveSeed(seed, stream));
    }
  EXPECT_EQ(seen.size(), 3u * 199);
}

uint64_t UnshiftedXor(uint64_t z, int shift) {
  uint64_t value = z;
  for (int bits = shift; bits < 64; bits += shift) value = z ^ (value >> shift);
  return value;
}

uint64_t Inverse(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

// Streams once came from SplitMix64's finaliser, which is a bijection: a candidate turned the seed
// of its weights back into the verdict's, and drew every timed input before it was shown.
TEST(Seeds, TheSeedOfTheWeightsCannotBeTurnedBack) {
  const uint64_t secret = 0x0123456789abcdef;
  const uint64_t weights = DeriveSeed(secret, SeedStream::kWeights);
  for (const uint64_t top : {uint64_t{0}, uint64_t{1}}) {
    uint64_t z = UnshiftedXor(weights << 1 | top, 31);
    z = UnshiftedXor(z * Inverse(0x94D049BB133111EB), 27);
    z = UnshiftedXor(z * Inverse(0xBF58476D1CE4E5B9), 30);
    EXPECT_NE(z - 0x9E3779B97F4A7C15 * 2, secret);
  }
}

TEST(Seeds, FreshOnesDiffer) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 100; ++i) seen.insert(FreshSeed());
  EXPECT_EQ(seen.size(), 100u);
}

}  // namespace
}  // namespace assay
