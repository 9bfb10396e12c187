#include "values/left_results.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace assay {
namespace {

// Two outputs of 100 and 8 bytes a slot, of which four slots are laid out.
class LeftResultsTest : public ::testing::Test {
 protected:
  LeftResultsTest()
      : plan_(std::make_unique<wire::Plan>()), report_(std::make_unique<wire::Report>()) {
    plan_->argument_count = 3;
    plan_->slot_count = 4;
    plan_->output_stride = 256;
    plan_->arguments[0].role = wire::Role::kInput;
    AddOutput(1, 0, 100);
    AddOutput(2, 128, 8);
    for (int i = 0; i < 8; ++i) std::memset(memory_[i], 'a' + i, sizeof memory_[i]);
  }
  void AddOutput(int index, uint64_t offset, uint64_t size_bytes) {
    plan_->arguments[index].role = wire::Role::kOutput;
    plan_->arguments[index].offset = offset;
    plan_->arguments[index].size_bytes = size_bytes;
  }
  static uint64_t Address(const void* memory) { return reinterpret_cast<uint64_t>(memory); }
  LeftResults Say(std::initializer_list<uint64_t> addresses, std::vector<uint32_t> slots) {
    std::copy(addresses.begin(), addresses.end(), report_->result_at);
    return LeftResults(AddressesOfResults(*report_, *plan_, slots.size()), *plan_, slots);
  }

  std::unique_ptr<wire::Plan> plan_;
  std::unique_ptr<wire::Report> report_;
  char memory_[8][128];
  std::byte outputs_[4 * 256] = {};
};

TEST_F(LeftResultsTest, ResultsAreFetchedIntoTheSlotsOfTheirCalls) {
  const LeftResults left = Say(
      {Address(memory_[0]), Address(memory_[1]), Address(memory_[2]), Address(memory_[3])}, {2, 0});
  EXPECT_FALSE(left.Overlap());
  EXPECT_TRUE(left.Fetch(::getpid(), outputs_).empty());
  EXPECT_EQ(std::memcmp(outputs_ + 2 * 256, memory_[0], 100), 0);
  EXPECT_EQ(std::memcmp(outputs_ + 2 * 256 + 128, memory_[1], 8), 0);
  EXPECT_EQ(std::memcmp(outputs_, memory_[2], 100), 0);
  EXPECT_EQ(std::memcmp(outputs_ + 128, memory_[3], 8), 0);
  EXPECT_EQ(outputs_[100], std::byte{0});
}

TEST_F(LeftResultsTest, MemoryThatTwoCallsShareIsSeen) {
  EXPECT_TRUE(
      Say({Address(memory_[0]), Address(memory_[6]), Address(memory_[0]) + 99, Address(memory_[3])},
          {2, 0})
          .Overlap());
  EXPECT_FALSE(Say({Address(memory_[0]), Address(memory_[6]), Address(memory_[0]) + 100,
                    Address(memory_[3])},
                   {2, 0})
                   .Overlap());
  // A short piece inside of a long one hides nothing.
  EXPECT_TRUE(Say({Address(memory_[0]), Address(memory_[0]) + 64, Address(memory_[0]) + 80,
                   Address(memory_[3])},
                  {2, 0})
                  .Overlap());
  // Outputs of one call may be parts of one another.
  EXPECT_FALSE(Say({Address(memory_[0]), Address(memory_[0])}, {1}).Overlap());
}

TEST_F(LeftResultsTest, WhatCannotBeReadIsLost) {
  const LeftResults left = Say({Address(memory_[0]), 0, 8, Address(memory_[3]), UINT64_MAX - 5,
                                Address(memory_[4]), Address(memory_[5]), Address(memory_[6])},
                               {2, 0, 1, 3});
  EXPECT_EQ(left.Fetch(::getpid(), outputs_), (std::vector<uint32_t>{2, 1, 0}));
  EXPECT_EQ(std::memcmp(outputs_ + 3 * 256, memory_[5], 100), 0);
}

TEST_F(LeftResultsTest, WhatChangesOnceTheBlockHasEndedIsSeen) {
  LeftResults left = Say({Address(memory_[0]), Address(memory_[1])}, {2});
  left.TakeSample(::getpid(), 128, 7);
  EXPECT_TRUE(left.SampleStillHolds(::getpid()));
  std::memset(memory_[0], 'z', 64);
  EXPECT_FALSE(left.SampleStillHolds(::getpid()));
}

TEST_F(LeftResultsTest, ASmallResultIsPoisonedWholeAndALargeOneInSomeLines) {
  Say({Address(memory_[0]), Address(memory_[1])}, {2}).Poison(::getpid(), 2, 7);
  EXPECT_EQ(memory_[0][0], '\xA5');
  EXPECT_EQ(memory_[0][99], '\xA5');
  EXPECT_EQ(memory_[0][100], 'a');
  EXPECT_EQ(memory_[1][7], '\xA5');
  EXPECT_EQ(memory_[1][8], 'b');
  Say({Address(memory_[2]), Address(memory_[3])}, {2}).Poison(::getpid(), 1, 7);
  EXPECT_EQ(std::count(memory_[2], memory_[2] + 128, '\xA5'), 64);
  // Memory that cannot be written, such as that of inputs, is left alone.
  Say({8, Address(memory_[4])}, {2}).Poison(::getpid(), 2, 7);
  EXPECT_EQ(memory_[4][0], '\xA5');
}

TEST_F(LeftResultsTest, AddressesInMemoryThatTheHostWasLentBecomeTheJudges) {
  const uint64_t theirs = uint64_t{1} << 40, ours = 4096, size_bytes = 1000;
  LeftResults left = Say({theirs, theirs + 100, theirs + 900, theirs + 992}, {2, 0});
  EXPECT_TRUE(left.Translate(theirs, size_bytes, ours));
  ASSERT_EQ(left.pieces().size(), 4u);
  EXPECT_EQ(left.pieces()[2].address, ours + 900);
  EXPECT_EQ(left.pieces()[3].address, ours + 992);
  EXPECT_FALSE(left.Overlap());
  EXPECT_TRUE(left.lost().empty());
}

TEST_F(LeftResultsTest, ResultsElsewhereAreLost) {
  const uint64_t theirs = uint64_t{1} << 40;
  // One byte too far; before the begin; nowhere; and of more bytes than there are.
  LeftResults left = Say(
      {theirs + 901, theirs + 100, theirs - 1, theirs + 200, 0, theirs + 300, theirs, theirs + 993},
      {2, 0, 1, 3});
  EXPECT_FALSE(left.Translate(theirs, 1000, 4096));
  EXPECT_EQ(left.lost(), (std::vector<uint32_t>{1, 2, 0, 3}));
  EXPECT_EQ(left.pieces().size(), 4u);
  LeftResults none = Say({theirs, theirs + 100}, {2});
  EXPECT_FALSE(none.Translate(0, 0, 0));
  EXPECT_TRUE(none.pieces().empty());
}

TEST_F(LeftResultsTest, MemoryForResultsHoldsWhatAnAllocatorTakesForThem) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  uint64_t values_bytes = 70 * 1024 * kMiB;
  const auto bytes_for = [&](uint64_t size_bytes, uint32_t slots) {
    plan_->arguments[1].size_bytes = size_bytes;
    plan_->arguments[2].size_bytes = 0;
    return LeftResultsBytes(*plan_, slots, values_bytes) - 64 * kMiB;
  };
  // Of 1 MiB two share a segment of 2 MiB; besides those of the slots there are those of eight.
  EXPECT_EQ(bytes_for(kMiB, 5), 6 * kMiB + 8 * kMiB);
  EXPECT_EQ(bytes_for(100, 4096), 2 * kMiB + 2 * kMiB);
  // Two of 8 MiB share one of 20, and there are none of less; larger ones have their own.
  EXPECT_EQ(bytes_for(8 * kMiB, 3), 40 * kMiB + 80 * kMiB);
  EXPECT_EQ(bytes_for(kMiB + 1, 1), 20 * kMiB + 20 * kMiB);
  EXPECT_EQ(bytes_for(11 * kMiB, 3), 36 * kMiB + 96 * kMiB);
  EXPECT_EQ(bytes_for(512 * kMiB, 2), 1024 * kMiB + 1024 * kMiB);
  // With 12 GiB free, two sides' 1 GiB for what is made on the way were more than there was.
  values_bytes = 5 * 1024 * kMiB;
  EXPECT_EQ(bytes_for(256 * kMiB, 2), 512 * kMiB + 320 * kMiB);
}

TEST_F(LeftResultsTest, AProcessThatIsGoneCannotBeRead) {
  EXPECT_TRUE(MayReadMemory(::getpid()));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(MayReadMemory(child));
  const LeftResults left = Say({Address(memory_[0]), Address(memory_[1])}, {2});
  EXPECT_EQ(left.Fetch(child, outputs_), (std::vector<uint32_t>{2, 2}));
}

}  // namespace
}  // namespace assay
