#include "search/env_judge.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "search/search_testing.h"
#include "worker_client/event.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Json = nlohmann::json;

std::string IdOf(const std::string& request) { return Json::parse(request)["id"]; }

double ScoreOf(const std::string& source) { return source.contains("fast") ? 2 : 0; }

EnvTask TaskOf(const std::string& problem, const std::string& source) {
  EnvTask task;
  task.terms.problem.problem = problem;
  task.source = CandidateFromText("candidate.cpp", source).value();
  return task;
}

std::vector<std::string> Outcomes(const std::vector<Result<Verdict>>& verdicts) {
  std::vector<std::string> outcomes;
  for (const auto& verdict : verdicts)
    outcomes.push_back(verdict ? std::string(OutcomeName(verdict->outcome))
                               : verdict.error().message);
  return outcomes;
}

TEST(EnvJudge, JudgesEachProblemsCandidatesTogetherAndKeepsTheirOrder) {
  ScriptedFleet fleet(ScoreOf, 2);
  FleetEnvJudge judge(fleet);
  const std::vector<EnvTask> tasks = {TaskOf("softmax", "int fast;"), TaskOf("gelu", "int b;"),
                                      TaskOf("softmax", "int c;")};
  EXPECT_THAT(Outcomes(judge.Judge(tasks, {})), ElementsAre("faster", "wrong", "wrong"));
  ASSERT_EQ(fleet.requests.size(), 2u);
  EXPECT_EQ(Json::parse(fleet.requests[0])["terms"]["problem"], "softmax");
  EXPECT_EQ(Json::parse(fleet.requests[0])["candidates"].size(), 2u);
}

TEST(EnvJudge, AsksOnceMoreAfterTheMachinesFailure) {
  ScriptedFleet fleet(ScoreOf);
  int calls = 0;
  fleet.trouble = [&](const std::string& line) -> std::optional<std::vector<std::string>> {
    if (++calls > 1) return std::nullopt;
    return std::vector{ErrorLine(IdOf(line), {ErrorKind::kEnvironment, "no memory"})};
  };
  FleetEnvJudge judge(fleet);
  EXPECT_THAT(Outcomes(judge.Judge(std::vector{TaskOf("softmax", "int fast;")}, {})),
              ElementsAre("faster"));
  EXPECT_EQ(calls, 2);
}

TEST(EnvJudge, GivesUpAfterTwoFailuresAndStartsADeadWorkerAgain) {
  ScriptedFleet fleet(ScoreOf);
  fleet.trouble = [&](const std::string&) {
    return std::vector<std::string>{ScriptedFleet::kDies};
  };
  FleetEnvJudge judge(fleet);
  EXPECT_THAT(Outcomes(judge.Judge(std::vector{TaskOf("softmax", "int a;")}, {})),
              ElementsAre("the worker of cpu was killed by signal 9"));
  EXPECT_THAT(fleet.started(), ElementsAre(2));
}

TEST(EnvJudge, DoesNotRepeatABadRequest) {
  ScriptedFleet fleet(ScoreOf);
  fleet.trouble = [](const std::string& line) {
    return std::vector{ErrorLine(IdOf(line), {ErrorKind::kUsage, "no such size"})};
  };
  FleetEnvJudge judge(fleet);
  AskedTerms terms;
  terms.problem.problem = "softmax";
  const auto described = judge.Describe(terms, {});
  ASSERT_FALSE(described);
  EXPECT_EQ(described.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(fleet.requests.size(), 1u);
}

TEST(EnvJudge, Describes) {
  ScriptedFleet fleet(ScoreOf);
  fleet.trouble = [](const std::string& line) {
    const nlohmann::json event = {
        {"id", IdOf(line)}, {"event", "description"}, {"signature", {"input x float32[2]"}}};
    return std::vector{event.dump(), DoneLine(IdOf(line))};
  };
  FleetEnvJudge judge(fleet);
  EXPECT_THAT(judge.Describe({}, {}).value(), ElementsAre("input x float32[2]"));
  EXPECT_EQ(Json::parse(fleet.requests[0])["request"], "describe");
}

TEST(EnvJudge, StopsWhenItIsTold) {
  ScriptedFleet fleet(ScoreOf);
  const std::atomic<bool> stopped = true;
  FleetEnvJudge judge(fleet);
  EXPECT_EQ(
      judge.Judge(std::vector{TaskOf("softmax", "int a;")}, StopToken(stopped))[0].error().kind,
      ErrorKind::kInterrupted);
}

}  // namespace
}  // namespace assay
