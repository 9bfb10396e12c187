#include "cluster/pilot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cluster/cluster_testing.h"
#include "cluster/worker_table.h"
#include "runner/runner_testing.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr const char* kVerdict =
    R"({"event":"verdict","id":"job","candidate":0,"verdict":{"outcome":"correct"}})";
constexpr const char* kDone = R"({"event":"done","id":"job"})";
constexpr const char* kFails =
    R"({"event":"error","id":"job","kind":"environment","message":"no memory"})";

class PilotTest : public ::testing::Test {
 protected:
  PilotTest() : queue_(at_.Open()) { Serve({kVerdict, kDone}); }

  void Serve(std::vector<std::string> answer) {
    fleet_ = std::make_unique<OneWorker>([this, answer](const std::string&) {
      ++requests_;
      if (on_request_) on_request_();
      return answer;
    });
  }
  void Add(const std::string& key, const std::string& version = std::string(kAssayVersion)) {
    AskedTerms terms;
    terms.problem.problem = at_.Problem();
    WorkRequest request =
        MakeWorkRequest(terms, CandidateFromText("mine.py", "class ModelNew: pass").value(), {})
            .value();
    request.version = version;
    ASSERT_TRUE(
        queue_->Add(std::vector<NewWork>{{"run", key, "g", "cpu", 0, WorkRequestText(request)}}));
  }
  Error Run(PilotTerms terms = {}) {
    terms.facts.name = "n1-cpu-1";
    terms.facts.node = "n1";
    terms.facts.device = "cpu";
    terms.facts.version = kAssayVersion;
    if (!(terms.idle_stop_s > 0)) terms.idle_stop_s = 1;
    JobFiles files = JobFiles::Create().value();
    time_.tick_s = 0.2;
    JobWorker worker(*fleet_, time_.Repeats().now_ns);
    Pilot pilot(terms, {*queue_, worker, files, time_.Repeats(), [this](const std::string& line) {
                          said_.push_back(line);
                          if (on_say_) on_say_(line);
                        }});
    return pilot.Run(StopToken(stop_));
  }
  std::vector<EndedWork> Ended() { return queue_->Ended("run", 0, 100).value(); }

  FolderWithQueue at_;
  std::unique_ptr<WorkQueue> queue_;
  std::unique_ptr<OneWorker> fleet_;
  std::function<void()> on_request_;
  std::function<void(const std::string&)> on_say_;
  FakeTime time_;
  std::atomic<bool> stop_{false};
  int requests_ = 0;
  std::vector<std::string> said_;
};

TEST_F(PilotTest, JudgesWhatIsQueuedAndEndsWhenIdle) {
  Add("a");
  Add("b");
  EXPECT_EQ(Run().kind, ErrorKind::kInterrupted);
  ASSERT_EQ(Ended().size(), 2U);
  EXPECT_EQ(Ended()[0].state, WorkState::kJudged);
  EXPECT_EQ(Ended()[0].end.verdict, R"({"outcome":"correct"})");
  EXPECT_EQ(Ended()[0].node, "n1");
}

TEST_F(PilotTest, HandsBackAtSigterm) {
  Add("a");
  Serve({});
  on_request_ = [this] { stop_ = true; };
  EXPECT_EQ(Run().kind, ErrorKind::kInterrupted);
  EXPECT_EQ(queue_->Counts("run")->queued, 1);
  EXPECT_THAT(said_, Contains(HasSubstr("handed back")));
}

TEST_F(PilotTest, HandsBackWhenItsTimeIsOver) {
  Add("a");
  Serve({});
  PilotTerms terms;
  terms.stop_after_s = 30;
  const Error end = Run(terms);
  EXPECT_THAT(end.message, HasSubstr("time is over"));
  EXPECT_EQ(queue_->Counts("run")->queued, 1);
  EXPECT_GE(time_.now_ns, int64_t{30'000'000'000});
}

TEST_F(PilotTest, ANodeThatCannotJudgeIsDrainedAndItsWorkGoesToOthers) {
  Serve({kFails});
  Add("a");
  Add("b");
  const Error end = Run();
  EXPECT_EQ(end.kind, ErrorKind::kEnvironment);
  EXPECT_THAT(end.message, HasSubstr("no memory"));
  EXPECT_THAT(queue_->Workers()->front().drained, HasSubstr("assay doctor"));
  const auto counts = queue_->Counts("run");
  EXPECT_EQ(counts->judged, 0);
  EXPECT_EQ(counts->queued + counts->failed, 2);
}

TEST_F(PilotTest, RefusesTheWorkOfAnotherVersionWithBothNamed) {
  Add("a", "9.9.9");
  const Error end = Run();
  EXPECT_EQ(end.kind, ErrorKind::kUsage);
  EXPECT_THAT(end.message, HasSubstr("9.9.9"));
  EXPECT_THAT(end.message, HasSubstr(std::string(kAssayVersion)));
  EXPECT_EQ(requests_, 0);
  EXPECT_EQ(queue_->Counts("run")->queued, 1) << "another node may have the version";
  EXPECT_THAT(WorkerTable(*queue_->Workers(), *queue_->Counts(""), 60), HasSubstr("9.9.9"));
}

TEST_F(PilotTest, WorkThatIsWrongEndsAtOnce) {
  ASSERT_TRUE(queue_->Add(std::vector<NewWork>{{"run", "a", "g", "cpu", 0, "no JSON"}}));
  (void)Run();
  ASSERT_EQ(Ended().size(), 1U);
  EXPECT_EQ(Ended()[0].state, WorkState::kFailed);
  EXPECT_THAT(Ended()[0].end.error, HasSubstr("usage"));
}

TEST_F(PilotTest, KeepsAVerdictWhileTheQueueCannotBeUsed) {
  Add("a");
  const std::filesystem::path ends = std::filesystem::path(at_.place) / "ends",
                              away = std::filesystem::path(at_.place) / "away";
  on_request_ = [&] {
    std::filesystem::rename(ends, away);
    (void)WriteFileAtomically(ends, "in the way");
  };
  on_say_ = [&](const std::string& line) {
    if (line.find("tries again") == std::string::npos) return;
    std::filesystem::remove(ends);
    std::filesystem::rename(away, ends);
  };
  (void)Run();
  EXPECT_THAT(said_, Contains(HasSubstr("Not a directory; tries again")));
  EXPECT_EQ(requests_, 1) << "it is judged once";
  ASSERT_EQ(Ended().size(), 1U);
  EXPECT_EQ(Ended()[0].state, WorkState::kJudged);
  EXPECT_EQ(Ended()[0].attempts, 1);
}

TEST_F(PilotTest, LetsCancelledWorkGo) {
  Add("a");
  Serve({});
  on_request_ = [this] { (void)queue_->Cancel("run"); };
  (void)Run();
  EXPECT_EQ(queue_->Counts("run")->cancelled, 1);
  EXPECT_THAT(said_, Contains(HasSubstr("wants it no more")));
}

TEST(WorkRequest, IsReadAsItWasWrittenAndNamesNoFileOfTheController) {
  const FolderWithQueue at;
  AskedTerms terms;
  terms.problem.problem = at.Problem();
  terms.problem.set = {{"ROWS", "64"}};
  terms.python = "/opt/python";
  terms.threshold = 1.5;
  const auto request =
      MakeWorkRequest(terms, CandidateFromText("runs/x/mine.py", "pass").value(), {});
  ASSERT_TRUE(request) << request.error().message;
  const auto read = ParseWorkRequest(WorkRequestText(*request));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->version, kAssayVersion);
  EXPECT_EQ(read->job.candidate.name, "mine.py");
  EXPECT_EQ(*read->job.file, "import torch\n");
  JobFiles files = JobFiles::Create().value();
  auto line = nlohmann::json::parse(*LineOfRequest(*read, "cpu", {}, files));
  EXPECT_EQ(line["terms"]["p"], 1.5);
  EXPECT_EQ(line["terms"]["python"], "/opt/python");
  EXPECT_EQ(line["terms"]["problem"], terms.problem.problem) << "the node sees the same file";
  EXPECT_EQ(line["terms"]["set"]["ROWS"], "64");
  ASSERT_TRUE(WriteFileAtomically(terms.problem.problem, "import torch  # another\n"));
  line = nlohmann::json::parse(*LineOfRequest(*read, "cpu", {}, files));
  EXPECT_NE(line["terms"]["problem"], terms.problem.problem);
  EXPECT_EQ(*ReadFile(line["terms"]["problem"].get<std::string>(), 1000), "import torch\n");
}

}  // namespace
}  // namespace assay
