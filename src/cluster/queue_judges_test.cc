#include "cluster/queue_judges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cluster/cluster_testing.h"
#include "cluster/work_request.h"
#include "worker_client/event.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class CountedPilots : public Pilots {
 public:
  Result<std::vector<std::string>> Tend(const PilotDemand& demand,
                                        std::span<const KnownWorker>) override {
    demands.push_back(demand);
    return std::vector<std::string>{};
  }
  void End() override { ++ends; }
  std::vector<PilotDemand> demands;
  int ends = 0;
};

class QueueJudgesTest : public ::testing::Test {
 protected:
  QueueJudgesTest() : queue_(at_.Open()), pilot_(at_.Open()) { Begin(); }
  // As another process that goes on with the search.
  void Begin() {
    judges_.reset();
    queue_ = at_.Open();
    QueueJudgesTerms terms;
    terms.run = "run";
    terms.screening.problem.problem = at_.Problem();
    terms.screening.device = "cpu";
    terms.confirming = terms.screening;
    terms.screening.one_size = true;
    terms.nodes = nodes_;
    terms.supervisor.tend_s = 0;
    terms.look_s = 0;
    judges_ = std::make_unique<QueueJudges>(*queue_, &pilots_, terms, SupervisorEvents{});
  }
  void Add(const std::string& key, bool confirms = false) {
    judges_->Add({key, CandidateFromText("mine.cpp", "int n; // " + key).value(), confirms});
  }
  // Ends up to `most` works by the answer to their request.
  using Answer = std::function<WorkEnd(const Json& request)>;
  void JudgeSome(int most, const Answer& answer = Faster) {
    const WorkerFacts worker{"w", "n1", "cpu", "", "", "", ""};
    for (int i = 0; i < most; ++i) {
      const auto claimed = pilot_->Claim(worker, 1);
      if (claimed->empty()) return;
      requests_.push_back(Json::parse(claimed->front().request));
      EXPECT_TRUE(*pilot_->End(worker, claimed->front(), answer(requests_.back())));
    }
  }
  static WorkEnd Faster(const Json&) {
    return {VerdictToJson(SampleVerdict(Outcome::kFaster), -1), "", false};
  }
  static Answer Fails(const std::string& kind) {
    return [kind](const Json&) {
      return WorkEnd{"", Json{{"kind", kind}, {"message", "no disk"}}.dump(), false};
    };
  }
  // "verdict", "known ARTIFACT" or an error's message, by step.
  std::map<std::string, std::string> Heard() {
    std::map<std::string, std::string> all;
    const auto judged = judges_->Wait(0);
    if (!judged) {
      all["error"] = judged.error().message;
      return all;
    }
    for (const JudgedTask& task : *judged)
      all[task.key] = task.verdict ? "verdict"
                      : task.error ? task.error->message
                                   : "known " + task.known;
    return all;
  }

  const FolderWithQueue at_;
  int nodes_ = 8;
  std::unique_ptr<WorkQueue> queue_, pilot_;
  CountedPilots pilots_;
  std::unique_ptr<QueueJudges> judges_;
  std::vector<Json> requests_;
};

TEST_F(QueueJudgesTest, LooksAndConfirmationsAreJudgedOnTheirTerms) {
  judges_->Know("a1");
  judges_->Race(1.5);
  Add("judge/0");
  Add("confirm/judge/1", true);
  EXPECT_TRUE(Heard().empty());
  EXPECT_EQ(pilots_.demands.back().works_left, 2);
  JudgeSome(2);
  EXPECT_THAT(Heard(), ElementsAre(std::pair("confirm/judge/1", "verdict"),
                                   std::pair("judge/0", "verdict")));
  EXPECT_TRUE(Heard().empty());
  EXPECT_EQ(pilots_.demands.back().works_left, 0);
  EXPECT_EQ(pilots_.demands.back().works_ended, 2);
  ASSERT_EQ(requests_.size(), 2U);
  if (requests_[0].contains("fresh")) std::swap(requests_[0], requests_[1]);
  EXPECT_EQ(requests_[0]["known"], Json({"a1"}));
  EXPECT_EQ(requests_[0]["terms"]["bound"], 1.5);
  EXPECT_EQ(requests_[0]["terms"]["one_size"], true);
  EXPECT_EQ(requests_[1]["fresh"], true);
  EXPECT_FALSE(requests_[1].contains("known"));
  EXPECT_FALSE(requests_[1]["terms"].contains("one_size"));
}

TEST_F(QueueJudgesTest, WhatNoWorkerIsFreeForIsQueuedWithTheNewestBound) {
  nodes_ = 1;
  Begin();
  for (int i = 0; i < 4; ++i) Add("judge/" + std::to_string(i));
  EXPECT_TRUE(Heard().empty());
  EXPECT_EQ(pilot_->Counts("run")->queued, 2);
  EXPECT_EQ(pilots_.demands.back().works_left, 4);
  judges_->Race(2);
  JudgeSome(2);
  EXPECT_EQ(Heard().size(), 2U);
  EXPECT_EQ(pilot_->Counts("run")->queued, 2);
  JudgeSome(2);
  EXPECT_FALSE(requests_[1]["terms"].contains("bound"));
  EXPECT_EQ(requests_[2]["terms"]["bound"], 2);
  EXPECT_EQ(Heard().size(), 2U);
}

TEST_F(QueueJudgesTest, AKnownBuildIsTheAnswerInAVerdictsPlace) {
  Add("judge/0");
  EXPECT_TRUE(Heard().empty());
  JudgeSome(1, [](const Json&) { return WorkEnd{KnownLine(kJobRequestId, 0, "a1"), "", false}; });
  EXPECT_EQ(Heard().at("judge/0"), "known a1");
}

TEST_F(QueueJudgesTest, AProcessThatGoesOnFindsWhatWasJudgedMeanwhile) {
  Add("judge/0");
  Add("judge/1");
  EXPECT_TRUE(Heard().empty());
  EXPECT_EQ(judges_->judged_at_once(), 0U) << "a kill loses none";
  Begin();
  JudgeSome(1);
  Add("judge/0");
  Add("judge/1");
  EXPECT_EQ(Heard().size(), 1U);
  JudgeSome(5);
  EXPECT_EQ(Heard().size(), 1U);
  EXPECT_EQ(requests_.size(), 2U) << "each is judged once";
}

TEST_F(QueueJudgesTest, AWorkThatFailedForAnEarlierProcessIsTriedAgain) {
  Add("judge/0");
  EXPECT_TRUE(Heard().empty());
  JudgeSome(1, Fails("environment"));
  Begin();
  Add("judge/0");
  EXPECT_TRUE(Heard().empty());
  JudgeSome(1);
  EXPECT_EQ(Heard().at("judge/0"), "verdict");
}

TEST_F(QueueJudgesTest, AWrongRequestEndsAllUnlessOthersHadVerdicts) {
  Add("judge/0");
  EXPECT_TRUE(Heard().empty());
  JudgeSome(1, Fails("usage"));
  EXPECT_EQ(Heard().at("error"), "no disk");
  Begin();
  Add("judge/1");
  Add("judge/2");
  EXPECT_TRUE(Heard().empty());
  JudgeSome(1);
  EXPECT_EQ(Heard().size(), 1U);
  JudgeSome(1, Fails("usage"));
  EXPECT_THAT(Heard(), Contains(::testing::Pair(::testing::_, "no disk")));
}

TEST_F(QueueJudgesTest, FourFailuresInARowEndTheSearch) {
  for (int i = 0; i < 4; ++i) Add("judge/" + std::to_string(i));
  EXPECT_TRUE(Heard().empty());
  JudgeSome(4, Fails("environment"));
  EXPECT_THAT(Heard().at("error"), HasSubstr("4 times in a row, without a verdict: no disk"));
}

TEST_F(QueueJudgesTest, AStopEndsThePilotsOnceAndKeepsTheWorks) {
  Add("judge/0");
  Add("judge/1");
  EXPECT_TRUE(Heard().empty());
  JudgeSome(1);
  EXPECT_EQ(judges_->Stop().size(), 1U);
  judges_.reset();
  EXPECT_EQ(pilots_.ends, 1);
  EXPECT_EQ(pilot_->Counts("run")->queued, 1);
}

}  // namespace
}  // namespace assay
