#include "doctor/quiet.h"

#include <gtest/gtest.h>

#include <vector>

#include "doctor/doctor.h"

namespace assay {
namespace {

constexpr const char* kStat =
    "cpu  500 0 0 9000 0 0 0 0 0 0\n"
    "cpu0 100 10 20 3000 5 1 2 7 50 0\n"
    "cpu1 200 0 0 3000 0 0 0 0 0 0\n"
    "cpu10 1000 0 0 3000 0 0 0 0 0 0\n"
    "intr 1 2 3\n";

TEST(Quiet, CountsTheBusyTimeOfTheCpusThatAreAskedFor) {
  // Guests' time, the ninth number, is part of the first.
  EXPECT_DOUBLE_EQ(BusySeconds(kStat, std::vector{0}, 100), 1.4);
  EXPECT_DOUBLE_EQ(BusySeconds(kStat, std::vector{0, 1}, 100), 3.4);
  EXPECT_DOUBLE_EQ(BusySeconds("", std::vector{0}, 100), 0);
}

TEST(Quiet, WhatThisProcessUsedIsNotOthers) {
  const BusyTimes begin{100, 10, 0}, end{103, 11.5, 2'000'000'000};
  EXPECT_DOUBLE_EQ(CoresOfOthers(begin, end), 0.75);
  EXPECT_DOUBLE_EQ(CoresOfOthers(begin, {100.5, 11.5, 2'000'000'000}), 0);
  EXPECT_DOUBLE_EQ(CoresOfOthers(begin, begin), 0);
  const std::vector<int> cpus{0};
  EXPECT_GE(ReadBusyTimes(cpus).own_s, 0);
}

TEST(Quiet, CeilingsOfABusyMachineDoNotStand) {
  EXPECT_TRUE(CeilingsStand({0.05, 0.9}, 2));
  EXPECT_FALSE(CeilingsStand({0.2, 0.9}, 2));
  EXPECT_TRUE(CeilingsStand({0.2, 0.9}, 16));
  EXPECT_FALSE(CeilingsStand({0, 1.52}, 16));
  EXPECT_TRUE(CeilingsStand({0, 0}, 1));
}

TEST(Profile, IsOldAfterHalfAYear) {
  EXPECT_FALSE(IsOld("2026-05-01T00:00:00Z", "2026-11-30T00:00:00Z"));
  EXPECT_TRUE(IsOld("2026-04-30T00:00:00Z", "2026-11-01T00:00:00Z"));
  EXPECT_TRUE(IsOld("", "2026-11-01T00:00:00Z"));
}

TEST(Quiet, MeasuresAgainUntilTheMachineIsQuietThreeTimesAtMost) {
  const auto tries_of = [](const std::vector<double>& busy) {
    int tries = 0;
    const auto signs = MeasureUntilQuiet(2, [&]() -> Result<CeilingSigns> {
      return CeilingSigns{busy[static_cast<size_t>(tries++)], 1};
    });
    return std::pair(tries, CeilingsStand(*signs, 2));
  };
  EXPECT_EQ(tries_of({0}), std::pair(1, true));
  EXPECT_EQ(tries_of({1, 0}), std::pair(2, true));
  EXPECT_EQ(tries_of({1, 1, 0}), std::pair(3, true));
  EXPECT_EQ(tries_of({1, 1, 1, 0}), std::pair(3, false));
  const auto failed = MeasureUntilQuiet(
      2, []() -> Result<CeilingSigns> { return Fail(ErrorKind::kInterrupted, "interrupted"); });
  EXPECT_FALSE(failed);
}

}  // namespace
}  // namespace assay
