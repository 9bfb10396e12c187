#include "score/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "score/score_testing.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Selection Selected(const std::vector<Verdict>& verdicts, const SelectionRules& rules = {}) {
  auto selection = SelectVerdicts(verdicts, rules);
  EXPECT_TRUE(selection) << selection.error().message;
  return selection ? *selection : Selection{};
}

std::string ErrorOf(const std::vector<Verdict>& verdicts, const SelectionRules& rules = {}) {
  const auto selection = SelectVerdicts(verdicts, rules);
  if (selection) return "no error";
  EXPECT_EQ(selection.error().kind, ErrorKind::kUsage);
  return selection.error().message;
}

std::vector<std::string> NamesOf(const Selection& selection) {
  std::vector<std::string> names;
  for (const ProblemAttempts& problem : selection.problems) names.push_back(problem.problem.name);
  return names;
}

TEST(Selection, ProblemsStandByLevelAndName) {
  std::vector<Verdict> verdicts = FiveProblems();
  verdicts[0].problem.level = 2;
  EXPECT_THAT(NamesOf(Selected(verdicts)),
              ElementsAre("attention", "conv2d", "gelu", "matmul", "softmax"));
}

TEST(Selection, ASuiteGivesNamesOrderAndMechanism) {
  SelectionRules rules;
  rules.asked = {{"matmul", 1, "reuse"}, {"sort", 1, "order"}, {"gelu", 1, "fusion"}};
  const Selection selection = Selected(FiveProblems(), rules);
  EXPECT_THAT(NamesOf(selection), ElementsAre("matmul", "sort", "gelu"));
  EXPECT_EQ(selection.asked, 3);
  EXPECT_EQ(selection.problems[0].problem.mechanism, "reuse");
  EXPECT_THAT(selection.problems[1].attempts, IsEmpty());
  EXPECT_EQ(selection.set_aside.not_asked, 3);
  EXPECT_THAT(selection.set_aside.problems_not_asked,
              ElementsAre("attention", "conv2d", "softmax"));
}

TEST(Selection, TheLatestVerdictOnACandidateCounts) {
  std::vector<Verdict> verdicts{Judged("gelu", Outcome::kFaster, 3),
                                Judged("gelu", Outcome::kSlower, 0.5),
                                Judged("gelu", Outcome::kTie, 1)};
  for (Verdict& verdict : verdicts) verdict.candidate.hash = "same";
  verdicts[0].created = "2026-11-21T07:00:00.5Z";
  verdicts[1].created = "2026-11-21T07:00:00Z";
  verdicts[2].created = "2026-11-20T23:00:00Z";
  const Selection selection = Selected(verdicts);
  ASSERT_EQ(selection.problems.at(0).attempts.size(), 1u);
  EXPECT_EQ(selection.problems[0].attempts[0].speedup, 3);
  EXPECT_EQ(selection.set_aside.judged_again, 2);
}

TEST(Selection, AVerdictReadTwiceCountsOnce) {
  std::vector<Verdict> verdicts = FiveProblems();
  verdicts.push_back(verdicts[3]);
  const Selection selection = Selected(verdicts);
  EXPECT_EQ(selection.set_aside.judged_again, 1);
  EXPECT_EQ(selection.problems[1].attempts.size(), 1u);
}

TEST(Selection, OtherSettingsAreNoRepeat) {
  std::vector<Verdict> verdicts{Judged("gelu", Outcome::kFaster, 3),
                                Judged("gelu", Outcome::kFaster, 2)};
  for (Verdict& verdict : verdicts) verdict.candidate.hash = "same";
  verdicts[1].problem.set = {{"ROWS", "64"}};
  SelectionRules rules;
  rules.any_size = true;
  EXPECT_EQ(Selected(verdicts, rules).problems.at(0).attempts.size(), 2u);
}

TEST(Selection, MachinesAreNotMixedUnnoticed) {
  for (int change = 0; change < 3; ++change) {
    std::vector<Verdict> verdicts = FiveProblems();
    Machine& machine = verdicts[2].machine;
    if (change == 0) machine.cpu = "Intel Xeon";
    if (change == 1) machine.cores = 16;
    if (change == 2) machine.threads = 2;
    EXPECT_THAT(ErrorOf(verdicts), AllOf(HasSubstr("2 machines"), HasSubstr("4 on AMD EPYC 7B13"),
                                         HasSubstr("\n  1 on "), HasSubstr("--any-machine")));
    SelectionRules rules;
    rules.any_machine = true;
    const Selection selection = Selected(verdicts, rules);
    ASSERT_EQ(selection.machines.size(), 2u);
    EXPECT_EQ(selection.machines[0].verdicts, 4);
  }
}

TEST(Selection, SizesAndVersionsOfAProblemAreNotMixedUnnoticed) {
  std::vector<Verdict> verdicts{Judged("gelu", Outcome::kFaster, 3),
                                Judged("gelu", Outcome::kFaster, 2),
                                Judged("matmul", Outcome::kFaster, 2)};
  verdicts[0].problem.size = "small";
  verdicts[0].problem.set = {{"ROWS", "64"}};
  EXPECT_THAT(ErrorOf(verdicts), AllOf(HasSubstr("gelu: small (ROWS=64); the file's own constants"),
                                       HasSubstr("--any-size"), Not(HasSubstr("matmul"))));
  verdicts[1].problem = verdicts[0].problem;
  EXPECT_EQ(ErrorOf(verdicts), "no error");
  verdicts[1].problem.hash = std::string(64, 'b');
  EXPECT_THAT(ErrorOf(verdicts), HasSubstr("two problem files, SHA-256 aaaaaaaaaaaa and bbbb"));
  SelectionRules rules;
  rules.any_size = true;
  EXPECT_EQ(ErrorOf(verdicts, rules), "no error");
}

TEST(Selection, GradientsAreOtherWork) {
  std::vector<Verdict> verdicts = FiveProblems();
  for (Verdict& verdict : verdicts) {
    verdict.problem.name += "_gradients";
    verdict.problem.signature = {"input x float32[8]", "input gradient_1 float32[8]"};
  }
  EXPECT_EQ(ErrorOf(verdicts), "no error");
  verdicts[2].problem.name = "matmul";
  EXPECT_THAT(ErrorOf(verdicts), AllOf(HasSubstr("4 of the verdicts are of problems with grad"),
                                       HasSubstr("1 without"), HasSubstr("--suite")));
}

TEST(Selection, BaselinesAreNotMixed) {
  std::vector<Verdict> verdicts = FiveProblems();
  verdicts[2].speed->baselines["compiled"] = verdicts[2].speed->baselines["eager"];
  verdicts[2].speed->headline = "compiled";
  EXPECT_THAT(ErrorOf(verdicts), AllOf(HasSubstr("1 of compiled"), HasSubstr("2 of eager")));
  SelectionRules rules;
  rules.baseline = "eager";
  EXPECT_EQ(Selected(verdicts, rules).baseline, "eager");
  rules.baseline = "compiled";
  EXPECT_THAT(ErrorOf(verdicts, rules), HasSubstr("was not measured against 'compiled'"));
}

TEST(Selection, VerdictsAgainstAnotherCandidateAreSetAside) {
  std::vector<Verdict> verdicts = FiveProblems();
  verdicts[3].speed->headline = "against";
  verdicts[3].speed->baselines = {{"against", verdicts[2].speed->baselines["eager"]}};
  const Selection selection = Selected(verdicts);
  EXPECT_EQ(selection.set_aside.against, 1);
  EXPECT_EQ(selection.asked, 4);
}

TEST(Selection, TheNumberAskedForIsNotLessThanTheNumberJudged) {
  SelectionRules rules;
  rules.asked_count = 4;
  EXPECT_THAT(ErrorOf(FiveProblems(), rules), HasSubstr("5 problems, more than the 4"));
  rules.asked_count = 8;
  EXPECT_EQ(Selected(FiveProblems(), rules).asked, 8);
}

TEST(Selection, NothingLeftIsAnError) {
  EXPECT_THAT(ErrorOf({}), HasSubstr("assay judge"));
  SelectionRules rules;
  rules.asked = {{"sort", 1, ""}};
  EXPECT_THAT(ErrorOf(FiveProblems(), rules),
              HasSubstr("there are verdicts of: attention, conv2d"));
}

}  // namespace
}  // namespace assay
