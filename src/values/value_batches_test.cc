#include "values/value_batches.h"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

// Takes as the pool does; true: it had to be drawn.
bool Take(ValueBatches& batches, uint32_t count, std::set<uint32_t>* masters = nullptr) {
  ValueBatch* batch = batches.Find(count, false);
  const bool drawn = batch == nullptr;
  if (drawn) batch = &batches.Renew(count);
  batch->seen = true;
  if (masters != nullptr) masters->insert(batch->masters.begin(), batch->masters.end());
  return drawn;
}

TEST(ValueBatches, AProcessSeesNoBatchTwice) {
  ValueBatches batches(3, 600);
  std::set<uint32_t> masters;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Take(batches, 100, &masters));
  EXPECT_EQ(masters.size(), 500u);
  EXPECT_GE(*masters.begin(), 3u);
  EXPECT_LT(*masters.rbegin(), 603u);
  // Full: one of the five is drawn anew, and another one then.
  std::set<uint32_t> sixth, seventh;
  EXPECT_TRUE(Take(batches, 100, &sixth));
  EXPECT_TRUE(Take(batches, 100, &seventh));
  EXPECT_NE(sixth, seventh);
}

TEST(ValueBatches, AnotherProcessSeesThemAgain) {
  ValueBatches batches(0, 600);
  std::mt19937_64 random(1);
  for (int i = 0; i < 5; ++i) Take(batches, 100);
  batches.BeginProcess(random);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Take(batches, 100));
}

// A pair's single calls had the whole pool drawn anew, for every pair: up to half the time of a
// verdict.
TEST(ValueBatches, SmallOnesDoNotPushLargeOnesOut) {
  ValueBatches batches(0, 1023);
  std::mt19937_64 random(1);
  for (int pair = 0; pair < 3; ++pair) {
    batches.BeginProcess(random);
    for (const uint32_t count : {14u, 109u, 109u, 109u, 109u, 109u, 109u, 109u, 5u, 1u, 1u})
      EXPECT_EQ(Take(batches, count), pair == 0) << "pair " << pair << ", " << count;
  }
}

TEST(ValueBatches, ALargerOneServesWhereBlocksAreShorter) {
  ValueBatches batches(0, 1000);
  std::mt19937_64 random(1);
  for (int i = 0; i < 8; ++i) Take(batches, 109);
  batches.BeginProcess(random);
  EXPECT_FALSE(Take(batches, 73));
  // Not for one so much shorter that the rest would be wasted.
  EXPECT_TRUE(Take(batches, 40));
}

TEST(ValueBatches, WhereNoSizeFitsTheRoomIsSharedOutAgain) {
  ValueBatches batches(0, 600);
  for (int i = 0; i < 5; ++i) Take(batches, 100);
  std::set<uint32_t> masters;
  EXPECT_TRUE(Take(batches, 300, &masters));
  EXPECT_EQ(masters.size(), 300u);
  EXPECT_EQ(batches.Find(100, true), nullptr);
}

TEST(ValueBatches, AFewValuesAreOneRoom) {
  ValueBatches batches(0, 10);
  EXPECT_EQ(batches.batch_max(), 10u);
  EXPECT_TRUE(Take(batches, 2));
  EXPECT_TRUE(Take(batches, 8));
  EXPECT_TRUE(Take(batches, 2));
}

}  // namespace
}  // namespace assay
