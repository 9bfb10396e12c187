#include "correctness/state_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A mean of two channels at 0, and a counter of calls at 8.
class StateCheckTest : public ::testing::Test {
 protected:
  StateCheckTest() {
    auto memory = SharedRegion::Create("state-test", 4096);
    EXPECT_TRUE(memory);
    expected_.memory = std::move(*memory);
    expected_.tensors = {{"norm.running_mean", DType::kFloat32, {2}, 0, 2},
                         {"norm.num_batches_tracked", DType::kInt64, {}, 8, 1}};
    Write(expected_.memory.data(), {0.1F, 0.2F}, 1);
    held_.resize(16);
  }
  static void Write(std::byte* to, std::vector<float> mean, int64_t calls) {
    std::memcpy(to, mean.data(), 8);
    std::memcpy(to + 8, &calls, 8);
  }
  StateCheck Compare(std::vector<float> mean, int64_t calls, uint64_t bits = 3) {
    Write(held_.data(), std::move(mean), calls);
    return CompareState(expected_, held_, bits, CompareRule{});
  }

  ModuleState expected_;
  std::vector<std::byte> held_;
};

TEST_F(StateCheckTest, SumsOfAnotherOrderAreRight) {
  const StateCheck check = Compare({0.1F * (1 + 1e-5F), 0.2F}, 1);
  EXPECT_THAT(check.wrong, IsEmpty());
  EXPECT_THAT(check.note, IsEmpty());
}

TEST_F(StateCheckTest, AnUpdateThatIsLeftOutIsNamed) {
  EXPECT_THAT(Compare({0, 0}, 1).wrong, HasSubstr("changes norm.running_mean, and this one"));
  EXPECT_THAT(Compare({0.1F, 0.2F}, 0).wrong,
              HasSubstr("norm.num_batches_tracked, and this one leaves it with 0 where 1"));
}

TEST_F(StateCheckTest, WhatACandidateDoesNotHaveIsNotCompared) {
  const StateCheck check = Compare({0.1F, 0.2F}, 7, 1);
  EXPECT_THAT(check.wrong, IsEmpty());
  EXPECT_THAT(check.note, HasSubstr("norm.num_batches_tracked, which the candidate does not have"));
}

TEST_F(StateCheckTest, WhatDoesNotFitIsSaid) {
  expected_.left_out = 2;
  EXPECT_THAT(Compare({0.1F, 0.2F}, 1).note, HasSubstr("2 more tensors"));
}

}  // namespace
}  // namespace assay
