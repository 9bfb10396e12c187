#include "rules/warm_up.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

void AddCalls(WarmUpWatch* watch, int count, double time_ns, int64_t page_faults) {
  for (int i = 0; i < count; ++i) watch->Add(time_ns, page_faults);
}

TEST(WarmUpWatch, ThreeCallsAlikeWithoutNewMemoryAreWarm) {
  WarmUpWatch watch;
  EXPECT_FALSE(watch.Warm());
  watch.Add(9e6, 4000);
  AddCalls(&watch, 2, 3e6, 0);
  EXPECT_FALSE(watch.Warm());
  watch.Add(3.1e6, 2);
  EXPECT_TRUE(watch.Warm());
}

TEST(WarmUpWatch, CallsOfDifferentDurationAreNotWarm) {
  WarmUpWatch watch;
  for (const double time_ns : {9e6, 7e6, 5e6, 4e6, 3e6}) watch.Add(time_ns, 0);
  EXPECT_FALSE(watch.Warm());
}

// A candidate was judged by calls of 29 ms, 3.3 ms and 6 ms for the same work: its first three
// calls had taken 29 ms each, all alike, in memory that the kernel had just handed out.
TEST(WarmUpWatch, CallsThatAreAlikeBecauseEachTakesNewMemoryAreNotWarm) {
  WarmUpWatch watch;
  AddCalls(&watch, 4, 29e6, 4100);
  EXPECT_FALSE(watch.Warm());
  AddCalls(&watch, 4, 6e6, 2050);
  EXPECT_FALSE(watch.Warm());
  AddCalls(&watch, 3, 3.3e6, 1);
  EXPECT_TRUE(watch.Warm());
}

TEST(WarmUpWatch, AProgramThatMapsMemoryInEveryCallIsWarmWhenItNeverDoesOtherwise) {
  WarmUpWatch watch;
  AddCalls(&watch, 15, 5e6, 2050);
  EXPECT_FALSE(watch.Warm());
  watch.Add(5e6, 2051);
  EXPECT_TRUE(watch.Warm());
}

TEST(WarmUpWatch, ItDoesNotWaitForEver) {
  WarmUpWatch watch;
  for (int i = 0; i < 64; ++i) {
    EXPECT_FALSE(watch.Warm());
    watch.Add(i % 2 == 0 ? 1e6 : 2e6, i * 1000);
  }
  EXPECT_TRUE(watch.Warm());
}

}  // namespace
}  // namespace assay
