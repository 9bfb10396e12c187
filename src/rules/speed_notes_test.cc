#include "rules/speed_notes.h"

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

// A kernel into one preallocated tensor, as CUDA graphs have it: both sides copy.
TEST(NoteOfReusedMemory, AWinThatASavedCopyExplainsIsNone) {
  EXPECT_THAT(NoteOfReusedMemory(65'000, 8'000, 51'000, 1),
              testing::HasSubstr("12% of the reference's time: return a new tensor"));
  EXPECT_EQ(NoteOfReusedMemory(65'000, 8'000, 48'000, 1), "");
  EXPECT_NE(NoteOfReusedMemory(65'000, 8'000, 48'000, 1.1), "");
}

TEST(SpeedupBesideCopies, TakesWhatLeavingOutACopySavesFromTheGain) {
  EXPECT_DOUBLE_EQ(SpeedupBesideCopies(100, 10, 40), 2);
  EXPECT_EQ(SpeedupBesideCopies(100, 60, 40), 0);
}

// A relu into one preallocated tensor was slower beside the same into new ones (seen once).
TEST(NoteOfOwnCopies, ALossThatItsOwnCopyExplainsIsNone) {
  EXPECT_THAT(NoteOfOwnCopies(100, 128, 20, 1), testing::HasSubstr("return a new tensor"));
  EXPECT_EQ(NoteOfOwnCopies(100, 150, 20, 1), "");
  EXPECT_EQ(NoteOfOwnCopies(100, 128, 20, 1.2), "");
  EXPECT_NE(NoteOfOwnCopies(100, 128, 1000, 1), "");
}

// A ReLU of 10 elements won 57 times, a reference that loops over rows lost 111 times.
TEST(NoteOfBaseline, SaysWhatAWinIsWorth) {
  Work work;
  work.bytes = 80;
  work.operations = 10;
  EXPECT_THAT(NoteOfBaseline(work, 0, 2'000), testing::HasSubstr("call overhead decides here"));
  work.bytes = 2e6;
  EXPECT_THAT(NoteOfBaseline(work, 60'000, 20e6), testing::HasSubstr("reaches 0.3% of the bound"));
  EXPECT_THAT(NoteOfBaseline(work, 0, 200e6), testing::HasSubstr("of what a slow core could do"));
  EXPECT_EQ(NoteOfBaseline(work, 60'000, 1e6), "");
  EXPECT_EQ(NoteOfBaseline(work, 0, 1e6), "");
}

// With 12 GiB left of a GPU a block was one call of 0.34 ms, all of which could be worked ahead.
TEST(NoteOfShortBlocks, WhatCouldAllBeWorkedAheadIsNotFaster) {
  EXPECT_THAT(NoteOfShortBlocks(1, 339'957),
              testing::HasSubstr("a block of 1 call is over after 0.34 ms"));
  EXPECT_THAT(NoteOfShortBlocks(12, 240'370), testing::HasSubstr("a block of 12 calls"));
  EXPECT_EQ(NoteOfShortBlocks(24, 512'289), "");
}

}  // namespace
}  // namespace assay
