// Tests that every engine of the queue must pass. An engine is a type with
//
//   static std::string Place(const std::filesystem::path& folder);  // an empty queue for one test
//   static Result<std::unique_ptr<WorkQueue>> Open(const std::string& place, QueueTerms terms);
//   static std::string Unavailable();  // optional: why the tests are skipped; empty: they run
//
// INSTANTIATE_TYPED_TEST_SUITE_P(Name, WorkQueueConformance, Engine) in the engine's own test runs
// them.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "queue/work_queue.h"

namespace assay {

template <typename Engine>
class WorkQueueConformance : public ::testing::Test {
 protected:
  static constexpr double kLeaseS = 0.4;

  WorkQueueConformance()
      : folder_(TemporaryFolder::Create().value()), place_(Engine::Place(folder_.path())) {}

  void SetUp() override {
    if constexpr (requires { Engine::Unavailable(); })
      if (const std::string why = Engine::Unavailable(); !why.empty()) GTEST_SKIP() << why;
  }
  std::unique_ptr<WorkQueue> Open(int attempts_max = 3) const {
    auto queue = Engine::Open(place_, {kLeaseS, attempts_max});
    EXPECT_TRUE(queue) << queue.error().message;
    return queue ? std::move(*queue) : nullptr;
  }
  static void PassLease() { ::poll(nullptr, 0, static_cast<int>(kLeaseS * 1500)); }
  static NewWork Work(const std::string& key, const std::string& run = "run") {
    NewWork work;
    work.run = run;
    work.key = key;
    work.group = "softmax";
    work.device = "cpu";
    work.request = "{\"of\":\"" + key + "\"}";
    return work;
  }
  static void AddAll(WorkQueue& queue, const std::vector<NewWork>& works) {
    const auto added = queue.Add(works);
    ASSERT_TRUE(added) << added.error().message;
  }
  static WorkerFacts Worker(const std::string& name, const std::string& device = "cpu") {
    return {name, "node of " + name, device, "a model", "1.0", "", ""};
  }
  static std::vector<ClaimedWork> Claim(WorkQueue& queue, const std::string& worker, int most = 1) {
    auto claimed = queue.Claim(Worker(worker), most);
    EXPECT_TRUE(claimed) << claimed.error().message;
    return claimed ? *claimed : std::vector<ClaimedWork>();
  }
  static std::vector<std::string> Keys(const std::vector<ClaimedWork>& works) {
    std::vector<std::string> keys;
    for (const ClaimedWork& work : works) keys.push_back(work.key);
    return keys;
  }
  static std::vector<EndedWork> Ended(WorkQueue& queue, int64_t after = 0) {
    auto ended = queue.Ended("run", after, 1000);
    EXPECT_TRUE(ended) << ended.error().message;
    return ended ? *ended : std::vector<EndedWork>();
  }
  static WorkEnd Judged(const std::string& by = "") {
    return {"{\"by\":\"" + by + "\"}", "", false};
  }
  static WorkEnd MachineFailed() {
    return {"", R"({"kind":"environment","message":"no sandbox"})", true};
  }

  const TemporaryFolder folder_;
  const std::string place_;
};

TYPED_TEST_SUITE_P(WorkQueueConformance);

TYPED_TEST_P(WorkQueueConformance, ClaimsInOrderAndEndsOnce) {
  const auto queue = this->Open();
  this->AddAll(*queue, {this->Work("a"), this->Work("b")});
  const auto first = this->Claim(*queue, "one"), second = this->Claim(*queue, "two");
  ASSERT_EQ(this->Keys(first), std::vector<std::string>{"a"});
  ASSERT_EQ(this->Keys(second), std::vector<std::string>{"b"});
  EXPECT_EQ(first[0].run, "run");
  EXPECT_EQ(first[0].request, R"({"of":"a"})");
  EXPECT_EQ(first[0].attempt, 1);
  EXPECT_TRUE(this->Claim(*queue, "three").empty());
  EXPECT_TRUE(*queue->End(this->Worker("one"), first[0], this->Judged("one")));
  EXPECT_TRUE(*queue->End(this->Worker("one"), first[0], this->Judged("again")))
      << "a repeated end counts as the first did";
  const auto ended = this->Ended(*queue);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].key, "a");
  EXPECT_EQ(ended[0].state, WorkState::kJudged);
  EXPECT_EQ(ended[0].end.verdict, R"({"by":"one"})");
  EXPECT_EQ(ended[0].node, "node of one");
  EXPECT_EQ(ended[0].worker, "one");
  EXPECT_EQ(ended[0].model, "a model");
  EXPECT_EQ(ended[0].attempts, 1);
  const auto counts = queue->Counts("run");
  EXPECT_EQ(counts->claimed, 1);
  EXPECT_EQ(counts->judged, 1);
  EXPECT_EQ(counts->queued, 0);
}

TYPED_TEST_P(WorkQueueConformance, EqualKeysOfARunAreOneWork) {
  const auto queue = this->Open();
  this->AddAll(*queue, {this->Work("a")});
  EXPECT_EQ(*this->Open()->Add(std::vector{this->Work("a"), this->Work("b")}), 1);
  EXPECT_EQ(*queue->Add(std::vector{this->Work("a", "other")}), 1);
  EXPECT_EQ(queue->Counts("run")->queued, 2);
  EXPECT_EQ(queue->Counts("")->queued, 3);
  const auto claimed = this->Claim(*queue, "one");
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_TRUE(*queue->End(this->Worker("one"), claimed[0], this->Judged()));
  EXPECT_EQ(*queue->Add(std::vector{this->Work("a"), this->Work("b")}), 0)
      << "an ended work is not queued again";
}

TYPED_TEST_P(WorkQueueConformance, AnotherControllerReadsTheSameEnds) {
  const auto queue = this->Open();
  this->AddAll(*queue, {this->Work("a"), this->Work("b")});
  for (const ClaimedWork& work : this->Claim(*queue, "one", 2))
    EXPECT_TRUE(*queue->End(this->Worker("one"), work, this->Judged(work.key)));
  const auto later = this->Open();
  const auto ended = this->Ended(*later);
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_LT(ended[0].sequence, ended[1].sequence);
  EXPECT_EQ(this->Ended(*later, ended[0].sequence).size(), 1U);
  EXPECT_TRUE(this->Ended(*later, ended[1].sequence).empty());
}

TYPED_TEST_P(WorkQueueConformance, AControllerThatIsStartedAgainPassesOverWhatItHasKept) {
  const auto queue = this->Open();
  EXPECT_EQ(*queue->ReadFrom("run", std::vector<std::string>{"a"}), 0) << "there is no such run";
  this->AddAll(*queue, {this->Work("a"), this->Work("b"), this->Work("c"), this->Work("d")});
  for (const ClaimedWork& work : this->Claim(*queue, "one", 3)) {
    EXPECT_TRUE(*queue->End(this->Worker("one"), work, this->Judged(work.key)));
    (void)this->Ended(*queue);  // gives it its number
  }
  const auto read = [&](const std::vector<std::string>& keys) {
    std::vector<std::string> found;
    for (const EndedWork& each : this->Ended(*queue, *queue->ReadFrom("run", keys)))
      found.push_back(each.key);
    return found;
  };
  EXPECT_EQ(read({"b", "d"}), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(read({"d"}), std::vector<std::string>());
  EXPECT_EQ(read({"d", "c", "a"}), (std::vector<std::string>{"a", "b", "c"}));
  const int64_t from = *queue->ReadFrom("run", std::vector<std::string>{"d"});
  const auto last = this->Claim(*queue, "one");
  ASSERT_EQ(this->Keys(last), std::vector<std::string>{"d"});
  EXPECT_TRUE(*queue->End(this->Worker("one"), last[0], this->Judged("d")));
  ASSERT_EQ(this->Ended(*queue, from).size(), 1U);
  EXPECT_EQ(this->Ended(*queue, from)[0].key, "d");
}

TYPED_TEST_P(WorkQueueConformance, HigherPrioritiesGoFirst) {
  const auto queue = this->Open();
  NewWork urgent = this->Work("urgent"), idle = this->Work("idle");
  urgent.priority = 5;
  idle.priority = -5;
  this->AddAll(*queue, {idle, this->Work("ordinary"), urgent});
  for (const char* key : {"urgent", "ordinary", "idle"})
    EXPECT_EQ(this->Keys(this->Claim(*queue, "one")), std::vector<std::string>{key});
}

TYPED_TEST_P(WorkQueueConformance, RunsShareTheWorkers) {
  const auto queue = this->Open();
  this->AddAll(*queue, {this->Work("1"), this->Work("2"), this->Work("3")});
  this->AddAll(*queue, {this->Work("4", "late"), this->Work("5", "late")});
  std::map<std::string, int> of_run;
  for (int i = 0; i < 4; ++i)
    for (const ClaimedWork& work : this->Claim(*queue, fmt::format("w{}", i))) ++of_run[work.run];
  EXPECT_EQ(of_run["run"], 2);
  EXPECT_EQ(of_run["late"], 2);
}

TYPED_TEST_P(WorkQueueConformance, OneClaimIsOfOneGroupAndDevice) {
  const auto queue = this->Open();
  NewWork other = this->Work("other"), gpu = this->Work("gpu");
  other.group = "matmul";
  gpu.device = "cuda";
  this->AddAll(*queue, {gpu, this->Work("a"), other, this->Work("b")});
  EXPECT_EQ(this->Keys(this->Claim(*queue, "one", 8)), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(this->Keys(this->Claim(*queue, "one", 8)), std::vector<std::string>{"other"});
  EXPECT_TRUE(this->Claim(*queue, "one", 8).empty());
  EXPECT_EQ(this->Keys(*queue->Claim(this->Worker("gpu", "cuda"), 8)),
            std::vector<std::string>{"gpu"});
}

TYPED_TEST_P(WorkQueueConformance, WorkOfASilentWorkerGoesToAnother) {
  const auto queue = this->Open();
  this->AddAll(*queue, {this->Work("a"), this->Work("b")});
  const auto lost = this->Claim(*queue, "silent"), kept = this->Claim(*queue, "alive");
  ASSERT_EQ(lost.size(), 1U);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(*queue->Expire(), 0);
  this->PassLease();
  EXPECT_TRUE(queue->Beat(this->Worker("alive"), kept)->empty());
  EXPECT_EQ(*queue->Expire(), 1);
  const auto again = this->Claim(*queue, "alive");
  ASSERT_EQ(this->Keys(again), std::vector<std::string>{"a"});
  EXPECT_EQ(again[0].attempt, 2);
  EXPECT_FALSE(*queue->End(this->Worker("silent"), lost[0], this->Judged("silent")))
      << "the attempt that lost the work cannot end it";
  EXPECT_EQ(*queue->Beat(this->Worker("silent"), lost), std::vector<int64_t>{lost[0].id});
  EXPECT_TRUE(*queue->End(this->Worker("alive"), again[0], this->Judged("alive")));
  ASSERT_EQ(this->Ended(*queue).size(), 1U);
  EXPECT_EQ(this->Ended(*queue)[0].end.verdict, R"({"by":"alive"})");
  EXPECT_EQ(this->Ended(*queue)[0].attempts, 2);
}

TYPED_TEST_P(WorkQueueConformance, TheLastFailedAttemptFailsTheWork) {
  const auto queue = this->Open(2);
  this->AddAll(*queue, {this->Work("a")});
  const auto first = this->Claim(*queue, "one");
  ASSERT_EQ(first.size(), 1U);
  EXPECT_TRUE(*queue->End(this->Worker("one"), first[0], this->MachineFailed()));
  EXPECT_EQ(queue->Counts("run")->queued, 1);
  ASSERT_EQ(this->Claim(*queue, "silent").size(), 1U);
  EXPECT_EQ(*queue->Expire(), 0);
  this->PassLease();
  EXPECT_EQ(*queue->Expire(), 1);
  const auto ended = this->Ended(*queue);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].state, WorkState::kFailed);
  EXPECT_THAT(ended[0].end.error, ::testing::HasSubstr("environment"));
  EXPECT_TRUE(ended[0].end.verdict.empty());
  EXPECT_TRUE(this->Claim(*queue, "one").empty());
}

TYPED_TEST_P(WorkQueueConformance, WorkGivenBackCostsNoAttempt) {
  const auto queue = this->Open(1);
  this->AddAll(*queue, {this->Work("a"), this->Work("b")});
  for (int i = 0; i < 3; ++i) {
    const auto claimed = this->Claim(*queue, "one", 2);
    ASSERT_EQ(this->Keys(claimed), (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(queue->GiveBack(this->Worker("one"), claimed));
    EXPECT_FALSE(*queue->End(this->Worker("one"), claimed[0], this->Judged()));
  }
  EXPECT_EQ(queue->Counts("run")->queued, 2);
  EXPECT_EQ(queue->Counts("run")->claimed, 0);
}

TYPED_TEST_P(WorkQueueConformance, CancelledWorkIsTakenFromItsWorker) {
  const auto queue = this->Open();
  this->AddAll(*queue, {this->Work("a"), this->Work("b"), this->Work("c", "other")});
  const auto claimed = this->Claim(*queue, "one");
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_TRUE(queue->Cancel("run"));
  EXPECT_EQ(*queue->Beat(this->Worker("one"), claimed), std::vector<int64_t>{claimed[0].id});
  EXPECT_FALSE(*queue->End(this->Worker("one"), claimed[0], this->Judged()));
  EXPECT_EQ(queue->Counts("run")->cancelled, 2);
  EXPECT_EQ(this->Keys(this->Claim(*queue, "one")), std::vector<std::string>{"c"});
}

TYPED_TEST_P(WorkQueueConformance, ADrainedWorkerGetsNoWork) {
  const auto queue = this->Open();
  this->AddAll(*queue, {this->Work("a")});
  EXPECT_TRUE(queue->Beat(this->Worker("slow"), {})->empty());
  EXPECT_TRUE(queue->Drain("slow", "half the bandwidth of its class"));
  EXPECT_TRUE(this->Claim(*queue, "slow").empty());
  const auto workers = queue->Workers();
  ASSERT_EQ(workers->size(), 1U);
  EXPECT_EQ(workers->front().drained, "half the bandwidth of its class");
  EXPECT_TRUE(queue->Drain("slow", ""));
  EXPECT_EQ(this->Claim(*queue, "slow").size(), 1U);
}

TYPED_TEST_P(WorkQueueConformance, TellsWhatWorkersDo) {
  const auto queue = this->Open();
  this->AddAll(*queue, {this->Work("a"), this->Work("b"), this->Work("c")});
  const auto claimed = this->Claim(*queue, "one", 3);
  ASSERT_EQ(claimed.size(), 3U);
  EXPECT_TRUE(*queue->End(this->Worker("one"), claimed[0], this->Judged()));
  EXPECT_TRUE(*queue->End(this->Worker("one"), claimed[1], this->MachineFailed()));
  WorkerFacts facts = this->Worker("one");
  facts.job = "12_3";
  facts.measures = R"({"read":1e10})";
  EXPECT_TRUE(queue->Beat(facts, std::vector{claimed[2]})->empty());
  const auto workers = queue->Workers();
  ASSERT_EQ(workers->size(), 1U);
  const KnownWorker& known = workers->front();
  EXPECT_EQ(known.facts.name, "one");
  EXPECT_EQ(known.facts.node, "node of one");
  EXPECT_EQ(known.facts.version, "1.0");
  EXPECT_EQ(known.facts.job, "12_3");
  EXPECT_EQ(known.facts.measures, R"({"read":1e10})");
  EXPECT_EQ(known.doing, "c");
  EXPECT_EQ(known.judged, 1);
  EXPECT_EQ(known.faults, 1);
  EXPECT_LT(known.silent_s, 30);
}

TYPED_TEST_P(WorkQueueConformance, ManyWorkersJudgeEachWorkOnce) {
  constexpr int kWorks = 120, kWorkers = 4;
  const auto queue = this->Open();
  std::vector<NewWork> works;
  for (int i = 0; i < kWorks; ++i) works.push_back(this->Work(fmt::format("{}", i)));
  this->AddAll(*queue, works);
  std::atomic<int> ended{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kWorkers; ++i)
    threads.emplace_back([&, i] {
      const auto own = this->Open();
      const std::string name = fmt::format("worker {}", i);
      for (int empty = 0; empty < 3;) {
        const auto claimed = this->Claim(*own, name, 1 + i);
        if (claimed.empty()) ++empty;
        for (const ClaimedWork& work : claimed)
          if (*own->End(this->Worker(name), work, this->Judged(name))) ++ended;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, kWorks);
  std::set<std::string> keys;
  for (const EndedWork& work : this->Ended(*queue)) {
    EXPECT_EQ(work.attempts, 1);
    EXPECT_TRUE(keys.insert(work.key).second) << work.key << " ended twice";
  }
  EXPECT_EQ(keys.size(), static_cast<size_t>(kWorks));
}

REGISTER_TYPED_TEST_SUITE_P(WorkQueueConformance, ClaimsInOrderAndEndsOnce,
                            EqualKeysOfARunAreOneWork, AnotherControllerReadsTheSameEnds,
                            AControllerThatIsStartedAgainPassesOverWhatItHasKept,
                            HigherPrioritiesGoFirst, RunsShareTheWorkers,
                            OneClaimIsOfOneGroupAndDevice, WorkOfASilentWorkerGoesToAnother,
                            TheLastFailedAttemptFailsTheWork, WorkGivenBackCostsNoAttempt,
                            CancelledWorkIsTakenFromItsWorker, ADrainedWorkerGetsNoWork,
                            TellsWhatWorkersDo, ManyWorkersJudgeEachWorkOnce);

}  // namespace assay
