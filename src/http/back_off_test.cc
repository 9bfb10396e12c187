#include "http/back_off.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr int64_t kNow = 1'000'000'000;  // Sun, 09 Sep 2001 01:46:40 GMT

TEST(ParseRetryAfter, TakesSecondsAndDates) {
  EXPECT_EQ(ParseRetryAfter("30", kNow), 30);
  EXPECT_EQ(ParseRetryAfter(" 0.5 ", kNow), 0.5);
  EXPECT_EQ(ParseRetryAfter("Sun, 09 Sep 2001 01:47:40 GMT", kNow), 60);
  EXPECT_EQ(ParseRetryAfter("Sun, 09 Sep 2001 01:00:00 GMT", kNow), 0);  // past
  EXPECT_EQ(ParseRetryAfter("-3", kNow), std::nullopt);
  EXPECT_EQ(ParseRetryAfter("soon", kNow), std::nullopt);
  EXPECT_EQ(ParseRetryAfter("", kNow), std::nullopt);
}

TEST(BackOffSeconds, DoublesUpToABoundWithJitter) {
  const BackOff terms{.first_s = 1, .max_s = 10};
  EXPECT_DOUBLE_EQ(BackOffSeconds(terms, 1, 0), 0.5);
  EXPECT_DOUBLE_EQ(BackOffSeconds(terms, 3, 0), 2);
  EXPECT_DOUBLE_EQ(BackOffSeconds(terms, 60, 0), 5);
  EXPECT_NEAR(BackOffSeconds(terms, 3, ~uint64_t{0}), 4, 1e-9);
}

}  // namespace
}  // namespace assay
