#include "cli/exit_code.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay {
namespace {

TEST(ExitCode, FollowsTheTable) {
  EXPECT_EQ(ExitCodeOf(Outcome::kFaster), 0);
  EXPECT_EQ(ExitCodeOf(Outcome::kSlower), 1);
  EXPECT_EQ(ExitCodeOf(Outcome::kTie), 1);
  EXPECT_EQ(ExitCodeOf(Outcome::kWrong), 3);
  EXPECT_EQ(ExitCodeOf(Outcome::kBuildFailed), 4);
  EXPECT_EQ(ExitCodeOf(Outcome::kCrashed), 5);
  EXPECT_EQ(ExitCodeOf(Outcome::kTimedOut), 5);
  EXPECT_EQ(ExitCodeOf(Outcome::kOutOfMemory), 5);
  EXPECT_EQ(ExitCodeOf(Outcome::kFoul), 6);
  EXPECT_EQ(ExitCodeOf(Outcome::kUnsettled), 7);
  EXPECT_EQ(ExitCodeOf(ErrorKind::kUsage), 2);
  EXPECT_EQ(ExitCodeOf(ErrorKind::kEnvironment), 8);
  EXPECT_EQ(ExitCodeOf(ErrorKind::kInterrupted), 130);
}

TEST(CombineExitCodes, TheGravestApplies) {
  const std::vector<int> order = {70, 8, 6, 5, 4, 3, 7, 1, 0};
  for (size_t grave = 0; grave < order.size(); ++grave)
    for (size_t light = grave; light < order.size(); ++light) {
      EXPECT_EQ(CombineExitCodes(std::vector<int>{order[light], order[grave]}), order[grave]);
      EXPECT_EQ(CombineExitCodes(std::vector<int>{order[grave], order[light], 0}), order[grave]);
    }
}

TEST(CombineExitCodes, WhatLeftCandidatesUnjudgedIsNotHidden) {
  EXPECT_EQ(CombineExitCodes(std::vector<int>{0, 130, 8}), 130);
  EXPECT_EQ(CombineExitCodes(std::vector<int>{6, 2}), 2);
  EXPECT_EQ(CombineExitCodes(std::vector<int>{9, 3}), 9);
  EXPECT_EQ(CombineExitCodes(std::vector<int>{130, 70}), 70);
}

TEST(CombineExitCodes, NothingIsGoodAndNonsenseIsABug) {
  EXPECT_EQ(CombineExitCodes({}), 0);
  EXPECT_EQ(CombineExitCodes(std::vector<int>{0, 42}), 70);
  EXPECT_EQ(CombineExitCodes(std::vector<int>{-1}), 70);
}

}  // namespace
}  // namespace assay
