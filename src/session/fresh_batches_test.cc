#include "session/fresh_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace assay {
namespace {

using testing::ElementsAre;

// What a batch of values would be: the seed that it was made under.
struct Values {
  uint64_t seed;
};

class FreshBatchesTest : public testing::Test {
 protected:
  FreshBatches<Values> Batches(uint64_t first_seed) {
    return {first_seed, [this] { return fresh_++; },
            [this](uint64_t seed) -> Result<std::unique_ptr<Values>> {
              made_.push_back(seed);
              if (fails_) return EnvironmentError("no memory");
              return std::make_unique<Values>(Values{seed});
            }};
  }
  uint64_t fresh_ = 100;  // what the operating system gives next
  bool fails_ = false;
  std::vector<uint64_t> made_;
};

// A published seed would let a candidate that comes after a verdict know its values.
TEST_F(FreshBatchesTest, TheFirstBatchAloneHasTheSessionsSeed) {
  auto batches = Batches(7);
  EXPECT_EQ((*batches.Take())->seed, 7u);
  EXPECT_EQ((*batches.Take())->seed, 100u);
  EXPECT_EQ((*batches.Take())->seed, 101u);
}

TEST_F(FreshBatchesTest, NoBatchIsGivenTwice) {
  auto batches = Batches(7);
  ASSERT_TRUE(batches.Prepare());
  ASSERT_TRUE(batches.Prepare()) << "one that waits is enough";
  EXPECT_EQ((*batches.Take())->seed, 7u);
  EXPECT_EQ((*batches.Take())->seed, 100u);
  EXPECT_THAT(made_, ElementsAre(7, 100));
}

TEST_F(FreshBatchesTest, OneThatCouldNotBeMadeIsMadeAnewUnderAnotherSeed) {
  auto batches = Batches(7);
  fails_ = true;
  EXPECT_FALSE(batches.Take());
  fails_ = false;
  EXPECT_EQ((*batches.Take())->seed, 100u);
}

}  // namespace
}  // namespace assay
