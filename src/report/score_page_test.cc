#include "report/score_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "score/score_testing.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Page(const std::vector<Verdict>& verdicts, const SelectionRules& rules = {},
                 const std::string& subject = "runs/mine") {
  return RenderScorePage(ComputeScore(SelectVerdicts(verdicts, rules).value(), {}), subject);
}

TEST(ScorePage, HasTheNumbersOfTheScore) {
  std::vector<Verdict> verdicts = FiveProblems();
  verdicts[0].correctness->hint = "all zeros";
  verdicts[0].correctness->mistake = Mistake::kOneValue;
  verdicts[4].created = "2026-11-21T09:30:00Z";
  BaselineResult& eager = verdicts[3].speed->baselines.at("eager");
  eager.ci_low = 2.4;
  eager.ci_high = 2.6;
  eager.candidate_time_ns = 12300;
  const std::string page = Page(verdicts);
  EXPECT_TRUE(IsScorePage(page));
  EXPECT_THAT(page, AllOf(HasSubstr("<h1>Score of runs/mine</h1>"),
                          HasSubstr("2026-11-21 07:00 to 09:30 UTC"),
                          HasSubstr("<span>correct</span><b>60%</b><small>3 of 5; 95% interval 23% "
                                    "to 88%</small>"),
                          HasSubstr("<span>faster, certified</span><b>40%</b>"), HasSubstr("<svg "),
                          HasSubstr("var(--certified)")));
  EXPECT_THAT(page, AllOf(HasSubstr(">2.50x [2.40x, 2.60x]</td>"), HasSubstr(">12.3 us</td>"),
                          HasSubstr("wrong: one value everywhere</span><br>all zeros</td>"),
                          HasSubstr(">build_failed</th>")));
}

TEST(ScorePage, StandsAlone) {
  const std::string page = Page(FiveProblems());
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* reference : {"<script", "<link", "<img", "href=", "src=\"", "@import", "url("})
    EXPECT_THAT(page, Not(HasSubstr(reference)));
}

TEST(ScorePage, WhatOthersWroteIsText) {
  const std::string evil = "<script>alert(1)</script>\"'&\x1b[31m";
  std::vector<Verdict> verdicts = FiveProblems();
  SelectionRules rules;
  for (Verdict& verdict : verdicts) {
    verdict.problem.name += evil;
    verdict.message = evil;
    verdict.machine.cpu = evil;
    verdict.toolchain["pytorch"] = evil;
    if (verdict.correctness) verdict.correctness->hint = evil;
    if (verdict.speed) {
      verdict.speed->headline = evil;
      verdict.speed->baselines[evil] = verdict.speed->baselines.at("eager");
    }
    rules.asked.push_back({verdict.problem.name, 1, "fusion" + evil});
  }
  verdicts[4].outcome = Outcome::kFoul;
  verdicts[4].foul = {evil, evil};
  rules.asked.push_back({"unjudged" + evil, 2, evil});
  const std::string page = Page(verdicts, rules, evil);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, Not(HasSubstr("\"'&\x1b")));
  for (const char* place : {"<h1>Score of ", "softmax", "unjudged", "fusion", "foul: ", "<br>"})
    EXPECT_THAT(
        page, HasSubstr(std::string(place) + "&lt;script&gt;alert(1)&lt;/script&gt;&quot;'&amp;?"))
        << place;
}

TEST(ScorePage, WhatWasNotTimedOrJudgedIsSaid) {
  SelectionRules rules;
  rules.asked = {{"gelu", 1, ""}, {"sort", 2, ""}};
  const std::string page = Page({Judged("gelu", Outcome::kWrong)}, rules);
  EXPECT_THAT(page, AllOf(HasSubstr("no speed was measured"), Not(HasSubstr("<svg ")),
                          HasSubstr("<span class=\"faint\">not judged</span>"),
                          HasSubstr("Outcomes of candidates, by level")));
  SelectionRules counted;
  counted.asked_count = 9;
  EXPECT_THAT(Page(FiveProblems(), counted), HasSubstr("And 4 problems without a verdict"));
}

TEST(ScorePage, OthersPagesAreNotOurs) {
  EXPECT_FALSE(IsScorePage(""));
  EXPECT_FALSE(IsScorePage("<html><head><title>mine</title></head></html>"));
}

}  // namespace
}  // namespace assay
