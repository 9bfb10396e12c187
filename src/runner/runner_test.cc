#include "runner/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "runner/runner_testing.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using Json = nlohmann::json;

Json JobNumber(int id) {
  return {{"lease", "lease-" + std::to_string(id)},
          {"lease_s", 60},
          {"job",
           {{"id", id},
            {"problem", {{"name", "mine"}, {"file", "x = 1\n"}}},
            {"candidate", {{"name", "mine.cpp"}, {"source", "int a;"}}},
            {"terms", Json::object()},
            {"seconds_max", 600}}}};
}

// A server with some jobs; once they are gone, the runner is stopped.
class Running : public ::testing::Test {
 protected:
  Running() : folder_(TemporaryFolder::Create().value()) {
    judge_ = [](const std::string&) -> std::vector<std::string> {
      return {WorkerProgress("speed"), WorkerVerdict("faster"), kWorkerDone};
    };
    end_ = [](const Json&) { return FakeServer::Says(200, R"({"counted":true})"); };
    progress_ = [](const Json&) { return FakeServer::Says(200, R"({"go_on":true})"); };
  }

  HttpReply Answer(const HttpRequest& request) {
    const Json body = Json::parse(request.body);
    if (request.url.ends_with("/take")) {
      ++takes_;
      if (away_-- > 0) return FakeServer::IsAway();
      if (take_status_ != 200) return FakeServer::Says(take_status_, "{}");
      if (jobs_ == 0) {
        stopped_ = true;
        return FakeServer::Says(204, "");
      }
      const int number = jobs_--;
      return FakeServer::Says(200, JobNumber(same_ ? 1 : number).dump());
    }
    if (request.url.ends_with("/end")) {
      ends_.push_back(request.url.substr(request.url.find("jobs/")) + " " + request.body);
      return end_(body);
    }
    reports_.push_back(body);
    return progress_(body);
  }

  Error Run() {
    const ServerLink server =
        LinkTo([this](const HttpRequest& request) { return Answer(request); });
    OneWorker fleet([this](const std::string& request) { return judge_(request); });
    fleet.idle = idle_;
    time_.tick_s = 0.05;
    const RepeatSurroundings repeats = time_.Repeats();
    JobWorker worker(fleet, repeats.now_ns);
    KeptResults results(folder_.path());
    JobFiles files = JobFiles::Create().value();
    RunnerTerms terms;
    terms.facts = {"box", "cpu", "1", ""};
    Runner runner(terms, {server, worker, results, files, repeats,
                          [this](const std::string& text) { said_.push_back(text); }});
    const Error error = runner.Run(StopToken(stopped_));
    kept_ = KeptResults(folder_.path()).size();
    return error;
  }

  const TemporaryFolder folder_;
  FakeTime time_;
  std::atomic<bool> stopped_ = false;
  int jobs_ = 1, away_ = 0, takes_ = 0, take_status_ = 200;
  bool same_ = false;  // all attempts are at one job
  size_t kept_ = 0;    // results on disk at the end
  OneWorker::Answer judge_;
  std::function<void()> idle_;
  std::function<HttpReply(const Json&)> end_, progress_;
  std::vector<std::string> ends_, said_;
  std::vector<Json> reports_;
};

TEST_F(Running, JudgesJobsAndEndsEachOnce) {
  jobs_ = 2;
  EXPECT_EQ(Run().kind, ErrorKind::kInterrupted);
  EXPECT_THAT(ends_,
              ElementsAre(R"(jobs/2/end {"lease":"lease-2","verdict":{"outcome":"faster"}})",
                          R"(jobs/1/end {"lease":"lease-1","verdict":{"outcome":"faster"}})"));
  EXPECT_EQ(kept_, 0u);
}

TEST_F(Running, AResultIsKeptUntilTheServerHasAnswered) {
  int refusals = 5;
  end_ = [&](const Json&) {
    // It is on disk while the server is away.
    EXPECT_EQ(KeptResults(folder_.path()).size(), 1u);
    if (refusals-- > 0) return refusals % 2 == 0 ? FakeServer::IsAway() : FakeServer::Says(503, "");
    return FakeServer::Says(200, R"({"counted":true})");
  };
  Run();
  EXPECT_EQ(ends_.size(), 6u);
  EXPECT_EQ(kept_, 0u);
  EXPECT_THAT(said_, Contains(HasSubstr("tries again")));
}

TEST_F(Running, AResultThatCannotBeToldIsToldByTheNextRunner) {
  end_ = [&](const Json&) {
    stopped_ = true;
    return FakeServer::IsAway();
  };
  EXPECT_EQ(Run().kind, ErrorKind::kInterrupted);
  EXPECT_EQ(kept_, 1u);
  EXPECT_THAT(said_, Contains(HasSubstr("starts again")));
  stopped_ = false;
  ends_.clear();
  jobs_ = 0;
  end_ = [](const Json&) { return FakeServer::Says(200, R"({"counted":true})"); };
  Run();
  EXPECT_THAT(ends_, ElementsAre(HasSubstr("jobs/1/end {\"lease\":\"lease-1\",\"verdict\"")));
  EXPECT_EQ(kept_, 0u);
}

TEST_F(Running, AResultThatDoesNotCountIsDropped) {
  end_ = [](const Json&) { return FakeServer::Says(200, R"({"counted":false})"); };
  Run();
  EXPECT_EQ(kept_, 0u);
  EXPECT_THAT(said_, Contains(HasSubstr("does not count")));
  jobs_ = 1;
  stopped_ = false;
  end_ = [](const Json&) { return FakeServer::Says(404, ""); };
  Run();
  EXPECT_EQ(kept_, 0u);
}

TEST_F(Running, WaitsLongerAndLongerForAServerThatIsAway) {
  away_ = 6;
  jobs_ = 0;
  Run();
  EXPECT_EQ(takes_, 7);
  // The jitter is the least there is: half.
  ASSERT_GE(time_.waits.size(), 6u);
  EXPECT_THAT(std::vector<double>(time_.waits.begin(), time_.waits.begin() + 6),
              ElementsAre(0.5, 1, 2, 4, 8, 16));
}

TEST_F(Running, ATokenThatIsNotAcceptedEndsIt) {
  take_status_ = 401;
  EXPECT_EQ(Run().kind, ErrorKind::kUsage);
}

TEST_F(Running, CancelsWhatTheServerWantsNoMore) {
  progress_ = [](const Json&) { return FakeServer::Says(200, R"({"go_on":false})"); };
  judge_ = [](const std::string& request) -> std::vector<std::string> {
    if (IsCancel(request)) return {kWorkerCancelled};
    return {WorkerProgress("building"), WorkerProgress("building"), WorkerProgress("building"),
            WorkerProgress("building"), WorkerProgress("building"), WorkerProgress("building")};
  };
  Run();
  EXPECT_EQ(reports_.size(), 1u);
  EXPECT_THAT(ends_, ElementsAre(HasSubstr(R"("kind":"interrupted")")));
  EXPECT_EQ(kept_, 0u);
}

TEST_F(Running, TellsThatItLivesWhileTheWorkerIsSilent) {
  int idle = 0;
  bool done = false;
  judge_ = [&](const std::string&) -> std::vector<std::string> {
    if (!done) return {};
    return {WorkerVerdict("faster"), kWorkerDone};
  };
  std::vector<int64_t> times;
  progress_ = [&](const Json& body) {
    EXPECT_FALSE(body.contains("event"));
    times.push_back(time_.now_ns);
    done = times.size() == 3;
    if (done) stopped_ = true;
    return FakeServer::Says(200, R"({"go_on":true})");
  };
  idle_ = [&] { time_.now_ns += 500'000'000, ++idle; };
  Run();
  ASSERT_EQ(times.size(), 3u);
  for (size_t i = 1; i < times.size(); ++i)
    EXPECT_THAT(static_cast<double>(times[i] - times[i - 1]) / 1e9, AllOf(Ge(15), Le(17)));
  EXPECT_THAT(ends_, ElementsAre(HasSubstr("interrupted")));
}

TEST_F(Running, ThinsOutProgress) {
  judge_ = [](const std::string&) {
    std::vector<std::string> lines(200, WorkerProgress("speed"));
    lines.push_back(WorkerVerdict("faster"));
    lines.emplace_back(kWorkerDone);
    return lines;
  };
  Run();
  EXPECT_THAT(reports_.size(), AllOf(Ge(3u), Le(40u)));
}

TEST_F(Running, CtrlCGivesTheJobBack) {
  judge_ = [this](const std::string& request) -> std::vector<std::string> {
    stopped_ = true;
    if (IsCancel(request)) return {kWorkerCancelled};
    return {};
  };
  EXPECT_EQ(Run().kind, ErrorKind::kInterrupted);
  EXPECT_THAT(ends_, ElementsAre(HasSubstr(R"("error":{"kind":"interrupted")")));
  EXPECT_EQ(kept_, 0u);
}

// A runner that ended was dead for good where nobody starts it again.
TEST_F(Running, AMachineThatFailsAllJobsWaitsLongerAndLongerAndGoesOn) {
  jobs_ = 7;
  judge_ = [](const std::string&) -> std::vector<std::string> { return {OneWorker::kDies}; };
  EXPECT_EQ(Run().kind, ErrorKind::kInterrupted);
  EXPECT_EQ(ends_.size(), 7u);
  EXPECT_THAT(ends_, Each(HasSubstr(R"("kind":"environment")")));
  EXPECT_THAT(said_, Contains(HasSubstr("3 jobs in a row had no verdict here")));
  EXPECT_THAT(time_.waits, ElementsAre(60, 120, Le(1)));
}

// One job that is too large for the machine came back three times, and was '3 jobs in a row'.
TEST_F(Running, AttemptsAtOneJobAreOneFailure) {
  jobs_ = 9;
  same_ = true;
  judge_ = [](const std::string&) -> std::vector<std::string> { return {OneWorker::kDies}; };
  EXPECT_EQ(Run().kind, ErrorKind::kInterrupted);
  EXPECT_EQ(ends_.size(), 9u);
  EXPECT_THAT(time_.waits, Each(Le(1)));
}

TEST_F(Running, AProblemThatDoesNotFitIsTheJobsEndAndNoFailure) {
  jobs_ = 5;
  judge_ = [](const std::string&) -> std::vector<std::string> {
    return {R"({"event":"unjudged","id":"job","candidate":0,"message":"it needs 500 GB"})",
            R"({"event":"error","id":"job","kind":"environment","message":"it needs 500 GB"})"};
  };
  EXPECT_EQ(Run().kind, ErrorKind::kInterrupted);
  EXPECT_EQ(ends_.size(), 5u);
  EXPECT_THAT(ends_, Each(HasSubstr(R"("kind":"unjudged")")));
  EXPECT_THAT(time_.waits, Each(Le(1)));
}

TEST_F(Running, AWrongJobIsToldAndIsNotTheMachinesFault) {
  jobs_ = 5;
  judge_ = [](const std::string&) -> std::vector<std::string> {
    return {R"({"event":"error","id":"job","kind":"usage","message":"no size"})"};
  };
  EXPECT_EQ(Run().kind, ErrorKind::kInterrupted);
  EXPECT_EQ(ends_.size(), 5u);
  EXPECT_THAT(ends_, Each(HasSubstr(R"("kind":"usage")")));
}

}  // namespace
}  // namespace assay
