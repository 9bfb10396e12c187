#include "runner/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "worker/protocol.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const std::vector<std::string> kSuites{std::string(ASSAY_SOURCE_DIRECTORY) + "/problems"};

std::string SoftmaxHash() { return InstalledProblem("softmax", kSuites).value().hash; }

Json Taken() {
  return {{"lease", "abc"},
          {"lease_s", 30},
          {"job",
           {{"id", 17},
            {"kind", "judge"},
            {"problem",
             {{"name", "softmax"},
              {"file", nullptr},
              {"hash", SoftmaxHash()},
              {"size", "tiny"},
              {"set", Json::object()}}},
            {"candidate", {{"name", "mine.cpp"}, {"source", "int a;"}}},
            {"opponent", nullptr},
            {"terms", {{"p", 2}}},
            {"seconds_max", 300}}}};
}

Result<Json> LineOf(const Json& taken, JobFiles& files) {
  TakenJob job;
  ASSAY_RETURN_IF_ERROR(ParseTakenJob(taken.dump(), &job));
  ASSAY_ASSIGN_OR_RETURN(const std::string line, WorkerLine(job, "cpu", kSuites, files));
  return Json::parse(line);
}

std::string ErrorOf(const Json& taken) {
  JobFiles files = JobFiles::Create().value();
  const auto line = LineOf(taken, files);
  return line ? "" : line.error().message;
}

TEST(WorkerLine, IsARequestThatAWorkerReads) {
  JobFiles files = JobFiles::Create().value();
  const auto line = LineOf(Taken(), files);
  ASSERT_TRUE(line) << line.error().message;
  std::string id;
  const auto request = ParseWorkerRequest(line->dump(), &id);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(id, kJobRequestId);
  EXPECT_EQ(request->kind, WorkerRequest::Kind::kJudge);
  EXPECT_THAT(request->terms.problem.problem, HasSubstr("problems/level1/softmax.py"));
  EXPECT_EQ(request->terms.problem.size, "tiny");
  EXPECT_EQ(request->terms.device, "cpu");
  EXPECT_EQ(request->terms.threshold, 2);
  ASSERT_EQ(request->candidates.size(), 1u);
  EXPECT_EQ(request->candidates[0].content, "int a;");
}

TEST(WorkerLine, WritesTheProblemsFileAndTheOpponent) {
  Json taken = Taken();
  taken["job"]["problem"] = {{"name", "mine"}, {"file", "x = 1\n"}, {"hash", Sha256Hex("x = 1\n")}};
  taken["job"]["opponent"] = {{"name", "other.cpp"}, {"source", "int b;"}};
  taken["job"]["terms"] = {{"correctness_only", true}};
  JobFiles files = JobFiles::Create().value();
  const auto line = LineOf(taken, files);
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ((*line)["request"], "check");
  const std::string problem = (*line)["terms"]["problem"], against = (*line)["terms"]["against"];
  EXPECT_THAT(problem, HasSubstr("/mine.py"));
  EXPECT_EQ(ReadFile(problem, 100).value(), "x = 1\n");
  EXPECT_EQ(ReadFile(against, 100).value(), "int b;");
  // A worker keeps its session as long as the path is the same.
  EXPECT_EQ((*LineOf(taken, files))["terms"]["problem"], problem);
}

TEST(WorkerLine, RefusesTermsThatNameFilesOrProgramsOfThisMachine) {
  for (const char* term : {"python", "against", "ragged", "anything"}) {
    Json taken = Taken();
    taken["job"]["terms"] = {{term, "/bin/sh"}};
    EXPECT_THAT(ErrorOf(taken), HasSubstr(term)) << term;
  }
}

TEST(WorkerLine, RefusesNamesThatArePaths) {
  for (const char* name : {"../softmax", "/etc/passwd", ".hidden", "-x", "", "a b", "a\nb"}) {
    Json problem = Taken(), candidate = Taken(), opponent = Taken(), file = Taken();
    problem["job"]["problem"]["name"] = name;
    candidate["job"]["candidate"]["name"] = name;
    opponent["job"]["opponent"] = {{"name", name}, {"source", "int b;"}};
    file["job"]["problem"] = {{"name", name}, {"file", "x"}};
    for (const Json& taken : {problem, candidate, opponent, file})
      EXPECT_NE(ErrorOf(taken), "") << name;
  }
}

TEST(WorkerLine, WantsTheServersVersionOfAProblem) {
  Json taken = Taken();
  taken["job"]["problem"]["hash"] = Sha256Hex("another");
  EXPECT_THAT(ErrorOf(taken), HasSubstr("another version of the problem softmax"));
  taken["job"]["problem"]["name"] = "sofmax";
  EXPECT_THAT(ErrorOf(taken), HasSubstr("no problem sofmax"));
  taken["job"]["problem"]["file"] = "x = 1";
  EXPECT_THAT(ErrorOf(taken), HasSubstr("hash"));
}

TEST(ParseTakenJob, ReadsWhatItNeedsToEndAJobFirst) {
  TakenJob job;
  ASSERT_TRUE(ParseTakenJob(Taken().dump(), &job));
  EXPECT_EQ(job.id, "17");
  EXPECT_EQ(job.lease, "abc");
  EXPECT_EQ(job.lease_s, 30);
  EXPECT_EQ(job.seconds_max, 300);
  TakenJob none;
  for (const char* text : {"", "[]", "{}", R"({"lease":"a","job":{}})", R"({"job":{"id":1}})",
                           R"({"lease":"a","job":{"id":"../1"}})"})
    EXPECT_FALSE(ParseTakenJob(text, &none)) << text;
}

TEST(Bodies, AreWhatTheServerReads) {
  const Json take = Json::parse(TakeBody({"box", "cpu", "1.0", ""}, 20));
  EXPECT_EQ(take.dump(),
            R"({"runner":"box","device":"cpu","version":"1.0","machine":null,"wait_s":20})");
  EXPECT_EQ(ProgressBody("l", ""), R"({"lease":"l"})");
  EXPECT_EQ(ProgressBody("l", R"({"event":"progress"})"),
            R"({"lease":"l","event":{"event":"progress"}})");
  EXPECT_EQ(VerdictBody("l", R"({"a":1})"), R"({"lease":"l","verdict":{"a":1}})");
  EXPECT_EQ(ErrorBody("l", {ErrorKind::kInterrupted, "m"}),
            R"({"lease":"l","error":{"kind":"interrupted","message":"m"}})");
  EXPECT_THAT(ErrorBody("l", {ErrorKind::kUnjudged, "m"}), HasSubstr(R"("kind":"unjudged")"));
  EXPECT_FALSE(FlagOf(R"({"go_on":false})", "go_on", true));
  EXPECT_TRUE(FlagOf("{}", "go_on", true));
  EXPECT_TRUE(FlagOf("rubbish", "go_on", true));
}

}  // namespace
}  // namespace assay
