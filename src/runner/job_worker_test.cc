#include "runner/job_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runner/runner_testing.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const char* const kLine = R"({"id":"job","request":"judge"})";
const char* const kEnvironmentError =
    R"({"event":"error","id":"job","kind":"environment","message":"no memory"})";

class Judging : public ::testing::Test {
 protected:
  Result<std::string> Judge(OneWorker& fleet, double seconds_max = 600, StopToken stop = {}) {
    time_.tick_s = 0.1;
    JobWorker worker(fleet, time_.Repeats().now_ns);
    return worker.Judge(
        kLine, seconds_max,
        [this](const std::string& event) {
          if (!event.empty()) events_.push_back(Json::parse(event)["stage"]);
          return !cancelled_;
        },
        stop);
  }
  FakeTime time_;
  std::vector<std::string> events_;
  bool cancelled_ = false;
};

TEST_F(Judging, GivesTheVerdictAndTheEventsBeforeIt) {
  OneWorker fleet([](const std::string&) -> std::vector<std::string> {
    return {WorkerProgress("building"), WorkerProgress("speed"), WorkerVerdict("faster"),
            kWorkerDone};
  });
  EXPECT_EQ(Judge(fleet).value(), R"({"outcome":"faster"})");
  EXPECT_THAT(events_, ElementsAre("building", "speed"));
  EXPECT_EQ(fleet.starts, 1);
}

TEST_F(Judging, AKnownBuildIsAnsweredByItsEvent) {
  const std::string known = R"({"event":"known","id":"job","candidate":0,"artifact":"a1"})";
  OneWorker fleet([&](const std::string&) -> std::vector<std::string> {
    return {known, kWorkerDone};
  });
  EXPECT_EQ(Judge(fleet).value(), known);
}

TEST_F(Judging, ADeathOfTheWorkerIsOneRepeat) {
  int deaths = 1;
  OneWorker fleet([&](const std::string&) -> std::vector<std::string> {
    if (deaths-- > 0) return {WorkerProgress("building"), OneWorker::kDies};
    return {WorkerVerdict("wrong"), kWorkerDone};
  });
  EXPECT_EQ(Judge(fleet).value(), R"({"outcome":"wrong"})");
  EXPECT_EQ(fleet.starts, 2);
  deaths = 2;
  const auto judged = Judge(fleet);
  EXPECT_EQ(judged.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(judged.error().message, HasSubstr("the worker of cpu was killed by signal 9"));
}

TEST_F(Judging, AVerdictStandsThoughTheWorkerDiesAfterIt) {
  OneWorker fleet([&](const std::string&) -> std::vector<std::string> {
    return {WorkerVerdict("tie"), OneWorker::kDies};
  });
  EXPECT_EQ(Judge(fleet).value(), R"({"outcome":"tie"})");
  EXPECT_EQ(fleet.requests.size(), 1u);
}

TEST_F(Judging, RepeatsWhatTheMachineFailedButNotAWrongRequest) {
  OneWorker failing(
      [](const std::string&) -> std::vector<std::string> { return {kEnvironmentError}; });
  EXPECT_EQ(Judge(failing).error().message, "no memory");
  EXPECT_EQ(failing.requests.size(), 2u);
  OneWorker wrong([](const std::string&) -> std::vector<std::string> {
    return {R"({"event":"error","id":"job","kind":"usage","message":"no size huge"})"};
  });
  EXPECT_EQ(Judge(wrong).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(wrong.requests.size(), 1u);
}

TEST_F(Judging, DoesNotRepeatWhatTheMachineLacks) {
  OneWorker fleet([](const std::string&) -> std::vector<std::string> {
    return {R"({"event":"unjudged","id":"job","candidate":0,"message":"no CUDA"})",
            kEnvironmentError};
  });
  const auto judged = Judge(fleet);
  EXPECT_EQ(judged.error().kind, ErrorKind::kUnjudged);
  EXPECT_EQ(judged.error().message, "no CUDA");
  EXPECT_EQ(fleet.requests.size(), 1u);
}

TEST_F(Judging, ACancelledRequestEndsByItselfAndTheWorkerStaysWarm) {
  OneWorker fleet([&](const std::string& request) -> std::vector<std::string> {
    if (IsCancel(request)) return {kWorkerCancelled};
    cancelled_ = true;
    return {WorkerProgress("speed")};
  });
  EXPECT_EQ(Judge(fleet).error().kind, ErrorKind::kInterrupted);
  ASSERT_EQ(fleet.requests.size(), 2u);
  EXPECT_EQ(fleet.requests[1], R"({"request":"cancel","of":"job"})");
}

TEST_F(Judging, AWorkerThatDoesNotCancelIsKilled) {
  OneWorker fleet([&](const std::string&) -> std::vector<std::string> {
    cancelled_ = true;
    return {};
  });
  EXPECT_EQ(Judge(fleet).error().kind, ErrorKind::kInterrupted);
  EXPECT_EQ(fleet.kills, 1);
}

TEST_F(Judging, AJudgementHasAnEnd) {
  OneWorker fleet([](const std::string&) { return std::vector<std::string>(); });
  const auto judged = Judge(fleet, 60);
  EXPECT_EQ(judged.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(judged.error().message, HasSubstr("more than the 60 s"));
  EXPECT_EQ(fleet.starts, 1);
}

TEST_F(Judging, AWorkerThatDoesNotStartIsToldWithItsRemedy) {
  OneWorker fleet([](const std::string&) { return std::vector<std::string>(); });
  fleet.starts_well = false;
  EXPECT_THAT(Judge(fleet).error().message, HasSubstr("assay doctor"));
}

}  // namespace
}  // namespace assay
