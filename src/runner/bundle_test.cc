#include "runner/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "model/sample_verdicts.h"
#include "model/verdict_json.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const std::vector<std::string> kSuites{std::string(ASSAY_SOURCE_DIRECTORY) + "/problems"};

Json Text(Verdict verdict = SampleVerdict(Outcome::kFaster)) {
  verdict.problem.hash = Sha256Hex("x = 1\n");
  verdict.candidate.hash = Sha256Hex("int a;");
  return {{"schema", kBundleSchema},
          {"problem", {{"name", "softmax"}, {"file", "x = 1\n"}, {"size", "small"}}},
          {"candidate", {{"name", "mine.cpp"}, {"source", "int a;"}}},
          {"opponent", nullptr},
          {"terms", {{"p", 1.5}}},
          {"verdict", Json::parse(VerdictToJson(verdict, -1))}};
}

TEST(ParseBundle, ReadsWhatAJudgementNeeds) {
  const auto bundle = ParseBundle(Text().dump());
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->candidate.source, "int a;");
  EXPECT_EQ(bundle->verdict.outcome, Outcome::kFaster);
  EXPECT_EQ(bundle->terms, R"({"p":1.5})");
}

TEST(ParseBundle, RefusesFilesThatAreNotTheVerdicts) {
  Json problem = Text(), candidate = Text();
  problem["problem"]["file"] = "x = 2\n";
  candidate["candidate"]["source"] = "int b;";
  EXPECT_THAT(ParseBundle(problem.dump()).error().message, HasSubstr("problem"));
  EXPECT_THAT(ParseBundle(candidate.dump()).error().message, HasSubstr("candidate"));
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  verdict.speed->against = CandidateFile{"other.cpp", Sha256Hex("int c;")};
  Json opponent = Text(verdict);
  EXPECT_THAT(ParseBundle(opponent.dump()).error().message, HasSubstr("against"));
  opponent["opponent"] = {{"name", "other.cpp"}, {"source", "int d;"}};
  EXPECT_THAT(ParseBundle(opponent.dump()).error().message, HasSubstr("opponent"));
  opponent["opponent"]["source"] = "int c;";
  EXPECT_TRUE(ParseBundle(opponent.dump()));
  for (const char* text : {"", "{}", "[]", R"({"schema":"assay.bundle/1"})"})
    EXPECT_FALSE(ParseBundle(text)) << text;
}

TEST(JobOfBundle, UsesTheInstalledProblemIfItIsTheSame) {
  auto bundle = ParseBundle(Text().dump()).value();
  const TakenJob other = JobOfBundle(bundle, kSuites);
  EXPECT_EQ(other.file, "x = 1\n");
  EXPECT_EQ(other.size, "");
  bundle.verdict.problem.hash = InstalledProblem("softmax", kSuites).value().hash;
  const TakenJob same = JobOfBundle(bundle, kSuites);
  EXPECT_EQ(same.file, std::nullopt);
  EXPECT_EQ(same.size, "small");
}

TEST(JobOfBundle, TakesTermsThatAreLeftOutFromTheVerdict) {
  Json text = Text();
  EXPECT_EQ(Json::parse(JobOfBundle(ParseBundle(text.dump()).value(), kSuites).terms)["p"], 1.5);
  text["terms"] = Json::object();
  const Bundle bundle = ParseBundle(text.dump()).value();
  const Json terms = Json::parse(JobOfBundle(bundle, kSuites).terms);
  EXPECT_EQ(terms["p"], bundle.verdict.speed->threshold);
  EXPECT_EQ(terms["baseline"], bundle.verdict.speed->headline);
  EXPECT_FALSE(terms.contains("correctness_only"));
  Json checked = Text(SampleVerdict(Outcome::kCorrect));
  checked["terms"] = Json::object();
  EXPECT_EQ(
      Json::parse(
          JobOfBundle(ParseBundle(checked.dump()).value(), kSuites).terms)["correctness_only"],
      true);
}

TEST(ParseVerdictUrl, TakesPagesDocumentsAndBundles) {
  for (const char* path : {"/verdicts/3f2a", "/api/verdicts/3f2a", "/api/verdicts/3f2a/bundle",
                           "/verdicts/3f2a/", "/verdicts/3f2a?x=1#y"}) {
    const auto url = ParseVerdictUrl(std::string("https://a.example/assay") + path);
    ASSERT_TRUE(url) << path;
    EXPECT_EQ(url->server, "https://a.example/assay");
    EXPECT_EQ(url->id, "3f2a");
  }
  for (const char* url : {"https://a.example", "https://a.example/verdicts/",
                          "https://a.example/verdicts/../x", "3f2a"})
    EXPECT_FALSE(ParseVerdictUrl(url)) << url;
}

TEST(Compare, AgreesByOutcomeAndOverlap) {
  const Verdict there = SampleVerdict(Outcome::kFaster);
  Verdict here = there;
  EXPECT_EQ(Compare(there, here).kind, Agreement::Kind::kAgrees);
  BaselineResult& result = here.speed->baselines.at(here.speed->headline);
  result.ci_low = there.speed->baselines.at(there.speed->headline).ci_high * 1.1;
  result.ci_high = result.ci_low * 1.1;
  EXPECT_EQ(Compare(there, here).kind, Agreement::Kind::kDiffers);
  EXPECT_THAT(Compare(there, here).text, HasSubstr("do not overlap"));
  EXPECT_EQ(Compare(there, SampleVerdict(Outcome::kWrong)).kind, Agreement::Kind::kDiffers);
  EXPECT_EQ(Compare(there, SampleVerdict(Outcome::kUnsettled)).kind, Agreement::Kind::kUndecided);
  const Verdict wrong = SampleVerdict(Outcome::kWrong);
  EXPECT_EQ(Compare(wrong, wrong).kind, Agreement::Kind::kAgrees);
}

}  // namespace
}  // namespace assay
