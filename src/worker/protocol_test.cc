#include "worker/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::string& line) {
  std::string id;
  const auto request = ParseWorkerRequest(line, &id);
  return request ? "" : request.error().message;
}

TEST(WorkerProtocol, ReadsARequestToJudgeASource) {
  std::string id;
  const auto request = ParseWorkerRequest(
      R"({"id": "7", "request": "judge", "terms": {"problem": "softmax", "size": "tiny",
          "set": {"ROWS": 64, "NAME": "'x'"}, "p": 2, "threads": 1},
          "candidates": [{"name": "a.cpp", "source": "int x;"}]})",
      &id);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(id, "7");
  EXPECT_EQ(request->kind, WorkerRequest::Kind::kJudge);
  EXPECT_EQ(request->terms.problem.problem, "softmax");
  EXPECT_EQ(request->terms.problem.set.at("ROWS"), "64");
  EXPECT_EQ(request->terms.problem.set.at("NAME"), "'x'");
  EXPECT_EQ(request->terms.threshold, 2);
  ASSERT_EQ(request->candidates.size(), 1u);
  EXPECT_EQ(request->candidates[0].content, "int x;");
  EXPECT_EQ(request->candidates[0].form, CandidateForm::kNative);
}

TEST(WorkerProtocol, AClientsLineSaysWhatItMeant) {
  AskedTerms terms;
  terms.problem = {"softmax", "tiny", {{"ROWS", "64"}, {"NAME", "'x'"}}};
  terms.device = "cpu";
  terms.baselines = "eager,compiled";
  terms.weights = "constant";
  terms.skip_draws = "ties";
  terms.one_size = true;
  terms.probe = terms.profile = true;
  terms.threads = 2;
  terms.limits = {3, 40, "2G"};
  terms.effort.speed_budget_s = 7;
  terms.effort.futility = true;
  terms.threshold = 1.5;
  terms.bound = 2.25;
  const CandidateSource candidate = CandidateFromText("a b.cpp", "int x; // \"é\"").value();
  std::string id;
  const auto request = ParseWorkerRequest(JudgeLine("7", terms, {&candidate}), &id);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(id, "7");
  EXPECT_EQ(request->kind, WorkerRequest::Kind::kJudge);
  EXPECT_EQ(TermsText(request->terms), TermsText(terms));
  ASSERT_EQ(request->candidates.size(), 1u);
  EXPECT_EQ(request->candidates[0].path, "a b.cpp");
  EXPECT_EQ(request->candidates[0].hash, candidate.hash);
  terms.effort.correctness_only = true;
  EXPECT_EQ(ParseWorkerRequest(JudgeLine("7", terms, {&candidate}), &id)->kind,
            WorkerRequest::Kind::kCheck);
  EXPECT_NE(TermsText(request->terms), TermsText(terms));
  EXPECT_EQ(TermsText(AskedTerms()), "{}");
}

TEST(WorkerProtocol, AsksForADescription) {
  AskedTerms terms;
  terms.problem.problem = "softmax";
  terms.effort.correctness_only = true;
  std::string id;
  const auto request = ParseWorkerRequest(DescribeLine("7", terms), &id);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(id, "7");
  EXPECT_EQ(request->kind, WorkerRequest::Kind::kDescribe);
  EXPECT_EQ(request->terms.problem.problem, "softmax");
}

TEST(WorkerProtocol, TakesCodeOutOfAnAnswer) {
  std::string id;
  const auto request = ParseWorkerRequest(
      R"({"id": "7", "request": "judge", "terms": {"problem": "softmax"}, "candidates": [)"
      R"({"name": "a.py", "source": "Here it is:\n```python\nclass ModelNew:\n    x = 1\n```\n"},)"
      R"({"name": "b.py", "source": "class ModelNew:\n    x = 1\n", "note": "my note"}]})",
      &id);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->candidates[0].content, request->candidates[1].content);
  EXPECT_THAT(request->candidates[0].note, HasSubstr("taken out of a model's answer"));
  EXPECT_EQ(request->candidates[1].note, "my note");
}

TEST(WorkerProtocol, KnownArtifactsAreNoneOrAList) {
  const CandidateSource candidate = CandidateFromText("a.cpp", "int x;").value();
  std::string id;
  AskedTerms terms;
  terms.problem.problem = "softmax";
  const auto known = [&](const std::optional<std::set<std::string>>& artifacts) {
    return ParseWorkerRequest(JudgeLine("7", terms, {&candidate}, artifacts), &id).value().known;
  };
  EXPECT_EQ(known(std::nullopt), std::nullopt);
  EXPECT_EQ(known(std::set<std::string>()), std::set<std::string>());
  EXPECT_EQ(known(std::set<std::string>{"b", "a"}), (std::set<std::string>{"a", "b"}));
}

TEST(WorkerProtocol, ErrorsNameTheField) {
  EXPECT_THAT(ErrorOf("no JSON"), HasSubstr("one JSON object"));
  EXPECT_THAT(ErrorOf(R"({"id": "1", "request": "guess"})"), HasSubstr("use judge, check"));
  EXPECT_THAT(ErrorOf(R"({"id": "1", "request": "judge", "term": {}})"), HasSubstr("term is no"));
  EXPECT_THAT(ErrorOf(R"({"id": "1", "request": "describe", "terms": {"sizes": "tiny"}})"),
              HasSubstr("terms.sizes is no field"));
  EXPECT_THAT(ErrorOf(R"({"id": "1", "request": "describe", "terms": {"threads": "two"}})"),
              HasSubstr("terms.threads has a value of the wrong kind"));
  EXPECT_THAT(ErrorOf(R"({"id": "1", "request": "describe"})"), HasSubstr("terms.problem is miss"));
  EXPECT_THAT(ErrorOf(R"({"request": "describe", "terms": {"problem": "a"}})"),
              HasSubstr("id is missing"));
  const std::string judge = R"({"id": "1", "request": "judge", "terms": {"problem": "softmax"})";
  EXPECT_THAT(ErrorOf(judge + "}"), HasSubstr("candidates is missing"));
  EXPECT_THAT(ErrorOf(judge + R"(, "candidates": [{"name": "a.rs", "source": "x"}]})"),
              HasSubstr("must end in .cpp"));
  EXPECT_THAT(ErrorOf(judge + R"(, "candidates": [{"name": "a.cpp"}]})"), HasSubstr("a source"));
  EXPECT_THAT(ErrorOf(judge + R"(, "candidates": [], "known": "a"})"),
              HasSubstr("known has a value of the wrong kind"));
}

TEST(WorkerProtocol, TheIdIsKnownEvenOfARequestThatIsRefused) {
  std::string id;
  EXPECT_FALSE(ParseWorkerRequest(R"({"id": "9", "request": "guess"})", &id));
  EXPECT_EQ(id, "9");
}

}  // namespace
}  // namespace assay
