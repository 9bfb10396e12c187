#include "search/feedback.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "model/sample_verdicts.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string TextOf(const Verdict& verdict, std::string_view source = "",
                   const NativeCode* code = nullptr, const MachineProfile* machine = nullptr) {
  return FeedbackText(FeedbackOf({verdict, source, code, machine}));
}

std::string Part(const Verdict& verdict, std::string_view name, std::string_view source = "") {
  for (const FeedbackPart& part : FeedbackOf({verdict, source}))
    if (part.name == name) return part.text;
  return {};
}

TEST(Feedback, SaysTheOutcomeOfEveryVerdictFirst) {
  for (const Verdict& verdict : SampleVerdicts()) {
    const auto parts = FeedbackOf({verdict, ""});
    ASSERT_FALSE(parts.empty());
    EXPECT_EQ(parts.front().name, "outcome");
    EXPECT_THAT(parts.front().text, HasSubstr(std::string(OutcomeName(verdict.outcome))));
    for (const FeedbackPart& part : parts) EXPECT_THAT(part.text, Not(IsEmpty())) << part.name;
  }
}

TEST(Feedback, HasNoSeedAndNothingThatTheCandidatePrinted) {
  for (Verdict verdict : SampleVerdicts()) {
    verdict.seed = 17264218839157064961u;
    if (!verdict.correctness) verdict.correctness.emplace();
    verdict.correctness->draws.push_back({"ties", 11111111111111111111u, "failed", "", 3});
    verdict.correctness->draws.push_back(
        {"ordinary", 12222222222222222222u, "failed", "", 3, {{"ROWS", "7"}}});
    verdict.log += std::string(kPrintedHeading) + "x[0] = 0.123456789\n";
    const std::string text = TextOf(verdict, "int main;");
    EXPECT_THAT(text, Not(HasSubstr("1726421883915")));
    EXPECT_THAT(text, Not(HasSubstr("1111111111")));
    EXPECT_THAT(text, Not(HasSubstr("1222222222")));
    EXPECT_THAT(text, Not(HasSubstr("0.1234")));
    for (const DrawRecord& draw : verdict.correctness->draws)
      EXPECT_THAT(text, Not(HasSubstr(fmt::format("{}", draw.seed))));
  }
}

// 'Certified: 0.84x' stood beside an interval from 1.39 to 1.46.
TEST(Feedback, LessThanTheReferencesSpeedIsNoCertificate) {
  Verdict verdict = SampleVerdict(Outcome::kUnsettled);
  BaselineResult& result = verdict.speed->baselines.at(verdict.speed->headline);
  result.speedup = 1.42;
  result.certified_speedup = 0.84;
  EXPECT_THAT(Part(verdict, "speed"), HasSubstr("No gain is certified."));
  result.certified_speedup = 1.38;
  EXPECT_THAT(Part(verdict, "speed"), HasSubstr("Certified: 1.38x."));
}

Verdict WrongAt(double expected, double got) {
  Verdict verdict = SampleVerdict(Outcome::kWrong);
  verdict.correctness->first_mismatch = Mismatch{"out", {3, 1023}, expected, got, 0.25};
  return verdict;
}

TEST(Feedback, ShowsOneWrongElementToThreeDigits) {
  const std::string text = Part(WrongAt(0.00071197614, 0.05901837), "mismatch");
  EXPECT_THAT(text, AllOf(HasSubstr("out[3, 1023]: 0.059 instead of 0.000712"), HasSubstr("25%")));
  EXPECT_THAT(text, Not(HasSubstr("7119")));
}

TEST(Feedback, ShowsNoValueWhereWeightsStayForASession) {
  Verdict verdict = WrongAt(0.00071197614, 0.05901837);
  for (const WeightsKind treatment : {WeightsKind::kConstant, WeightsKind::kConstructed}) {
    verdict.problem.weights = treatment;
    EXPECT_THAT(Part(verdict, "mismatch"), AllOf(HasSubstr("out[3, 1023]"), Not(HasSubstr("0.059")),
                                                 Not(HasSubstr("0.0007"))));
  }
}

TEST(Feedback, NamesKindsOfInputsThatPassedAndFailed) {
  Verdict verdict = WrongAt(1, 2);
  verdict.correctness->draws = {{"ordinary", 1, "passed", "", 0.1},
                                {"ordinary", 2, "passed", "", 0.1},
                                {"huge-scale", 3, "failed", "", 7},
                                {"ties", 4, "dropped", "", 0}};
  EXPECT_THAT(Part(verdict, "mismatch"),
              HasSubstr("Kinds of inputs that passed: ordinary. Failed: huge-scale."));
}

TEST(Feedback, QuotesTheLinesOfErrorsOnceEach) {
  Verdict verdict = SampleVerdict(Outcome::kBuildFailed);
  verdict.log =
      "/candidate/kernel.cpp:2:5: error: expected ';' before 'for'\n"
      "/candidate/kernel.cpp:2:9: error: expected ';' before 'for'\n"
      "/assay/include/assay/kernel.h:287:30: note: declared here\n"
      "/candidate/kernel.cpp:3:5: error: 'q' was not declared in this scope\n";
  EXPECT_EQ(Part(verdict, "errors", "int a;\n  float b\n  q = 1;\n"),
            "Errors at its lines:\n"
            "line 2: expected ';' before 'for'\n      float b\n"
            "line 3: 'q' was not declared in this scope\n      q = 1;");
}

TEST(Feedback, ShowsTheEndOfAPythonTraceback) {
  Verdict verdict = SampleVerdict(Outcome::kBuildFailed);
  verdict.candidate.form = CandidateForm::kPython;
  verdict.log = "Traceback (most recent call last):\n  File \"x\", line 3\nNameError: name 'q'\n";
  EXPECT_THAT(Part(verdict, "errors"), HasSubstr("    NameError: name 'q'"));
}

TEST(Feedback, GivesRatioIntervalTimesAndBound) {
  const Verdict verdict = SampleVerdict(Outcome::kFaster);
  const BaselineResult& result = verdict.speed->baselines.at(verdict.speed->headline);
  EXPECT_THAT(Part(verdict, "speed"),
              AllOf(HasSubstr(fmt::format("{:.4g}x as fast as eager", result.speedup)),
                    HasSubstr("between"), HasSubstr("a call, this candidate")));
  ASSERT_TRUE(verdict.roofline && verdict.work);
  EXPECT_THAT(Part(verdict, "bound"),
              AllOf(HasSubstr("A call must move"), HasSubstr(verdict.roofline->regime)));
}

TEST(Feedback, GivesTheBottleneckOfAGpuCandidate) {
  Verdict verdict = SampleGpuVerdict();
  verdict.bottleneck = "softmax keeps 64 bytes a thread in local memory";
  EXPECT_EQ(Part(verdict, "bottleneck"), "Most likely limit: " + verdict.bottleneck + ".");
  EXPECT_THAT(Part(verdict, "code"), HasSubstr("registers a thread"));
}

TEST(Feedback, TellsCountersAndNotWhatAToolPrinted) {
  Verdict verdict;
  for (const Verdict& each : SampleVerdicts())
    if (each.profile) verdict = each;
  ASSERT_TRUE(verdict.profile);
  EXPECT_THAT(Part(verdict, "counters"),
              AllOf(HasSubstr("kernel divide<256>; cycles: 81% of the call's, in 1 launch"),
                    HasSubstr("DRAM 34%"), HasSubstr("long_scoreboard 62%"), HasSubstr("row_max")));
  verdict.profile = ProfileRecord{{}, "==ERROR== x[0] = 0.123456789"};
  EXPECT_THAT(Part(verdict, "counters"),
              AllOf(HasSubstr("read no counters"), Not(HasSubstr("0.12"))));
  verdict.outcome = Outcome::kWrong;
  EXPECT_THAT(Part(verdict, "counters"), IsEmpty());
  verdict.profile.reset();
  verdict.outcome = Outcome::kTie;
  EXPECT_THAT(Part(verdict, "counters"), IsEmpty());
}

TEST(Feedback, SetsTheWorkingSetBesideCaches) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  MachineProfile machine;
  machine.caches = {{1, 32 << 10, 1}, {2, 1 << 20, 1}};
  verdict.work->bytes = 100'000;
  EXPECT_THAT(TextOf(verdict, "", nullptr, &machine), HasSubstr("fit the L2 cache (1.05 MB)"));
  verdict.work->bytes = 1e9;
  EXPECT_THAT(TextOf(verdict, "", nullptr, &machine), HasSubstr("fit no cache (L2: 1.05 MB)"));
}

// A native candidate at 20% of the peak.
Verdict Native(int threads) {
  Verdict verdict = SampleVerdict(Outcome::kSlower);
  verdict.machine.threads = threads;
  verdict.speed->baselines[verdict.speed->headline].candidate_time_ns = 1e6;
  verdict.roofline.emplace();
  verdict.roofline->percent_of_peak = 20;
  verdict.roofline->regime = "compute";
  verdict.roofline->empty_call_ns = 100;
  return verdict;
}

NativeCode Vectorised() {
  NativeCode code;
  code.machine_vector_bits = 512;
  NativeLoop& loop = code.loop.emplace();
  loop.first_line = 4;
  loop.last_line = 9;
  loop.vector_bits = 512;
  loop.instructions = 20;
  loop.on_vectors = 12;
  return code;
}

TEST(NativeBottleneck, NamesOneLimitTheDearestFirst) {
  NativeCode code = Vectorised();
  EXPECT_THAT(NativeBottleneck(Native(4), code), HasSubstr("one thread, and may use 4"));
  const Verdict verdict = Native(1);
  EXPECT_EQ(NativeBottleneck(verdict, code), "");
  code.loop->instructions = 60;
  EXPECT_THAT(NativeBottleneck(verdict, code), HasSubstr("arithmetic in 12 of its 60"));
  code.loop->instructions = 20;
  code.loop->divisions = 3;
  EXPECT_THAT(NativeBottleneck(verdict, code), HasSubstr("3 division"));
  code.loop->vector_bits = 256;
  EXPECT_THAT(NativeBottleneck(verdict, code), HasSubstr("vectors of 256 bits"));
  code.loop->spills = 9;
  EXPECT_THAT(NativeBottleneck(verdict, code), HasSubstr("the stack in 9 of its 20"));
  code.loop->gathers = 1;
  EXPECT_THAT(NativeBottleneck(verdict, code), HasSubstr("1 gather"));
  code.loop->on_scalars = 30;
  EXPECT_THAT(NativeBottleneck(verdict, code), HasSubstr("30 of its 42"));
  code.loop->calls = {"expf"};
  EXPECT_THAT(NativeBottleneck(verdict, code), HasSubstr("the hot loop (lines 4 to 9) calls expf"));
}

TEST(NativeBottleneck, SaysNothingNearThePeakOrWithoutATime) {
  Verdict verdict = Native(4);
  verdict.roofline->percent_of_peak = 90;
  EXPECT_EQ(NativeBottleneck(verdict, Vectorised()), "");
  verdict.speed.reset();
  EXPECT_EQ(NativeBottleneck(verdict, Vectorised()), "");
}

TEST(NativeBottleneck, SaysThatACallIsMostlyOverhead) {
  Verdict verdict = Native(4);
  verdict.roofline->empty_call_ns = 9e5;
  EXPECT_THAT(NativeBottleneck(verdict, Vectorised()), HasSubstr("an empty call takes 900 us"));
}

}  // namespace
}  // namespace assay
