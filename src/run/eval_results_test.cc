#include "run/eval_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run/run_testing.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

RunRow Row(size_t item, Outcome outcome) {
  const RunPlan plan = TestPlan();
  RunRow row = RowOf(plan, plan.items[item], "terms");
  row.verdict = SampleVerdict(outcome);
  return row;
}

TEST(EvalResultsFile, HasKernelBenchsLayout) {
  const RunRow faster = Row(1, Outcome::kFaster), broken = Row(0, Outcome::kBuildFailed);
  const RunRow wrong = Row(2, Outcome::kWrong);
  const std::string text = EvalResultsText({&wrong, &faster, &broken, nullptr});
  const Json json = Json::parse(text);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json.begin().key(), "23");
  ASSERT_EQ(json["23"].size(), 2u);
  const Json& first = json["23"][0];
  EXPECT_EQ(first["sample_id"], 0);
  EXPECT_EQ(first["compiled"], false);
  EXPECT_EQ(first["correctness"], false);
  EXPECT_EQ(first["runtime"], -1);
  EXPECT_EQ(first["metadata"]["compilation_error"], broken.verdict->message);
  const Json& second = json["23"][1];
  EXPECT_EQ(second["correctness"], true);
  const BaselineResult& eager = faster.verdict->speed->baselines.at("eager");
  EXPECT_DOUBLE_EQ(second["runtime"].get<double>(), eager.candidate_time_ns / 1e6);
  EXPECT_EQ(second["metadata"]["speedup"], eager.speedup);
  EXPECT_EQ(json["40"][0]["compiled"], true);
  EXPECT_EQ(json["40"][0]["metadata"]["correctness_issue"], wrong.verdict->message);
  EXPECT_TRUE(ReadEvalResults(text)->ours);
}

// KernelBench's analysis divided by the -1 of each of them: a geometric mean of -4.28.
TEST(EvalResultsFile, CorrectSamplesWithoutATimeAreLeftOutAndNamed) {
  RunRow correct = Row(0, Outcome::kCorrect), prepared = Row(1, Outcome::kWrong);
  prepared.verdict->correctness->right_with_weights = WeightsKind::kConstant;
  RunRow open = Row(2, Outcome::kUnsettled);
  open.verdict->speed.reset();
  const RunRow faster = Row(2, Outcome::kFaster), broken = Row(0, Outcome::kBuildFailed);
  const std::vector<const RunRow*> rows{&correct, &prepared, &open, &faster, &broken, nullptr};
  const Json json = Json::parse(EvalResultsText(rows));
  size_t samples = 0;
  for (const Json& problem : json)
    for (const Json& sample : problem) {
      ++samples;
      EXPECT_EQ(sample["correctness"], sample["runtime"].get<double>() > 0);
    }
  EXPECT_EQ(samples, 2u);
  EXPECT_THAT(UntimedSamples(rows), ElementsAre("23_Softmax #0", "23_Softmax #1", HasSubstr("#")));
}

TEST(EvalResultsFile, WeightsPreparedOnceAreCorrectAsInKernelBench) {
  RunRow row = Row(0, Outcome::kWrong);
  row.verdict->correctness->right_with_weights = WeightsKind::kConstant;
  const auto theirs = ReadEvalResults(
      R"({"23": [{"sample_id": 0, "compiled": true, "correctness": true, "runtime": 1}]})");
  EXPECT_TRUE(Disagreements(*theirs, {&row}).empty());
}

TEST(EvalResultsFile, StatsAreThoseOfThePairs) {
  RunRow row = Row(0, Outcome::kFaster);
  BaselineResult& eager = row.verdict->speed->baselines["eager"];
  row.verdict->speed->headline = "eager";
  eager.calls_per_block = 10;
  row.verdict->samples = {{"eager", "rccr", {1, 10'000'000, 30'000'000, 1}, {}},
                          {"eager", "crrc", {40'000'000, 1, 1, 40'000'000}, {}},
                          {"compiled", "cr", {1, 1}, {}}};
  const Json stats = Json::parse(EvalResultsText({&row}))["23"][0]["runtime_stats"];
  EXPECT_EQ(stats["num_trials"], 2);
  EXPECT_DOUBLE_EQ(stats["min"].get<double>(), 2);
  EXPECT_DOUBLE_EQ(stats["max"].get<double>(), 4);
  EXPECT_DOUBLE_EQ(stats["mean"].get<double>(), 3);
  EXPECT_DOUBLE_EQ(stats["std"].get<double>(), 1);
}

TEST(EvalResultsFile, TheirsStandBesideOurs) {
  const auto theirs = ReadEvalResults(R"({
    "23": [{"sample_id": 0, "compiled": true, "correctness": true, "runtime": 1.25},
           {"sample_id": 1, "compiled": true, "correctness": true, "runtime": 2}],
    "40": {"sample_id": 0, "compiled": true, "correctness": false, "metadata": {}}})");
  ASSERT_TRUE(theirs) << theirs.error().message;
  EXPECT_FALSE(theirs->ours);
  EXPECT_EQ(theirs->samples.size(), 3u);
  const RunRow wrong = Row(0, Outcome::kWrong), faster = Row(1, Outcome::kFaster);
  const RunRow also_wrong = Row(2, Outcome::kWrong);
  EXPECT_THAT(Disagreements(*theirs, {&wrong, &faster, &also_wrong, nullptr}),
              ElementsAre(HasSubstr("23_Softmax #0: theirs correct, 1.25 ms; ours not correct: "
                                    "wrong: ")));
  EXPECT_FALSE(ReadEvalResults("[]"));
  EXPECT_FALSE(ReadEvalResults(R"({"1": 3})"));
}

}  // namespace
}  // namespace assay
