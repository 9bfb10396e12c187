#include "values/flush_times.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(FlushTimes, TakesTheFirstForUndisturbed) { EXPECT_TRUE(FlushTimes().HadAll(1)); }

// A copy of ReLU at 4096 x 393216 looked 10% slower than the reference: each of its blocks came
// right after the oracle had given memory back.
TEST(FlushTimes, SeesThatADriverClearsMemory) {
  FlushTimes times;
  for (int i = 0; i < 5; ++i) times.Add(0.049);
  EXPECT_TRUE(times.HadAll(0.050));
  EXPECT_FALSE(times.HadAll(0.0535));
}

TEST(FlushTimes, SeesItWhereHalfOfTheFlushesAreDisturbed) {
  FlushTimes times;
  for (int i = 0; i < 50; ++i) times.Add(i % 2 == 0 ? 0.049 : 0.054);
  EXPECT_TRUE(times.HadAll(0.049));
  EXPECT_FALSE(times.HadAll(0.054));
}

TEST(FlushTimes, FollowsTheClockOfTheDevice) {
  FlushTimes times;
  for (int i = 0; i < 40; ++i) times.Add(0.049);
  EXPECT_FALSE(times.HadAll(0.06));
  for (int i = 0; i < 30; ++i) times.Add(0.06);
  EXPECT_TRUE(times.HadAll(0.06));
}

}  // namespace
}  // namespace assay
