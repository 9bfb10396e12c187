#include "judge/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace assay {
namespace {

using ::testing::HasSubstr;

// Sixteen calls of a layer whose weights take 4 ms to read, computed in the first of them.
const StepTimes kSuperBatch{4.2e6, 0.4e6, 4.3e6, 4.1e6};

TEST(Steps, ACallThatIsSlowAloneAndFastInARowWorksAhead) {
  EXPECT_TRUE(WorksAhead(kSuperBatch, 1));
  EXPECT_TRUE(WorksAhead(kSuperBatch, 8));
}

// As it was seen: sixteen rows at a time, of weights that lie in a cache.
TEST(Steps, ABatchThatSavesAThirdIsSeen) {
  EXPECT_TRUE(WorksAhead({411.6e3, 110.7e3, 498.9e3, 174.2e3}, 1));
  EXPECT_TRUE(WorksAhead({440.2e3, 113.4e3, 433.7e3, 157.5e3}, 1));
}

TEST(Steps, AHonestKernelIsAsFastAlone) {
  EXPECT_FALSE(WorksAhead({4.2e6, 2.0e6, 4.3e6, 2.1e6}, 1));
  EXPECT_FALSE(WorksAhead({4.2e6, 2.0e6, 4.3e6, 2.4e6}, 1));
}

TEST(Steps, WhatWakingCostsIsNoWorkAhead) {
  EXPECT_FALSE(WorksAhead({25e3, 2e3, 30e3, 25e3}, 1));
  EXPECT_TRUE(WorksAhead({25e3, 2e3, 30e3, 40e3}, 1));
  EXPECT_FALSE(WorksAhead({250e3, 40e3, 260e3, 190e3}, 4)) << "a pool of threads that fell asleep";
}

// A baseline whose weights stay in the caches in a row, too: both sides find them cold alone.
TEST(Steps, WhatSlowsTheBaselineAloneIsAllowed) {
  EXPECT_FALSE(WorksAhead({1e6, 0.5e6, 3.5e6, 2.0e6}, 1));
  EXPECT_TRUE(WorksAhead({1e6, 0.5e6, 1e6, 2.0e6}, 1));
}

TEST(Steps, MostPairsMustShowIt) {
  const StepTimes honest{4.2e6, 2.0e6, 4.3e6, 2.1e6};
  EXPECT_THAT(WorkedAhead(std::vector{kSuperBatch, kSuperBatch, kSuperBatch}, 1).value_or(""),
              HasSubstr("ahead of their turn"));
  EXPECT_TRUE(WorkedAhead(std::vector{honest, kSuperBatch, kSuperBatch}, 1)) << "one was disturbed";
  EXPECT_FALSE(WorkedAhead(std::vector{kSuperBatch, honest, honest}, 1));
  EXPECT_FALSE(WorkedAhead(std::vector{kSuperBatch}, 1));
  EXPECT_FALSE(WorkedAhead({}, 1));
}

}  // namespace
}  // namespace assay
