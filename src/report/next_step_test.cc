#include "report/next_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/sample_verdicts.h"

namespace assay {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A copy that was installed told a path of its own folder.
TEST(NextStep, AProblemOfAnInstalledSuiteHasItsName) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  verdict.problem.path = "/usr/lib/assay/problems/level1/softmax.py";
  EXPECT_THAT(JudgeCommand(verdict, "a.cpp", ""), StartsWith("assay judge softmax a.cpp"));
}

TEST(JudgeCommand, AsksTheSameQuestionAgain) {
  Verdict verdict = SampleVerdict(Outcome::kSlower);
  EXPECT_EQ(
      JudgeCommand(verdict, "a b.cpp", ""),
      "assay judge problems/level1/softmax.py 'a b.cpp' --set batch_size=512 --set 'dim=4096 * 2' "
      "--baseline eager,compiled");
  verdict = SampleVerdict(Outcome::kTie);
  EXPECT_EQ(JudgeCommand(verdict, "a.cpp", "--p 2"),
            "assay judge problems/level1/softmax.py a.cpp --size small --p 2");
  verdict.correctness->tolerance = "allclose:1e-4";
  verdict.correctness->required_class = "tf32";
  EXPECT_THAT(JudgeCommand(verdict, "a.cpp", ""),
              EndsWith(" --size small --tolerance allclose:1e-4 --precision tf32"));
}

TEST(JudgeCommand, AnotherCandidateIsNoBaseline) {
  Verdict verdict = SampleVerdict(Outcome::kTie);
  verdict.speed->baselines = {{"against", verdict.speed->baselines.at("eager")}};
  verdict.speed->headline = "against";
  verdict.speed->against.reset();
  EXPECT_THAT(JudgeCommand(verdict, "a.cpp", ""), Not(HasSubstr("against")));
  verdict.speed->against.emplace().path = "their b.cpp";
  EXPECT_THAT(JudgeCommand(verdict, "a.cpp", "--p 2"),
              EndsWith(" --size small --against 'their b.cpp' --p 2"));
  EXPECT_THAT(JudgeCommand(verdict, "a.cpp", "--against c.cpp"),
              EndsWith(" --size small --against c.cpp"));
}

TEST(NextStep, FasterAsksForWhatTheIntervalStillAllows) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);  // 2.48 to 2.53
  EXPECT_THAT(NextStepAfter(verdict).command, EndsWith(" --p 2"));
  verdict.speed->baselines["eager"].ci_low = 1.99;
  EXPECT_THAT(NextStepAfter(verdict).command, EndsWith(" --p 1.5"));
  verdict.speed->threshold = 1.5;
  EXPECT_THAT(NextStepAfter(verdict).command,
              HasSubstr("fused_next.cpp --size small --against kernels/softmax/fused.cpp"));
}

TEST(NextStep, PythonCandidatesAreNotJudgedAgainstEachOther) {
  Verdict verdict = SampleVerdict(Outcome::kTie);
  verdict.candidate.form = CandidateForm::kPython;
  verdict.candidate.path = "new.py";
  EXPECT_THAT(NextStepAfter(verdict).command, Not(HasSubstr("--against")));
  EXPECT_THAT(NextStepAfter(verdict).command, HasSubstr("new_next.py"));
}

TEST(NextStep, ExplainsWhatItCan) {
  Verdict verdict = SampleVerdict(Outcome::kWrong);
  EXPECT_THAT(NextStepAfter(verdict).command, HasSubstr("assay explain"));
  EXPECT_THAT(NextStepAfter(verdict, false).command, HasSubstr("assay judge")) << "not saved";
  verdict.candidate.form = CandidateForm::kPython;
  verdict.candidate.language = Language::kPython;
  EXPECT_THAT(NextStepAfter(verdict).command, HasSubstr("assay explain"));
  verdict.machine.gpu = "NVIDIA H100";
  EXPECT_THAT(NextStepAfter(verdict).command, HasSubstr("assay judge"));
}

TEST(NextStep, WithoutTheTimeForOnePairMoreTimeHelps) {
  Verdict verdict = SampleVerdict(Outcome::kUnsettled);
  verdict.speed.reset();
  EXPECT_THAT(NextStepAfter(verdict).command, HasSubstr("assay audit"));
  verdict.message = "its words may name --budget";
  EXPECT_THAT(NextStepAfter(verdict).command, HasSubstr("assay audit"));
  verdict.cause = Cause::kLongCalls;
  verdict.message = "in other words";
  EXPECT_THAT(NextStepAfter(verdict).command, HasSubstr("assay judge"));
}

// A student was told to stop other programs on the machine of a server.
TEST(NextStep, OnAnotherMachineNobodyCanStopPrograms) {
  const NextStep step = NextStepAfter(SampleVerdict(Outcome::kUnsettled), false, false);
  EXPECT_THAT(step.advice, HasSubstr("submit it again later"));
  EXPECT_EQ(step.command, "");
}

TEST(NextStep, BuildFailureNamesTheLine) {
  Verdict verdict = SampleVerdict(Outcome::kBuildFailed);
  EXPECT_EQ(NextStepAfter(verdict).advice, "fix line 12 of typo.cpp, then");
  verdict.message = "in other words, without a number";
  EXPECT_EQ(NextStepAfter(verdict).advice, "fix line 12 of typo.cpp, then");
  verdict.line = 0;
  verdict.message = "line 30 s: the compiler was stopped";
  EXPECT_EQ(NextStepAfter(verdict).advice, "fix typo.cpp, then");
}

TEST(NextStep, WrongIsExplainedWhereADrawFailed) {
  Verdict verdict = SampleVerdict(Outcome::kWrong);
  EXPECT_EQ(NextStepAfter(verdict).command, "assay explain 3f2a9c01d4e7");
  verdict.correctness->draws.back().result = "passed";  // wrong in a timed call only
  EXPECT_THAT(NextStepAfter(verdict).command, testing::StartsWith("assay judge "));
}

TEST(NextStep, UnsettledDependsOnTheReason) {
  Verdict verdict = SampleVerdict(Outcome::kUnsettled);
  BaselineResult& result = verdict.speed->baselines["eager"];
  EXPECT_EQ(NextStepAfter(verdict).advice, "read the note above, then");
  // Older ones have no cause.
  result.note.clear();
  EXPECT_EQ(NextStepAfter(verdict).advice, "stop other programs on this machine, then");
  result.note = "other processes, by its words alone";
  EXPECT_EQ(NextStepAfter(verdict).advice, "read the note above, then");
  result.disturbed_share = 0.12;
  EXPECT_EQ(NextStepAfter(verdict).advice, "stop other programs on this machine, then");
  result.why_unsettled = {UnsettledCause::kCopies, 0};
  EXPECT_EQ(NextStepAfter(verdict).advice, "read the note above, then");
  result.why_unsettled = {UnsettledCause::kUnseen, 0};
  EXPECT_THAT(NextStepAfter(verdict).command, StartsWith("assay audit "));
  result.why_unsettled = {UnsettledCause::kBudget, 25, true};
  EXPECT_THAT(NextStepAfter(verdict).advice, EndsWith(", and give it more time"));
  result.why_unsettled->disturbed = false;
  EXPECT_EQ(NextStepAfter(verdict).advice, "give it more time");
  EXPECT_THAT(NextStepAfter(verdict).command, EndsWith(" --budget 25"));
  verdict.speed.reset();
  EXPECT_EQ(NextStepAfter(verdict).command, "assay audit problems/level1/softmax.py --size small");
  verdict.problem.size.clear();
  verdict.problem.set = {{"dim", "4096 * 2"}};
  EXPECT_THAT(NextStepAfter(verdict).command, EndsWith(" --set 'dim=4096 * 2'"));
}

TEST(NextStep, EveryOutcomeHasOne) {
  for (const Verdict& verdict : SampleVerdicts()) {
    const NextStep step = NextStepAfter(verdict);
    EXPECT_THAT(step.command, testing::StartsWith("assay "));
    EXPECT_FALSE(step.advice.empty());
  }
}

}  // namespace
}  // namespace assay
