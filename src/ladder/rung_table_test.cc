#include "ladder/rung_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ladder/ladder_chart.h"
#include "ladder/ladder_testing.h"

namespace assay {
namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

RungResult ResultOf(const Rung& rung, double speedup, Outcome outcome = Outcome::kSlower) {
  return {rung, TestRow(rung.file, speedup, outcome), false};
}

TEST(RungTable, FiguresStandUnderTheirHeads) {
  const Ladder ladder = TestLadder();
  const RungTable table(ladder, ladder.rungs, {false, true, 80});
  EXPECT_EQ(table.Head(ladder.sizes[0], "abc1234"),
            "steps: Steps: one after another\n"
            "ROWS = 8, COLUMNS = 4; judge abc1234\n\n"
            "rung           time              % of eager   predicted  % of peak  outcome\n");
  EXPECT_EQ(table.Row(ResultOf(ladder.rungs[0], 0.5)),
            "01_naive    2.00 ms       50.0 [45.0, 55.0]          10       25.0  slower\n"
            "    a loop\n");
}

TEST(RungTable, SaysWhatLimitsARungOrIsWrongWithIt) {
  Ladder ladder = TestLadder();
  ladder.also_against = {"compiled"};
  const RungTable table(ladder, ladder.rungs, {false, true, 80});
  RungResult result = ResultOf(ladder.rungs[0], 0.5);
  result.row->verdict.bottleneck = "registers are spilled";
  result.recorded = true;
  EXPECT_THAT(table.Row(result), HasSubstr("slower (recorded)\n"));
  EXPECT_THAT(table.Row(result), EndsWith("    registers are spilled\n"));
  RungResult wrong = ResultOf(ladder.rungs[0], 0, Outcome::kWrong);
  wrong.row->verdict.message = "wrong at out[3]\x1b[2J";
  EXPECT_THAT(table.Row(wrong), EndsWith("wrong\n    a loop\n    wrong at out[3]?[2J\n"));
  EXPECT_THAT(table.Row({ladder.rungs[1], {}, false}), HasSubstr("not judged"));
}

TEST(RungTable, BarsShowLibraryPeakAndPrediction) {
  const Ladder ladder = TestLadder();
  const std::vector<RungResult> results{ResultOf(ladder.rungs[0], 0.5),
                                        ResultOf(ladder.rungs[1], 0, Outcome::kCrashed)};
  EXPECT_EQ(RenderRungBars(ladder, results, {false, false, 40}),
            "\n01_naive  #|######### 50.0%\n"
            "          ..... 25.0%\n"
            "          # of eager   . of the peak   | as predicted\n");
  EXPECT_EQ(RenderRungBars(ladder, {results[1]}, {false, false, 40}), "");
}

TEST(LadderChart, SaysInWordsWhatItShowsAndSuitsDarkPages) {
  Ladder ladder = TestLadder();
  ladder.title = "<Steps> & \"more\"";
  const std::vector<RungResult> results{ResultOf(ladder.rungs[0], 0.5),
                                        ResultOf(ladder.rungs[1], 0, Outcome::kCrashed)};
  const std::string svg = RenderLadderSvg(ladder, ladder.sizes[0], results);
  EXPECT_THAT(svg, HasSubstr("<title id=\"title\">&lt;Steps&gt; &amp; &quot;more&quot;</title>"));
  EXPECT_THAT(svg, HasSubstr("01_naive: 50.0% of eager, predicted 10%."));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(svg, HasSubstr(">50.0% / 25.0%</text>"));
  EXPECT_THAT(svg, HasSubstr(">crashed</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

// Marks of predictions lie anywhere between the axis and the right edge.
TEST(LadderChart, WhatARungLacksIsSaidWhereNoMarkCrossesIt) {
  const Ladder ladder = TestLadder();
  const std::vector<RungResult> results{{ladder.rungs[0], {}, false},
                                        ResultOf(ladder.rungs[1], 0, Outcome::kCrashed)};
  const std::string svg = RenderLadderSvg(ladder, ladder.sizes[0], results);
  for (const std::string text : {"not judged", "crashed"})
    EXPECT_THAT(svg, ContainsRegex("<text x=\"770.0\" [^>]*>" + text + "</text>"));
  EXPECT_THAT(svg, ContainsRegex("<text x=\"760.0\" [^>]*>120%</text>"));  // the right edge
}

// An interval that is not known, and a speed beyond every other.
TEST(LadderChart, OddNumbersBreakNothing) {
  const Ladder ladder = TestLadder();
  std::vector<RungResult> results{ResultOf(ladder.rungs[0], 123)};
  BaselineResult& result = results[0].row->verdict.speed->baselines["eager"];
  result.ci_low = result.ci_high = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = RenderLadderSvg(ladder, ladder.sizes[0], results);
  EXPECT_THAT(svg, HasSubstr("12300.0%"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf\"")));
}

}  // namespace
}  // namespace assay
