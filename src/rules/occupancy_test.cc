#include "rules/occupancy.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

// As cuDeviceGetAttribute gives them of an H200 (sm_90).
constexpr MultiprocessorLimits kHopper{2048, 32, 65536, 233472, 1024};
// And of an RTX 4090 (sm_89).
constexpr MultiprocessorLimits kAda{1536, 24, 65536, 102400, 1024};

void Expect(const BlockDemand& demand, const MultiprocessorLimits& limits, int blocks, double share,
            std::string_view limiter) {
  const Occupancy occupancy = OccupancyOf(demand, limits);
  EXPECT_EQ(occupancy.blocks, blocks);
  EXPECT_DOUBLE_EQ(occupancy.share, share);
  EXPECT_EQ(occupancy.limiter, limiter);
}

TEST(Occupancy, SmallKernelsFillAMultiprocessor) {
  Expect({256, 32, 0}, kHopper, 8, 1, "threads");
  Expect({1024, 32, 0}, kHopper, 2, 1, "threads");
  Expect({1024, 32, 0}, kAda, 1, 1024.0 / 1536, "threads");
}

TEST(Occupancy, RegistersLimit) {
  // 8 warps of 168 registers: 5,376 a warp, so 12 warps fit, and one block of them.
  Expect({256, 167, 0}, kHopper, 1, 8.0 / 64, "registers");
  // 33 registers a thread are given out as 40: 51 warps, of which 48 in fours.
  Expect({128, 33, 0}, kHopper, 12, 48.0 / 64, "registers");
  Expect({128, 255, 0}, kHopper, 2, 8.0 / 64, "registers");
}

TEST(Occupancy, SharedMemoryLimitsWithWhatIsReservedForEachBlock) {
  // 227 KiB are the most that a block may have; 228 are there.
  Expect({128, 32, 232448}, kHopper, 1, 4.0 / 64, "shared memory");
  Expect({128, 32, 115712}, kHopper, 2, 8.0 / 64, "shared memory");
  Expect({128, 32, 115713}, kHopper, 1, 4.0 / 64, "shared memory");
}

TEST(Occupancy, TinyBlocksAreLimitedByTheirNumber) {
  Expect({32, 16, 0}, kHopper, 32, 0.5, "blocks");
  Expect({1, 16, 0}, kAda, 24, 0.5, "blocks");
}

TEST(Occupancy, WhatDoesNotFitHasNone) {
  Expect({1024, 128, 0}, kHopper, 0, 0, "registers");
  Expect({128, 32, 300000}, kHopper, 0, 0, "shared memory");
  EXPECT_EQ(OccupancyOf({0, 32, 0}, kHopper).blocks, 0);
  EXPECT_EQ(OccupancyOf({128, 32, 0}, {}).blocks, 0);
}

}  // namespace
}  // namespace assay
