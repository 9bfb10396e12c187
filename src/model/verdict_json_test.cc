#include "model/verdict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/sample_verdicts.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The text with `from` replaced, where it must occur.
std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string ErrorOf(const std::string& text) {
  const auto verdict = VerdictFromJson(text);
  if (verdict) return "no error";
  EXPECT_EQ(verdict.error().kind, ErrorKind::kUsage);
  return verdict.error().message;
}

TEST(VerdictJson, SchemaStandsFirst) {
  EXPECT_THAT(VerdictToJson(SampleVerdict(Outcome::kTie), -1),
              StartsWith(R"({"schema":"assay.verdict/1")"));
}

TEST(VerdictJson, EveryOutcomeSurvivesARoundTrip) {
  for (const Verdict& verdict : SampleVerdicts()) {
    for (const int indent : {-1, 0, 2}) {
      const std::string text = VerdictToJson(verdict, indent);
      const auto read = VerdictFromJson(text);
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(VerdictToJson(*read, indent), text);
      EXPECT_EQ(read->outcome, verdict.outcome);
    }
  }
}

TEST(VerdictJson, KernelsSurvive) {
  const Verdict verdict = SampleGpuVerdict();
  const Verdict read = VerdictFromJson(VerdictToJson(verdict, 2)).value();
  ASSERT_EQ(read.kernels.size(), 2u);
  const KernelRecord& divide = read.kernels[1];
  EXPECT_EQ(divide.name, "divide<256>");
  EXPECT_EQ(divide.registers, 167);
  EXPECT_EQ(divide.stack_bytes, 256);
  EXPECT_EQ(divide.shared_bytes, 33792);
  EXPECT_EQ(divide.launches, 1);
  EXPECT_EQ(divide.threads, 256);
  EXPECT_EQ(divide.blocks, 4096);
  EXPECT_EQ(divide.occupancy, 0.125);
  EXPECT_EQ(divide.limiter, "registers");
  EXPECT_EQ(divide.waves, 31.03);
  EXPECT_EQ(divide.instructions, verdict.kernels[1].instructions);
  EXPECT_EQ(divide.widest_load_bytes, 4);
  EXPECT_EQ(read.bottleneck, verdict.bottleneck);
  EXPECT_EQ(read.samples[0].sm_mhz, verdict.samples[0].sm_mhz);
  EXPECT_EQ(read.samples[0].clock_limits, verdict.samples[0].clock_limits);
  EXPECT_EQ(read.samples[0].charged_ns, verdict.samples[0].charged_ns);
  EXPECT_TRUE(read.samples[1].sm_mhz.empty());
}

TEST(VerdictJson, WhatToolsSawSurvives) {
  const Verdict verdict = SampleGpuVerdict();
  const Verdict read = VerdictFromJson(VerdictToJson(verdict, 2)).value();
  ASSERT_TRUE(read.profile && read.sanitizer);
  ASSERT_EQ(read.profile->kernels.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const KernelProfile &kernel = read.profile->kernels[i], &was = verdict.profile->kernels[i];
    EXPECT_EQ(kernel.name, was.name);
    EXPECT_EQ(kernel.launches, was.launches);
    EXPECT_EQ(kernel.cycles_share, was.cycles_share);
    EXPECT_EQ(kernel.stalls, was.stalls);
    for (const KernelFigure& figure : kKernelFigures)
      EXPECT_EQ(kernel.*figure.value, was.*figure.value) << figure.name;
  }
  EXPECT_EQ(read.sanitizer->tool, "memcheck");
  EXPECT_EQ(read.sanitizer->errors, 25);
  EXPECT_EQ(read.sanitizer->findings, verdict.sanitizer->findings);
}

TEST(VerdictJson, WhatARunWithoutPausesTookSurvives) {
  const Verdict verdict = SampleGpuVerdict();
  const Verdict read = VerdictFromJson(VerdictToJson(verdict, 2)).value();
  ASSERT_TRUE(read.sustained);
  EXPECT_EQ(read.sustained->baseline, "eager");
  EXPECT_EQ(read.sustained->seconds, 10);
  EXPECT_EQ(read.sustained->reference.time_ns, 33'500);
  const SustainedSide &side = read.sustained->candidate, &was = verdict.sustained->candidate;
  EXPECT_EQ(side.calls_per_block, was.calls_per_block);
  EXPECT_EQ(side.time_ns, was.time_ns);
  EXPECT_EQ(side.running_share, was.running_share);
  EXPECT_EQ(side.block_ns, was.block_ns);
  EXPECT_EQ(side.sm_mhz, was.sm_mhz);
  EXPECT_EQ(side.clock_limits, was.clock_limits);
}

TEST(VerdictJson, WhyAToolSawNothingSurvives) {
  Verdict verdict = SampleGpuVerdict();
  verdict.profile = ProfileRecord{{}, "ncu wrote no report"};
  verdict.sanitizer = SanitizerRecord{"racecheck", 0, {}, "no answer within 120.0 s"};
  const Verdict read = VerdictFromJson(VerdictToJson(verdict, -1)).value();
  EXPECT_EQ(read.profile->failure, "ncu wrote no report");
  EXPECT_EQ(read.sanitizer->failure, "no answer within 120.0 s");
  EXPECT_THAT(ErrorOf(Replaced(VerdictToJson(verdict, -1), "racecheck", "leakcheck")),
              HasSubstr("sanitizer.tool"));
}

// As of a native candidate, whose host code launches what it likes.
TEST(VerdictJson, KernelsWithoutLaunchesSayNull) {
  Verdict verdict = SampleGpuVerdict();
  verdict.kernels = {{"softmax", 40, 0, 1024}};
  const std::string text = VerdictToJson(verdict, -1);
  EXPECT_THAT(text, HasSubstr(R"("shared_bytes":1024,"launches":null,"threads":null,"blocks":null,)"
                              R"("occupancy":null,"limiter":null,"waves":null,)"
                              R"("instructions":null,"widest_load_bytes":null)"));
  EXPECT_EQ(VerdictFromJson(text).value().kernels[0].launches, 0);
}

TEST(VerdictJson, EveryFieldSurvives) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  verdict.problem.set = {{"batch_size", "512"}, {"name", "'\"quoted\"'"}};
  verdict.probe = ProbeRecord{
      "", 2, 5e5, 3.5, 0, CallCounts{1e6, 2e6, 100}, "", SmallerProbe{"ROWS = 256", 8e6, 0.5, 3e5},
      9e5};
  const Verdict read = VerdictFromJson(VerdictToJson(verdict, 2)).value();
  EXPECT_EQ(read.id, verdict.id);
  EXPECT_EQ(read.created, verdict.created);
  EXPECT_EQ(read.message, verdict.message);
  EXPECT_EQ(read.problem.set, verdict.problem.set);
  EXPECT_EQ(read.problem.signature, verdict.problem.signature);
  EXPECT_EQ(read.problem.level, 1);
  EXPECT_EQ(read.candidate.flags, verdict.candidate.flags);
  EXPECT_EQ(read.candidate.artifact, verdict.candidate.artifact);
  ASSERT_TRUE(read.probe);
  EXPECT_EQ(read.probe->minor_faults, 3.5);
  EXPECT_EQ(read.probe->counts->instructions, 2e6);
  EXPECT_EQ(read.probe->smaller->size, "ROWS = 256");
  EXPECT_EQ(*read.probe->one_thread_ns, 9e5);
  EXPECT_EQ(read.correctness->draws.size(), verdict.correctness->draws.size());
  EXPECT_EQ(read.correctness->draws[0].seed, 9007199254740993u);
  EXPECT_EQ(read.correctness->max_abs_error, verdict.correctness->max_abs_error);
  const BaselineResult& eager = read.speed->baselines.at("eager");
  EXPECT_EQ(eager.ci_low, verdict.speed->baselines.at("eager").ci_low);
  EXPECT_EQ(eager.ci_high, verdict.speed->baselines.at("eager").ci_high);
  EXPECT_EQ(eager.calls_per_block, 24);
  EXPECT_EQ(eager.certified_speedup, verdict.speed->baselines.at("eager").certified_speedup);
  EXPECT_EQ(read.work->operations_from, "suite");
  EXPECT_EQ(read.work->unfused_bytes, verdict.work->unfused_bytes);
  EXPECT_EQ(read.roofline->regime, "memory");
  EXPECT_EQ(read.roofline->percent_of_peak, verdict.roofline->percent_of_peak);
  EXPECT_EQ(read.speed->headline, "eager");
  EXPECT_EQ(read.cost.total_s, verdict.cost.total_s);
  EXPECT_EQ(read.machine.threads, 2);
  EXPECT_EQ(read.toolchain, verdict.toolchain);
  EXPECT_EQ(read.seed, verdict.seed);
  ASSERT_EQ(read.samples.size(), 2u);
  EXPECT_EQ(read.samples[0].order, "rccrcrrc");
  EXPECT_EQ(read.samples[0].block_ns, verdict.samples[0].block_ns);
  EXPECT_EQ(read.samples[1].settle_ns, verdict.samples[1].settle_ns);
}

TEST(VerdictJson, DoublesAreExact) {
  Verdict verdict = SampleVerdict(Outcome::kTie);
  const double values[] = {0.1,  1.0 / 3, 5e-324, 1.7976931348623157e308, 4503599627370497.5,
                           1e23, -0.0};
  for (const double value : values) {
    verdict.cost.timed_s = value;
    const double read = VerdictFromJson(VerdictToJson(verdict, -1)).value().cost.timed_s;
    EXPECT_EQ(read, value);
    EXPECT_EQ(std::signbit(read), std::signbit(value));
  }
  verdict.cost.timed_s = 0.1;
  EXPECT_THAT(VerdictToJson(verdict, -1), HasSubstr(R"("timed_s":0.1,)"));
}

TEST(VerdictJson, NumbersThatJsonCannotHoldBecomeNull) {
  Verdict verdict = SampleVerdict(Outcome::kWrong);
  verdict.correctness->error_ratio = std::numeric_limits<double>::infinity();
  verdict.correctness->first_mismatch->got = std::numeric_limits<double>::quiet_NaN();
  const std::string text = VerdictToJson(verdict, -1);
  EXPECT_THAT(text, HasSubstr(R"("error_ratio":null)"));
  EXPECT_THAT(text, HasSubstr(R"("got":null)"));
  const Verdict read = VerdictFromJson(text).value();
  EXPECT_TRUE(std::isnan(read.correctness->error_ratio));
  EXPECT_TRUE(std::isnan(read.correctness->first_mismatch->got));
}

TEST(VerdictJson, WrongIntegersKeepAllTheirDigits) {
  Verdict verdict = SampleVerdict(Outcome::kWrong);
  const WholeValues whole{.expected = (int64_t{1} << 62) + 1, .got = -7};
  verdict.correctness->first_mismatch->whole = whole;
  const std::string text = VerdictToJson(verdict, -1);
  EXPECT_THAT(text, HasSubstr(R"("expected":4611686018427387905,"got":-7,)"));
  EXPECT_EQ(VerdictFromJson(text).value().correctness->first_mismatch->whole, whole);
}

TEST(VerdictJson, AbsentPartsAreNull) {
  const std::string text = VerdictToJson(SampleVerdict(Outcome::kBuildFailed), -1);
  EXPECT_THAT(
      text,
      HasSubstr(R"("correctness":null,"speed":null,"work":null,"roofline":null,)"
                R"("libraries":null,"kernels":[],"bottleneck":null,"profile":null,)"
                R"("sanitizer":null,"sustained":null,"probe":null,"coverage":null,"foul":null)"));
  const Verdict read = VerdictFromJson(text).value();
  EXPECT_FALSE(read.correctness);
  EXPECT_FALSE(read.speed);
  EXPECT_FALSE(read.foul);
}

TEST(VerdictJson, SamplesStayOnOneLineWhenIndented) {
  EXPECT_THAT(VerdictToJson(SampleVerdict(Outcome::kFaster), 2),
              HasSubstr("      \"block_ns\": [38300000,96700000,96600000,38250000],\n"));
}

TEST(VerdictJson, BytesThatAreNotTextDoNotStopTheWriter) {
  Verdict verdict = SampleVerdict(Outcome::kCrashed);
  verdict.log = std::string("\xff\xfe\0bell\a", 8);
  const std::string text = VerdictToJson(verdict, 2);
  EXPECT_EQ(VerdictFromJson(text).value().log, std::string("\uFFFD\uFFFD\0bell\a", 12));
}

TEST(VerdictJson, UnknownFieldsAreIgnored) {
  std::string text = VerdictToJson(SampleVerdict(Outcome::kFaster), -1);
  text = Replaced(text, R"("outcome":)", R"("energy":{"joules":3},"outcome":)");
  text = Replaced(text, R"("cpu":)", R"("gpu":["H200"],"cpu":)");
  EXPECT_TRUE(VerdictFromJson(text));
}

// Verdicts of the first days have neither work nor roofline nor certified_speedup.
TEST(VerdictJson, FieldsAddedLaterMayBeMissing) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  verdict.work.reset();
  verdict.roofline.reset();
  verdict.libraries.reset();
  verdict.speed->baselines.at("eager").certified_speedup = 0;
  std::string text = VerdictToJson(verdict, -1);
  text = Replaced(text, R"("work":null,"roofline":null,"libraries":null,)", "");
  text = Replaced(text, R"("kernels":[],"bottleneck":null,"profile":null,"sanitizer":null,)", "");
  text = Replaced(text, R"("sustained":null,)", "");
  text = Replaced(text, R"("certified_speedup":null,)", "");
  text = Replaced(text, R"("delta":0.01,"clear_margin":0.5,"disturbed_share":0.0,)", "");
  const auto read = VerdictFromJson(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_FALSE(read->work);
  EXPECT_FALSE(read->roofline);
  EXPECT_EQ(read->speed->baselines.at("eager").certified_speedup, 0);
}

TEST(VerdictJson, AnotherSchemaIsRefused) {
  const std::string text = VerdictToJson(SampleVerdict(Outcome::kFaster), -1);
  EXPECT_THAT(ErrorOf(Replaced(text, "assay.verdict/1", "assay.verdict/2")),
              HasSubstr("assay.verdict/2"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("schema is missing"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("the document must be an object"));
}

TEST(VerdictJson, WhatIsNotJsonIsRefused) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("not a verdict"));
  EXPECT_THAT(ErrorOf("faster"), HasSubstr("not a verdict"));
  const std::string text = VerdictToJson(SampleVerdict(Outcome::kFaster), -1);
  EXPECT_THAT(ErrorOf(text.substr(0, text.size() / 2)), HasSubstr("not a verdict"));
  EXPECT_THAT(ErrorOf(std::string(200'000, '[')), HasSubstr("not a verdict"));
}

TEST(VerdictJson, ErrorsNameTheField) {
  const std::string text = VerdictToJson(SampleVerdict(Outcome::kFaster), -1);
  const auto changed = [&](const std::string& from, const std::string& to) {
    return ErrorOf(Replaced(text, from, to));
  };
  EXPECT_THAT(changed(R"("outcome":"faster")", R"("outcome":"best")"),
              HasSubstr("outcome is \"best\""));
  EXPECT_THAT(changed(R"("form":"native")", R"("form":"perl")"),
              HasSubstr("candidate.form is \"perl\""));
  EXPECT_THAT(changed(R"("decision":"faster")", R"("decision":"")"),
              HasSubstr("speed.baselines.eager.decision"));
  EXPECT_THAT(changed(R"("level":1)", R"("level":"1")"),
              HasSubstr("problem.level must be a whole number"));
  EXPECT_THAT(changed(R"("level":1)", R"("level":3000000000)"),
              HasSubstr("problem.level is out of range"));
  EXPECT_THAT(changed(R"("pairs":9)", R"("pairs":9.5)"), HasSubstr("speed.baselines.eager.pairs"));
  EXPECT_THAT(changed(R"("ci":[)", R"("ci":[1,)"),
              HasSubstr("speed.baselines.eager.ci must be an array of 2"));
  EXPECT_THAT(changed(R"("block_ns":[)", R"("block_ns":[true,)"),
              HasSubstr("samples[0].block_ns[0]"));
  EXPECT_THAT(changed(R"("passed":true,"calls)", R"("passed":1,"calls)"),
              HasSubstr("correctness.passed"));
  EXPECT_THAT(changed(R"("cpu":)", R"("zpu":)"), HasSubstr("machine.cpu is missing"));
  EXPECT_THAT(changed(R"("pytorch":"1.13.1")", R"("pytorch":1.13)"),
              HasSubstr("toolchain.pytorch"));
  EXPECT_THAT(changed(R"("seed":"17264218839157064961")", R"("seed":"-1")"),
              HasSubstr("seed must be a whole number"));
  EXPECT_THAT(changed(R"("seed":"17264218839157064961")", R"("seed":"99999999999999999999")"),
              HasSubstr("seed must"));
  EXPECT_THAT(changed(R"("result":"passed")", R"("result":"lucky")"),
              HasSubstr("correctness.draws[0].result"));
  EXPECT_THAT(changed(R"("precision_class":"float32")", R"("precision_class":"fp8")"),
              HasSubstr("correctness.precision_class"));
}

TEST(OutcomeNames, AreUniqueAndReadBack) {
  for (const Verdict& verdict : SampleVerdicts())
    EXPECT_EQ(OutcomeFromName(OutcomeName(verdict.outcome)), verdict.outcome);
  EXPECT_FALSE(OutcomeFromName("FASTER"));
  EXPECT_FALSE(OutcomeFromName(""));
}

}  // namespace
}  // namespace assay
