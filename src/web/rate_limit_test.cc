#include "web/rate_limit.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(RateLimit, GivesABurstThenARate) {
  RateLimit limit({.per_s = 2, .burst = 3});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limit.Take("ann", 1000), 0);
  EXPECT_EQ(limit.Take("ann", 1000), 1);
  EXPECT_EQ(limit.Take("ben", 1000), 0) << "each has a bucket";
  EXPECT_EQ(limit.Take("ann", 1500), 0);
  EXPECT_GT(limit.Take("ann", 1500), 0);
  EXPECT_GT(limit.Take("ann", 900), 0) << "time that goes back gives nothing";
}

TEST(RateLimit, ManyPeersTakeBoundedMemory) {
  RateLimit limit({.per_s = 1, .burst = 2});
  for (int i = 0; i < 50'000; ++i) EXPECT_EQ(limit.Take(std::to_string(i), i), 0);
}

}  // namespace
}  // namespace assay
