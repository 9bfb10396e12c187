#include "search/outcome_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "search/search_report.h"
#include "search/search_testing.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Step StepOf(const std::string& key) {
  Step step;
  step.key = key;
  step.lineage = {{}, "mutate", "ROWS=" + key};
  return step;
}

StepResult ResultOf(double ratio) {
  return {std::nullopt, VerdictWith(ratio, "0123456789ab"), std::nullopt, ""};
}

Step ConfirmationOf(const std::string& key) {
  Step step = StepOf("confirm/" + key);
  step.lineage.parents = {key};
  return step;
}

class Outcomes : public ::testing::Test {
 protected:
  Outcomes() {
    table_.Judged(StepOf("a"), ResultOf(1.5));
    table_.Judged(StepOf("b"), ResultOf(0));
    table_.Judged(StepOf("c"), ResultOf(2.5));
    table_.Judged(StepOf("d"), ResultOf(0.8));
    StepResult duplicate = ResultOf(2.5);
    duplicate.duplicate_of = "c";
    table_.Judged(StepOf("e"), duplicate);
    table_.Judged(StepOf("f"), {std::nullopt, std::nullopt, Error{}, ""});
  }
  OutcomeTable table_;
};

TEST_F(Outcomes, TheCurveHasTheBestSoFar) {
  std::vector<double> ratios;
  for (const CurvePoint& point : table_.curve()) ratios.push_back(point.ratio);
  EXPECT_THAT(ratios, ElementsAre(1.5, 1.5, 2.5, 2.5, 2.5));  // a duplicate is no evaluation
  EXPECT_EQ(table_.best()->key, "c");
  EXPECT_EQ(table_.counts().at("duplicate"), 1);
  EXPECT_EQ(table_.counts().at("error"), 1);
  EXPECT_EQ(table_.counts().at("faster"), 2);
}

TEST_F(Outcomes, FinalistsAreJudgedUntilOneIsConfirmed) {
  EXPECT_THAT(table_.Finalists(1), ElementsAre("c"));
  EXPECT_THAT(table_.Finalists(2), ElementsAre("c", "a"));
  table_.Confirmed(ConfirmationOf("c"), ResultOf(0.9));
  EXPECT_EQ(table_.confirmed(), nullptr);
  EXPECT_THAT(table_.Finalists(1), ElementsAre("a"));  // the next one
  table_.Confirmed(ConfirmationOf("a"), ResultOf(1.2));
  EXPECT_THAT(table_.Finalists(1), IsEmpty());
  ASSERT_NE(table_.confirmed(), nullptr);
  EXPECT_EQ(table_.confirmed()->lineage.parents.front(), "a");
}

TEST_F(Outcomes, TheResultIsTheBestSecondLook) {
  table_.Confirmed(ConfirmationOf("c"), ResultOf(1.1));
  table_.Confirmed(ConfirmationOf("a"), ResultOf(1.3));
  const BudgetLedger ledger({0, 0, 10, 0});
  const std::string text = RenderEnd(table_, ledger);
  EXPECT_THAT(text, HasSubstr("confirmed: a, 1.30x (1.27x to 1.33x)"));
  EXPECT_THAT(text, HasSubstr("ROWS=confirm/a"));
  EXPECT_THAT(text, HasSubstr("outcomes:  duplicate 1, error 1, faster 2, slower 1, wrong 1"));
  EXPECT_THAT(text, HasSubstr("          3     2.50x  ####"));
  EXPECT_THAT(EndEvent(table_, ledger, true), HasSubstr("\"confirmed\":{\"key\":\"a\""));
}

TEST_F(Outcomes, AnIdeaDoesNotCommandTheTerminal) {
  Step hostile = ConfirmationOf("a");
  hostile.lineage.note = "\x1b[2Jtiles";
  table_.Confirmed(hostile, ResultOf(1.2));
  EXPECT_THAT(RenderEnd(table_, BudgetLedger({})), HasSubstr("?[2Jtiles"));
}

TEST(Answers, AreCounted) {
  OutcomeTable table;
  for (const bool answered : {true, false, false})
    table.Asked(
        {answered ? std::optional(Answer()) : std::nullopt, std::nullopt, std::nullopt, ""});
  EXPECT_EQ(table.unanswered_in_a_row(), 2u);
  EXPECT_THAT(RenderEnd(table, BudgetLedger({})),
              HasSubstr("answers:   1; 0 candidates judged; 2 questions without an answer"));
  EXPECT_THAT(EndEvent(table, BudgetLedger({}), false),
              HasSubstr("\"answers\":1,\"unanswered\":2"));
}

TEST_F(Outcomes, TheBoundIsWhatTheBestIsSureOf) {
  EXPECT_EQ(table_.Bound(), 2.45);  // 0.98 times 2.5
  EXPECT_EQ(OutcomeTable().Bound(), 0);
  // A lucky ratio with a wide interval is none.
  StepResult lucky = ResultOf(9);
  lucky.verdict->speed->baselines.begin()->second.ci_low = 1.2;
  table_.Judged(StepOf("g"), lucky);
  EXPECT_EQ(table_.Bound(), 2.45);
}

TEST_F(Outcomes, WhatCouldNotBeTheBestIsLookedAtLast) {
  StepResult raced = ResultOf(2.2);
  raced.verdict->outcome = Outcome::kNotFaster;
  table_.Judged(StepOf("g"), raced);
  EXPECT_THAT(table_.Finalists(3), ElementsAre("c", "a", "g"));
}

TEST(Ratios, HaveAnIntervalWhereThereIsOne) {
  EXPECT_EQ(RatioText({1.5, 1.4, 1.6}), "1.50x (1.40x to 1.60x)");
  EXPECT_EQ(RatioText({1.5, NAN, INFINITY}), "1.50x");
}

TEST(NoOutcomes, AnEmptySearchIsSaidToBeOne) {
  const OutcomeTable table;
  EXPECT_THAT(RenderEnd(table, BudgetLedger({})), HasSubstr("no candidate was judged"));
  EXPECT_EQ(table.best(), nullptr);
  EXPECT_THAT(table.Finalists(2), IsEmpty());
}

TEST(NoOutcomes, WhatTheFirstLookLeftOpenIsLookedAtAgain) {
  OutcomeTable table;
  StepResult unsettled = ResultOf(1.4);
  unsettled.verdict->outcome = Outcome::kUnsettled;
  table.Judged(StepOf("a"), unsettled);
  EXPECT_THAT(table.Finalists(2), ElementsAre("a"));
  table.Judged(StepOf("b"), ResultOf(1.1));
  EXPECT_THAT(table.Finalists(2), ElementsAre("b", "a"));
}

}  // namespace
}  // namespace assay
