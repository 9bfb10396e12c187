#include "worker_client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/sample_verdicts.h"

namespace assay {
namespace {

using Kind = WorkerEvent::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two workers, which say what the test has them say.
class ToldFleet : public Fleet {
 public:
  size_t size() const override { return 2; }
  std::string Name(size_t worker) const override { return "cuda:" + std::to_string(worker); }
  Result<void> Start(size_t worker, int) override {
    if (!starts_) return EnvironmentError("no processes are left");
    done_.push_back("start " + std::to_string(worker));
    return {};
  }
  void Send(size_t worker, const std::string& line) override {
    done_.push_back("send " + line);
    if (sent_) sent_(worker);
  }
  void Kill(size_t worker) override {
    done_.push_back("kill " + std::to_string(worker));
    std::erase_if(said_, [&](const Said& said) { return said.worker == worker; });
  }
  void Release(size_t worker) override {
    done_.push_back("release " + std::to_string(worker));
    if (obeys_) Die(worker, "ended with exit code 0");
  }
  void Interrupt(size_t worker) override {
    done_.push_back("interrupt " + std::to_string(worker));
    if (obeys_) Die(worker, "ended with exit code 0");
  }
  std::optional<Said> Wait(int timeout_ms) override {
    if (said_.empty()) {
      now_ns_ += int64_t{timeout_ms} * 1'000'000;
      return std::nullopt;
    }
    Said said = said_.front();
    said_.pop_front();
    return said;
  }

  void Say(size_t worker, const std::string& line) { said_.push_back({worker, line, ""}); }
  void Die(size_t worker, const std::string& end = "was killed by signal 9") {
    said_.push_back({worker, std::nullopt, end});
  }

  bool starts_ = true, obeys_ = true;
  std::function<void(size_t worker)> sent_;
  std::vector<std::string> done_;
  int64_t now_ns_ = 0;

 private:
  std::deque<Said> said_;
};

class Client : public ::testing::Test {
 protected:
  Client() : client_(fleet_, [this] { return fleet_.now_ns_; }) {}
  // Starts the worker and asks it, in the name of request `id`.
  void Ask(const std::string& id, std::vector<size_t> items, size_t worker = 0,
           bool tried = false) {
    ASSERT_TRUE(client_.Start(worker, 1));
    client_.Ask(worker, id, "ask " + id, {std::move(items), tried});
  }
  // All events that are there, in short.
  std::vector<std::string> Heard() {
    std::vector<std::string> all;
    while (client_.busy()) {
      const auto event = client_.Wait(1);
      if (!event) break;
      all.push_back(Short(*event));
    }
    return all;
  }
  static std::string Short(const ClientEvent& event) {
    const std::string of = std::to_string(event.worker) + ":";
    if (event.kind == Kind::kDone) return of + "done";
    if (event.kind == Kind::kProgress) return of + event.text;
    if (event.kind == Kind::kFailed || event.kind == Kind::kEnded)
      return of + (event.kind == Kind::kFailed ? "failed " : "ended ") + Items(event.batch);
    EXPECT_TRUE(event.IsAnswer());
    return of + (event.Answer() ? "verdict " : "none ") + std::to_string(event.item());
  }
  static std::string Items(const WorkerBatch& batch) {
    std::string items;
    for (const size_t item : batch.items) items += std::to_string(item) + " ";
    return items + (batch.tried ? "tried" : "");
  }
  static std::string VerdictOn(const std::string& id, size_t candidate) {
    return VerdictLine(id, candidate, SampleVerdict(Outcome::kSlower));
  }

  ToldFleet fleet_;
  WorkerClient client_;
};

TEST_F(Client, NamesCandidatesByTheirOwnersNumbers) {
  Ask("a", {7, 5});
  fleet_.Say(0, ProgressLine("a", {JudgeStage::kSpeed, "pair 3", 0.5, 1, 2}));
  const auto progress = client_.Wait(1);
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->item(), 5u);
  fleet_.Say(0, VerdictOn("a", 1));
  fleet_.Say(0, UnjudgedLine("a", 0, {ErrorKind::kUnjudged, "no CUDA"}));
  fleet_.Say(0, DoneLine("a"));
  EXPECT_THAT(Heard(), ElementsAre("0:verdict 5", "0:none 7", "0:done"));
  EXPECT_FALSE(client_.busy());
}

TEST_F(Client, PassesGarbageOver) {
  Ask("a", {7});
  for (const char* line : {"garbage", "[]", R"({"event":"danced","id":"a"})"}) {
    fleet_.Say(0, line);
    EXPECT_FALSE(client_.Wait(1)) << line;
  }
  EXPECT_EQ(client_.requests(0), 1u);
}

TEST_F(Client, PassesOverWhatIsAboutNothingThatItAsked) {
  Ask("a", {7});
  for (const std::string& line :
       {VerdictOn("b", 0), VerdictOn("", 0), VerdictOn("a", 1), DoneLine("b"), ErrorLine("", {})}) {
    fleet_.Say(0, line);
    EXPECT_FALSE(client_.Wait(1)) << line;
  }
  fleet_.Say(1, VerdictOn("a", 0));
  EXPECT_FALSE(client_.Wait(1));
  fleet_.Say(0, ProgressLine("a", {JudgeStage::kSpeed, "pair 3", 0.5, 9, 10}));
  EXPECT_EQ(client_.Wait(1)->candidate, std::nullopt);
}

TEST_F(Client, ACandidateIsAnsweredOnce) {
  Ask("a", {7, 8});
  fleet_.Say(0, VerdictOn("a", 0));
  fleet_.Say(0, UnjudgedLine("a", 0, {}));
  EXPECT_EQ(Short(client_.Wait(1).value()), "0:verdict 7");
  EXPECT_FALSE(client_.Wait(1));
}

TEST_F(Client, AVerdictThatDoesNotParseIsAnAnswerWithoutOne) {
  Ask("a", {7});
  fleet_.Say(0, R"({"event":"verdict","id":"a","candidate":0,"verdict":{"outcome":"superb"}})");
  fleet_.Say(0, DoneLine("a"));
  EXPECT_THAT(Heard(), ElementsAre("0:none 7", "0:done"));
}

TEST_F(Client, WhatADoneRequestLeavesOutHasFailed) {
  Ask("a", {7, 8, 9}, 0, true);
  fleet_.Say(0, VerdictOn("a", 1));
  fleet_.Say(0, DoneLine("a"));
  EXPECT_EQ(Short(client_.Wait(1).value()), "0:verdict 8");
  const ClientEvent failed = client_.Wait(1).value();
  EXPECT_EQ(Short(failed), "0:failed 7 9 tried");
  EXPECT_EQ(failed.error.message, "the worker gave no verdict on it");
}

TEST_F(Client, AnErrorAfterAllAnswersIsAnEnd) {
  Ask("a", {7});
  fleet_.Say(0, UnjudgedLine("a", 0, {ErrorKind::kUnjudged, "no CUDA"}));
  fleet_.Say(0, ErrorLine("a", {ErrorKind::kUnjudged, "no CUDA"}));
  EXPECT_THAT(Heard(), ElementsAre("0:none 7", "0:done"));
}

TEST_F(Client, NothingIsHeardOfARequestThatHasEnded) {
  Ask("a", {7});
  fleet_.Say(0, ErrorLine("a", {ErrorKind::kUsage, "no size huge"}));
  fleet_.Say(0, VerdictOn("a", 0));
  fleet_.Say(0, DoneLine("a"));
  const ClientEvent failed = client_.Wait(1).value();
  EXPECT_EQ(failed.kind, Kind::kFailed);
  EXPECT_EQ(failed.error.kind, ErrorKind::kUsage);
  EXPECT_FALSE(client_.Wait(1));
  EXPECT_FALSE(client_.Wait(1));
}

TEST_F(Client, RequestsOfAWorkerAreServedInTheirOrder) {
  Ask("a", {7});
  Ask("b", {8});
  fleet_.Say(0, VerdictOn("b", 0));
  EXPECT_FALSE(client_.Wait(1));
  fleet_.Say(0, VerdictOn("a", 0));
  fleet_.Say(0, DoneLine("a"));
  fleet_.Say(0, VerdictOn("b", 0));
  fleet_.Say(0, DoneLine("b"));
  EXPECT_THAT(Heard(), ElementsAre("0:verdict 7", "0:done", "0:verdict 8", "0:done"));
}

TEST_F(Client, ADeathGivesBackAllThatTheWorkerHad) {
  Ask("a", {7, 8, 9});
  Ask("b", {1}, 0, true);
  fleet_.Say(0, VerdictOn("a", 0));
  fleet_.Die(0);
  EXPECT_EQ(Short(client_.Wait(1).value()), "0:verdict 7");
  const ClientEvent ended = client_.Wait(1).value();
  EXPECT_EQ(Short(ended), "0:ended 8 9 ");
  EXPECT_EQ(ended.error.message, "the worker of cuda:0 was killed by signal 9");
  ASSERT_EQ(ended.waiting.size(), 1u);
  EXPECT_EQ(Items(ended.waiting[0]), "1 tried");
  EXPECT_FALSE(client_.runs(0));
  EXPECT_FALSE(client_.busy());
}

TEST_F(Client, AWorkerThatDiesBetweenRequestsHasEndedToo) {
  ASSERT_TRUE(client_.Start(0, 1));
  fleet_.Die(0);
  EXPECT_EQ(Short(client_.Wait(1).value()), "0:ended ");
  EXPECT_TRUE(client_.Start(0, 1));
  EXPECT_TRUE(client_.Start(0, 1));
  EXPECT_THAT(fleet_.done_, ElementsAre("start 0", "start 0"));
}

TEST_F(Client, ASilentWorkerIsKilledAndHasEnded) {
  Ask("a", {7});
  Ask("b", {8}, 1);
  fleet_.now_ns_ += int64_t{29} * 60 * 1'000'000'000;
  fleet_.Say(1, ProgressLine("b", {}));
  EXPECT_TRUE(client_.Wait(1));
  fleet_.now_ns_ += int64_t{61} * 1'000'000'000;
  const ClientEvent ended = client_.Wait(1).value();
  EXPECT_EQ(Short(ended), "0:ended 7 ");
  EXPECT_THAT(ended.error.message, HasSubstr("said nothing for half an hour"));
  EXPECT_EQ(fleet_.done_.back(), "kill 0");
  EXPECT_FALSE(client_.Wait(1));
}

// A worker that had waited for work was taken for silent as soon as it got some.
TEST_F(Client, AWorkerMayWaitForWorkWithoutAWord) {
  ASSERT_TRUE(client_.Start(0, 1));
  fleet_.now_ns_ += int64_t{40} * 60 * 1'000'000'000;
  Ask("a", {7});
  EXPECT_FALSE(client_.Wait(1));
  EXPECT_TRUE(client_.runs(0));
}

TEST_F(Client, SilenceIsSeenWhileOthersTalk) {
  Ask("a", {7});
  fleet_.now_ns_ += int64_t{31} * 60 * 1'000'000'000;
  Ask("b", {8}, 1);
  fleet_.Say(1, VerdictOn("b", 0));
  fleet_.Say(1, DoneLine("b"));
  EXPECT_THAT(Heard(), ElementsAre("1:verdict 8", "0:ended 7 ", "1:done"));
}

TEST_F(Client, AWorkerThatDoesNotStartIsNotRunning) {
  fleet_.starts_ = false;
  EXPECT_FALSE(client_.Start(0, 1));
  EXPECT_FALSE(client_.runs(0));
}

TEST_F(Client, ACancelledRequestEndsByItself) {
  Ask("a", {7});
  fleet_.sent_ = [&](size_t worker) {
    fleet_.Say(1, ReadyLine("1.0"));
    fleet_.Say(worker, VerdictOn("a", 0));
    fleet_.Say(worker, ErrorLine("a", {ErrorKind::kInterrupted, "interrupted"}));
  };
  client_.Cancel(0);
  EXPECT_EQ(fleet_.done_.back(), R"(send {"request":"cancel","of":"a"})");
  EXPECT_TRUE(client_.runs(0));
  EXPECT_EQ(client_.requests(0), 0u);
  EXPECT_EQ(client_.Wait(1).value().kind, Kind::kReady);
  EXPECT_FALSE(client_.Wait(1));
}

TEST_F(Client, AWorkerThatDoesNotCancelIsKilled) {
  Ask("a", {7});
  client_.Cancel(0);
  EXPECT_EQ(fleet_.done_.back(), "kill 0");
  EXPECT_FALSE(client_.runs(0));
  EXPECT_FALSE(client_.busy());
}

TEST_F(Client, RetiringAWorkerLosesNothingOfOthers) {
  Ask("a", {7}, 1);
  ASSERT_TRUE(client_.Start(0, 1));
  fleet_.Say(1, VerdictOn("a", 0));
  client_.Retire(0);
  EXPECT_FALSE(client_.runs(0));
  EXPECT_EQ(fleet_.done_.back(), "release 0");
  EXPECT_EQ(Short(client_.Wait(1).value()), "1:verdict 7");
}

TEST_F(Client, AKilledWorkersRequestsComeBack) {
  Ask("a", {7, 8});
  Ask("b", {9});
  fleet_.Say(0, VerdictOn("a", 0));
  EXPECT_TRUE(client_.Wait(1));
  const auto rests = client_.Kill(0);
  ASSERT_EQ(rests.size(), 2u);
  EXPECT_THAT(rests[0].items, ElementsAre(8u));
  EXPECT_THAT(rests[1].items, ElementsAre(9u));
}

TEST_F(Client, AtTheEndVerdictsThatStandAreHeard) {
  Ask("a", {7}, 1);
  ASSERT_TRUE(client_.Start(0, 1));
  fleet_.Say(1, VerdictOn("a", 0));
  std::vector<std::string> heard;
  client_.Finish([&](const ClientEvent& event) { heard.push_back(Short(event)); });
  EXPECT_THAT(heard, ElementsAre("1:verdict 7"));
  EXPECT_THAT(fleet_.done_,
              ElementsAre("start 1", "send ask a", "start 0", "release 0", "interrupt 1"));
  EXPECT_FALSE(client_.busy());
}

TEST_F(Client, AtTheEndWorkersThatStayAreKilled) {
  Ask("a", {7});
  fleet_.obeys_ = false;
  client_.Finish([](const ClientEvent&) {});
  EXPECT_EQ(fleet_.done_.back(), "kill 0");
  EXPECT_GE(fleet_.now_ns_, 10'000'000'000);
}

TEST_F(Client, NothingIsHeardOfWhatWasAborted) {
  Ask("a", {7});
  fleet_.now_ns_ += int64_t{31} * 60 * 1'000'000'000;
  Ask("b", {8}, 1);
  fleet_.Say(1, VerdictOn("b", 0));
  EXPECT_TRUE(client_.Wait(1));
  client_.Abort();
  EXPECT_FALSE(client_.busy());
  EXPECT_THAT(Heard(), IsEmpty());
}

TEST_F(Client, IdsAreNewEachTime) { EXPECT_NE(client_.NewId(), client_.NewId()); }

}  // namespace
}  // namespace assay
