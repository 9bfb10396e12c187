#include "speed/gate2_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

// A candidate that took the copy out of its host was `faster` than itself, and nothing said why it
// might be.
TEST(NoteOfCopies, AWinThatASavedCopyExplainsIsNoted) {
  EXPECT_THAT(NoteOfCopies(65'000, 8'000, 51'000, 1),
              testing::HasSubstr("12% of the reference's time"));
  EXPECT_EQ(NoteOfCopies(65'000, 8'000, 48'000, 1), "");
  EXPECT_NE(NoteOfCopies(65'000, 8'000, 48'000, 1.1), "");
}

// A relu into one preallocated tensor was slower beside the same into new ones (seen once).
TEST(NoteOfOwnCopies, ALossThatItsOwnCopyExplainsIsNone) {
  EXPECT_THAT(NoteOfOwnCopies(100, 128, 20, 1), testing::HasSubstr("return a new tensor"));
  EXPECT_EQ(NoteOfOwnCopies(100, 150, 20, 1), "");
  EXPECT_EQ(NoteOfOwnCopies(100, 128, 20, 1.2), "");
  EXPECT_NE(NoteOfOwnCopies(100, 128, 1000, 1), "");
}

// With 12 GiB left of a GPU a block was one call of 0.34 ms, all of which could be worked ahead.
TEST(NoteOfShortBlocks, WhatCouldAllBeWorkedAheadIsNotFaster) {
  EXPECT_THAT(NoteOfShortBlocks(1, 339'957),
              testing::HasSubstr("a block of 1 call is over after 0.34 ms"));
  EXPECT_THAT(NoteOfShortBlocks(12, 240'370), testing::HasSubstr("a block of 12 calls"));
  EXPECT_EQ(NoteOfShortBlocks(24, 512'289), "");
}

TEST(IsOutOfBudget, TheFirstPairsRunAsLongAsAnyTimeIsLeft) {
  EXPECT_FALSE(IsOutOfBudget(1, 60, 0.1, 0));
  EXPECT_TRUE(IsOutOfBudget(1, 60, 0, 0));
}

TEST(IsOutOfBudget, PairsThatCannotDecideAreNotBegun) {
  const int coming = PairsUntilDecision(3);
  // A second a pair.
  EXPECT_FALSE(IsOutOfBudget(3, 3 + coming + 0.1, coming + 0.1, 0));
  EXPECT_TRUE(IsOutOfBudget(3, 3 + coming - 0.1, coming - 0.1, 0));
}

// Hosts of the first pairs start beside gate 1. Those of later ones start within gate 2, and once
// did so for three seconds, six of them, to leave time for one pair that decided nothing.
TEST(IsOutOfBudget, HostsThatStartedBeforeCountAsThePairsOwn) {
  EXPECT_FALSE(IsOutOfBudget(3, 5, 3.5, 0));
  EXPECT_TRUE(IsOutOfBudget(3, 5, 3.5, 2));
  EXPECT_FALSE(IsOutOfBudget(3, 60, 58.5, 2));
}

}  // namespace
}  // namespace assay
