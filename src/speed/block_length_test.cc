#include "speed/block_length.h"

#include <gtest/gtest.h>

#include "wire/types.h"

namespace assay {
namespace {

BlockLimits OnCpu() { return {false, 4096, 4096, 0}; }
BlockLimits OnDevice() { return {true, 4096, 4096, 0}; }

// 2.5 ms of the faster side.
TEST(CallsFor, TheFasterSideFillsTheBlock) {
  EXPECT_EQ(CallsFor({100e3, 25e3}, OnCpu()), 100u);
  EXPECT_EQ(CallsFor({25e3, 100e3}, OnCpu()), 100u);
  EXPECT_EQ(CallsFor({5e6, 5e6}, OnCpu()), 1u);
}

TEST(CallsFor, TheSlowerSideBoundsTheBlock) {
  EXPECT_EQ(CallsFor({50e6, 25e3}, OnCpu()), 4u);
  EXPECT_EQ(CallsFor({1e9, 25e3}, OnCpu()), 1u);
}

TEST(CallsFor, SlotsAndValuesBoundTheBlock) {
  EXPECT_EQ(CallsFor({1e3, 1e3}, {false, 10, 4096, 0}), 8u);
  EXPECT_EQ(CallsFor({1e3, 1e3}, {false, 4096, 10, 0}), 8u);
  EXPECT_LE(CallsFor({1, 1}, {false, 1u << 30, 1u << 30, 0}), wire::kCallsMax);
  // A value takes 10 ms to draw, then 100 ms: 16 calls in any case.
  EXPECT_EQ(CallsFor({1e3, 1e3}, {false, 4096, 4096, 10e6}), 80u);
  EXPECT_EQ(CallsFor({1e3, 1e3}, {false, 4096, 4096, 100e6}), 16u);
}

// Candidates of one problem share values only if their blocks have few different lengths.
TEST(CallsFor, OnADeviceItIsAPowerOfTwoOrOneAndAHalfTimesThat) {
  EXPECT_EQ(CallsFor({10e3, 10e3}, OnDevice()), 96u);
  EXPECT_EQ(CallsFor({15e3, 15e3}, OnDevice()), 64u);
}

// Blocks were one call from 1 ms on. A kernel of the same time as the reference's, 2.7 ms, was 3%
// slower there: by what its first launch in a block took.
TEST(CallsFor, OnADeviceAFewCallsFollowTheFirst) {
  EXPECT_EQ(CallsFor({1e6, 1e6}, OnDevice()), 4u);
  EXPECT_EQ(CallsFor({2.5e6, 2.5e6}, OnDevice()), 3u);
  EXPECT_EQ(CallsFor({6e6, 6e6}, OnDevice()), 1u);
  EXPECT_EQ(CallsFor({1e6, 1e6}, {true, 2, 4096, 0}), 1u);
}

// All blocks of a pair have values of their own, which lie on the device together.
TEST(CallsFor, OnADeviceThePoolHoldsThePairsBlocks) {
  EXPECT_EQ(CallsFor({1e3, 1e3}, {true, 4096, 1024, 0}), 96u);
  EXPECT_EQ(CallsFor({1e3, 1e3}, {true, 4096, 64, 0}), 48u);
}

TEST(LengthOf, ANinthOfTheSlotsHoldsNoCall) {
  const BlockLength length = LengthOf(80, OnCpu());
  EXPECT_EQ(length.calls, 80u);
  EXPECT_EQ(length.slots, 91u);
  EXPECT_EQ(length.SlotsFor(80), 91u);
  EXPECT_EQ(length.SlotsFor(1), 12u);
  EXPECT_EQ(LengthOf(80, {false, 85, 4096, 0}).slots, 85u);
  EXPECT_EQ(LengthOf(1, OnCpu()).slots, 2u);
}

TEST(LongerThan, ShortBlocksGetLonger) {
  const BlockLength present = LengthOf(10, OnCpu());
  const auto longer = LongerThan(present, {50e3, 100e3}, OnCpu());
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->calls, 50u);
  EXPECT_EQ(longer->slots, 57u);
}

TEST(LongerThan, BlocksOfHalfTheLengthAreLongEnough) {
  EXPECT_FALSE(LongerThan(LengthOf(10, OnCpu()), {126e3, 200e3}, OnCpu()));
  EXPECT_TRUE(LongerThan(LengthOf(10, OnCpu()), {124e3, 200e3}, OnCpu()));
}

TEST(LongerThan, LessThanTwiceTheCallsIsNotWorthIt) {
  EXPECT_FALSE(LongerThan(LengthOf(10, OnCpu()), {50e3, 50e3}, {false, 18, 4096, 0}));
}

// A warm host keeps the views of its slots.
TEST(SlotsToPrepare, OnADeviceNeverFewerThanBefore) {
  EXPECT_EQ(SlotsToPrepare(20, 100, OnCpu()), 20u);
  EXPECT_EQ(SlotsToPrepare(20, 2, OnDevice()), 32u);
  EXPECT_EQ(SlotsToPrepare(20, 100, OnDevice()), 128u);
  EXPECT_EQ(SlotsToPrepare(20, 100, {true, 110, 4096, 0}), 110u);
}

}  // namespace
}  // namespace assay
