#include "search/dataset.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "search/sample_samples.h"

namespace assay {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Json> Lines(DatasetKind kind, const std::vector<Sample>& samples = SampleSamples(),
                        const DatasetTerms& terms = SampleTerms()) {
  std::vector<Json> lines;
  for (const std::string& line : MakeDataset(kind, samples, terms).lines)
    lines.push_back(Json::parse(line));
  return lines;
}

TEST(Dataset, VerifiedHasCorrectCandidatesWithTheirReference) {
  const auto lines = Lines(DatasetKind::kVerified);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["reference"], "class Model: ...");
  EXPECT_EQ(lines[0]["candidate"]["source"], "int 0/1;");
  EXPECT_EQ(lines[0]["result"]["speedup"], 2);
  EXPECT_EQ(lines[0]["origin"]["licence"], "Apache-2.0");
  EXPECT_EQ(lines[1]["result"]["outcome"], "slower");
  EXPECT_EQ(lines[2]["candidate"]["language"], "python");
}

TEST(Dataset, VerifiedHasEachSourceOnceByItsNewestVerdict) {
  Sample again = SampleOf("judge/9/0", "", Outcome::kFaster, 3);
  again.source = "int 0/1;";
  again.verdict->created = "2027-01-01T00:00:00Z";
  auto samples = SampleSamples();
  samples.push_back(again);
  const auto lines = Lines(DatasetKind::kVerified, samples);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[2]["result"]["speedup"], 3);
  // A newer judgement that finds it wrong does not make the older one a lie, but a finalist's does.
  samples.back().confirmed = SampleVerdict(Outcome::kWrong);
  EXPECT_EQ(Lines(DatasetKind::kVerified, samples).size(), 3u);
}

TEST(Dataset, LeavesOutPairsWhoseProblemHasChanged) {
  DatasetTerms terms = SampleTerms();
  terms.reference = [](const ProblemRecord&) { return std::nullopt; };
  const Dataset dataset = MakeDataset(DatasetKind::kVerified, SampleSamples(), terms);
  EXPECT_THAT(dataset.lines, IsEmpty());
  EXPECT_EQ(dataset.left_out, 3);
  EXPECT_THAT(dataset.lacking, HasSubstr("the problem's file"));
}

TEST(Dataset, SftHasAnswersThatAreCertifiedFaster) {
  const auto lines = Lines(DatasetKind::kSft);
  ASSERT_EQ(lines.size(), 1u);
  ASSERT_EQ(lines[0]["messages"].size(), 3u);
  EXPECT_EQ(lines[0]["messages"][1]["content"], "repair judge/0/0");
  EXPECT_EQ(lines[0]["messages"][2]["role"], "assistant");
  DatasetTerms terms = SampleTerms();
  terms.rewards.p = 1.95;  // more than is certified
  EXPECT_THAT(Lines(DatasetKind::kSft, SampleSamples(), terms), IsEmpty());
}

TEST(Dataset, SftBelievesTheSecondJudgement) {
  auto samples = SampleSamples();
  samples[1].confirmed = SampleVerdict(Outcome::kWrong);
  EXPECT_THAT(Lines(DatasetKind::kSft, samples), IsEmpty());
}

TEST(Dataset, PreferencePairsAnswersToOnePrompt) {
  auto samples = SampleSamples();
  samples.push_back(SampleOf("judge/3/0", "", Outcome::kFaster, 0.9));   // over 0.8, separated
  samples.push_back(SampleOf("judge/4/0", "", Outcome::kFaster, 0.91));  // not over 0.9
  std::vector<std::string> pairs;
  for (const Json& line : Lines(DatasetKind::kPreference, samples))
    pairs.push_back(line["chosen_origin"]["step"].get<std::string>() + " " +
                    line["reason"].get<std::string>() + " " +
                    line["rejected_origin"]["step"].get<std::string>());
  EXPECT_THAT(pairs, ElementsAre("judge/1/0 correct over wrong judge/0/0",
                                 "judge/3/0 correct over wrong judge/0/0",
                                 "judge/3/0 faster over slower judge/1/0",
                                 "judge/4/0 correct over wrong judge/0/0",
                                 "judge/4/0 faster over slower judge/1/0"));
}

TEST(Dataset, RlHasTurnsWithRewardsAndReturns) {
  const auto lines = Lines(DatasetKind::kRl);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["turns"][0]["reward"], 0);
  EXPECT_EQ(lines[0]["turns"][0]["return"], 0.4);
  EXPECT_EQ(lines[0]["turns"][1]["reward"], 1);
  EXPECT_EQ(lines[1]["turns"].size(), 1u);
  // No code, a foul, and a failure of the machine's, which is no penalty.
  ASSERT_EQ(lines[2]["turns"].size(), 3u);
  EXPECT_EQ(lines[2]["turns"][0]["reward"], 0);
  EXPECT_EQ(lines[2]["turns"][0]["return"], -0.4);
  EXPECT_EQ(lines[2]["turns"][1]["reward"], -1);
  EXPECT_EQ(lines[2]["turns"][2]["reward"], nullptr);
  EXPECT_EQ(lines[2]["turns"][2]["return"], nullptr);
}

TEST(Dataset, FoulsStandApart) {
  const auto fouls = Lines(DatasetKind::kFouls);
  ASSERT_EQ(fouls.size(), 1u);
  EXPECT_EQ(fouls[0]["candidate"]["source"], "int 2/1;");
  EXPECT_FALSE(fouls[0]["foul"]["rule"].get<std::string>().empty());
}

TEST(Dataset, KernelBookHasPythonAlone) {
  const Dataset dataset = MakeDataset(DatasetKind::kKernelBook, SampleSamples(), SampleTerms());
  ASSERT_EQ(dataset.lines.size(), 1u);
  EXPECT_EQ(dataset.left_out, 2);
  const Json line = Json::parse(dataset.lines[0]);
  EXPECT_EQ(line["entry_point"], "Model");
  EXPECT_EQ(line["triton_code"], "class ModelNew: ...");
  EXPECT_EQ(line["licenses"], Json::array({"Apache-2.0"}));
}

TEST(Dataset, SplitsByTheProblemsFile) {
  ProblemRecord problem;
  problem.hash = "19" + std::string(62, '0');  // 0.098
  EXPECT_EQ(SplitOf(problem, 0.1), "test");
  problem.size = "another";
  EXPECT_EQ(SplitOf(problem, 0.1), "test");
  problem.hash = "1a" + std::string(62, '0');  // 0.102
  EXPECT_EQ(SplitOf(problem, 0.1), "train");
  EXPECT_EQ(SplitOf(problem, 0), "train");
}

TEST(Dataset, BytesThatAreNoTextDoNotStopIt) {
  auto samples = SampleSamples();
  samples[1].answer = "\xff\xfe";
  samples[1].source = "int \xff;";
  EXPECT_EQ(Lines(DatasetKind::kSft, samples).size(), 1u);
  EXPECT_EQ(Lines(DatasetKind::kVerified, samples).size(), 3u);
}

TEST(Dataset, UnknownKindsAreNamed) {
  EXPECT_THAT(DatasetKindFromName("dpo").error().message, HasSubstr("preference"));
}

}  // namespace
}  // namespace assay
