#include "report/score_report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/text.h"
#include "score/score_testing.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr CardStyle kAscii{.colour = false, .unicode = false, .width = 80};

Score Scored(const std::vector<Verdict>& verdicts, const SelectionRules& selection = {},
             const ScoreRules& rules = {}) {
  return ComputeScore(SelectVerdicts(verdicts, selection).value(), rules);
}

TEST(ScoreReport, FiveProblems) {
  EXPECT_EQ(RenderScore(Scored(FiveProblems()), kAscii), &R"(
+- score / 5 problems ----------------------------------------- against eager -+
|  correct      60%: 3 of 5 problems, 95% interval 23% to 88%                  |
|  mean speedup 1.32x over the 3 solved; 1.27x over all 5, where a problem     |
|               without a faster attempt counts as 1x (geometric means)        |
+- fast_p: correct, and more than p times as fast -----------------------------+
|       p   plain         95% interval      certified     95% interval         |
|       0    60%      3    23% to  88%       60%      3    23% to  88%         |
|     0.5    60%      3    23% to  88%       60%      3    23% to  88%         |
|     0.8    40%      2    12% to  77%       40%      2    12% to  77%         |
|       1    40%      2    12% to  77%       40%      2    12% to  77%         |
|     1.5    20%      1     4% to  62%       20%      1     4% to  62%         |
|       2    20%      1     4% to  62%       20%      1     4% to  62%         |
|       4     0%      0     0% to  43%        0%      0     0% to  43%         |
|  plain: the median ratio is over p. certified: gate 2 decides that it is;    |
|  by luck it does so in less than one of a hundred verdicts.                  |
+- fast_p over p --------------------------------------------------------------+
|   100% +                                                                     |
|        |                                                                     |
|    80% +                                                                     |
|        |                                                                     |
|    60% +#######################.                                             |
|        |#######################.                                             |
|    40% +#####################################..                              |
|        |#####################################..                              |
|    20% +####################################################..               |
|        |####################################################..               |
|     0% ++---------------+---------------+---------------+---------------+ p  |
|       0.25             0.5              1               2               4    |
|         # certified   . plain alone                                          |
+- funnel: problems by how far their best attempt came ------------------------+
|                             asked  judged   built     ran correct  faster    |
|  all                            5       5       4       4       3       2    |
+- outcomes of candidates -----------------------------------------------------+
|                                       all                                    |
|  build_failed                           1                                    |
|  wrong: other values                    1                                    |
|  slower                                 1                                    |
|  faster                                 2                                    |
+------------------------------------------------------------------------------+
|  machine      AMD EPYC 7B13, 2 cores, 1 thread a side, PyTorch unknown: 5    |
|               verdicts                                                       |
+------------------------------------------------------------------------------+
)"[1]);
}

TEST(ScoreReport, SeveralAttemptsShowWhatKOfThemAreWorth) {
  const std::vector<Verdict> verdicts{
      Judged("gelu", Outcome::kFaster, 2), Judged("gelu", Outcome::kWrong),
      Judged("matmul", Outcome::kSlower, 0.5), Judged("matmul", Outcome::kFaster, 4)};
  const std::string text = RenderScore(Scored(verdicts), kAscii);
  EXPECT_THAT(text, HasSubstr("4 at 2 problems; the best attempt at a problem counts"));
  EXPECT_THAT(text, HasSubstr("pass@k                  75%"));
  EXPECT_THAT(text, HasSubstr("best@k                1.62x"));
  EXPECT_THAT(text, HasSubstr("fast_2@k          25% / 25%"));
  EXPECT_THAT(text, HasSubstr("left out: k = 5, 10; gelu has 2 attempts"));
}

TEST(ScoreReport, SaysHowManyProblemsAreOutOfReach) {
  std::vector<Verdict> verdicts;
  for (int problem = 0; problem < 20; ++problem)
    for (int attempt = 0; attempt < 20; ++attempt)
      verdicts.push_back(Judged("p" + std::to_string(problem),
                                problem < 10 && attempt < 8 ? Outcome::kFaster : Outcome::kWrong,
                                problem < 10 && attempt < 8 ? 2 : 0));
  EXPECT_THAT(RenderScore(Scored(verdicts), kAscii),
              AllOf(HasSubstr("attempts, fitted: 50% of problems, between"),
                    HasSubstr("29% and 71%; 20% of attempts are correct")));
}

TEST(ScoreReport, CountsGainsOfOneSourceOverItself) {
  std::vector<Verdict> verdicts = {Judged("softmax", Outcome::kFaster, 2),
                                   Judged("softmax", Outcome::kFaster, 3)};
  for (Verdict& verdict : verdicts) {
    BaselineResult& eager = verdict.speed->baselines["eager"];
    eager.ci_low = 0.9 * eager.speedup;
    eager.ci_high = 1.1 * eager.speedup;
    verdict.candidate.hash = "one";
  }
  EXPECT_THAT(RenderScore(Scored(verdicts), kAscii),
              HasSubstr("judged again 1 pair of the same source; 1 would pass for a gain"));
}

TEST(ScoreReport, ManyKTakeSeveralBlocks) {
  std::vector<Verdict> verdicts;
  for (int i = 0; i < 9; ++i) verdicts.push_back(Judged("gelu", Outcome::kFaster, 1 + i));
  ScoreRules rules;
  rules.draws = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::string text = RenderScore(Scored(verdicts, {}, rules), kAscii);
  for (int k = 1; k <= 9; ++k) EXPECT_THAT(text, HasSubstr(fmt::format("k = {}", k)));
}

TEST(ScoreReport, WhatWasNotJudgedIsListed) {
  SelectionRules rules;
  rules.asked = {{"gelu", 1, "fusion"}, {"sort", 1, "order"}, {"top_k", 2, "order"}};
  const std::string text = RenderScore(Scored(FiveProblems(), rules), kAscii);
  EXPECT_THAT(text, HasSubstr("not judged   sort, top_k; counted as not correct"));
  EXPECT_THAT(text, HasSubstr("  level 2 "));
  EXPECT_THAT(text, HasSubstr("  fusion "));
  EXPECT_THAT(text, HasSubstr("  order "));
  SelectionRules counted;
  counted.asked_count = 8;
  EXPECT_THAT(RenderScore(Scored(FiveProblems(), counted), kAscii),
              HasSubstr("not judged   3; counted as not correct"));
}

TEST(ScoreReport, WhatCountsInPartIsSaid) {
  std::vector<Verdict> verdicts = FiveProblems();
  EXPECT_THAT(ApartSentences(Scored(verdicts)), IsEmpty());
  verdicts.push_back(Judged("gelu", Outcome::kWrong));
  verdicts.back().correctness->right_with_weights = WeightsKind::kConstant;
  EXPECT_THAT(ApartSentences(Scored(verdicts)),
              ElementsAre("1 candidate is right only with weights prepared once, for problems that "
                          "others solve: pass@k counts it."));
  verdicts.pop_back();
  verdicts.push_back(Judged("lstm", Outcome::kWrong));
  verdicts.back().correctness->right_with_weights = WeightsKind::kConstant;
  verdicts[0].correctness->mistake = Mistake::kHugeValues;
  verdicts[1].correctness->differs_on_special_values = "wrong on NaN or infinity";
  EXPECT_THAT(
      ApartSentences(Scored(verdicts)),
      ElementsAre("1 of these is right only with weights prepared once: plain counts it, as "
                  "KernelBench does, certified never. It was never timed, so that p = 0 "
                  "alone counts it.",
                  "Not correct: 1 candidate is right on ordinary values, and wrong on "
                  "unusual ones alone.",
                  "Correct all the same: 1 candidate differs from the reference where "
                  "inputs are NaN or infinite."));
  const std::string text = RenderScore(Scored(verdicts), kAscii);
  EXPECT_THAT(text, HasSubstr("1 of these is right only with weights prepared once"));
  EXPECT_THAT(text, HasSubstr("wrong: huge values alone"));
}

TEST(ScoreReport, ManyGroupsTakeSeveralBlocks) {
  SelectionRules rules;
  for (const Verdict& verdict : FiveProblems())
    rules.asked.push_back({verdict.problem.name, 1, "mechanism of " + verdict.problem.name});
  const std::string text = RenderScore(Scored(FiveProblems(), rules), kAscii);
  EXPECT_THAT(text, HasSubstr("outcomes of candidates, by mechanism"));
  EXPECT_THAT(text, HasSubstr("         all"));
}

TEST(ScoreReport, NoSpeedNeedsNoChart) {
  const std::string text = RenderScore(Scored({Judged("gelu", Outcome::kWrong)}), kAscii);
  EXPECT_THAT(text, HasSubstr("no speed measured"));
  EXPECT_THAT(text, Not(HasSubstr("fast_p over p")));
}

TEST(ScoreReport, EveryLineFitsAndForeignNamesDoNoHarm) {
  std::vector<Verdict> verdicts = FiveProblems();
  for (Verdict& verdict : verdicts) {
    verdict.machine.cpu = "\x1b[31m" + std::string(200, 'x');
    verdict.problem.name += "\x1b]0;\n" + std::string(90, 'y');
  }
  verdicts.push_back(verdicts[3]);
  verdicts.back().id = "another";
  verdicts.back().candidate.hash = "another";
  SelectionRules rules;
  rules.asked_count = 10000;
  for (const int width : {60, 80, 100}) {
    for (const bool unicode : {false, true}) {
      const std::string text = RenderScore(Scored(verdicts, rules),
                                           {.colour = false, .unicode = unicode, .width = width});
      EXPECT_THAT(text, Not(HasSubstr("\x1b")));
      for (size_t at = 0; at < text.size();) {
        const size_t end = text.find('\n', at);
        ASSERT_NE(end, std::string::npos);
        EXPECT_EQ(DisplayWidth(text.substr(at, end - at)), width) << text.substr(at, end - at);
        at = end + 1;
      }
    }
  }
}

TEST(ScoreReport, MeaningDoesNotRestOnColour) {
  const Score score = Scored(FiveProblems());
  std::string plain;
  const std::string painted = RenderScore(score, {.colour = true, .unicode = false, .width = 80});
  for (size_t at = 0; at < painted.size(); ++at) {
    if (painted[at] == '\x1b')
      at = painted.find('m', at);
    else
      plain += painted[at];
  }
  EXPECT_EQ(plain, RenderScore(score, kAscii));
}

}  // namespace
}  // namespace assay
