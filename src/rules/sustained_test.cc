#include "rules/sustained.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(SustainedCallNs, TheLaterHalfCounts) {
  // The clock comes down after two blocks, and one block was held up.
  EXPECT_DOUBLE_EQ(SustainedCallNs({100, 100, 120, 120, 990, 120}, 10), 12);
  EXPECT_DOUBLE_EQ(SustainedCallNs({100, 130}, 10), 13);
  EXPECT_DOUBLE_EQ(SustainedCallNs({70}, 7), 10);
}

}  // namespace
}  // namespace assay
