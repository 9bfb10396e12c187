#include "run/conductor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run/run_testing.h"
#include "worker_client/event.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// Workers that answer as a function of the test says.
class FakeFleet : public Fleet {
 public:
  using Answer = std::function<std::vector<std::string>(const Json& request)>;
  static constexpr const char* kEnds = "it ends";  // in place of a line

  // `shared`: all of them are of one device.
  FakeFleet(size_t workers, Answer answer, bool shared = false)
      : answer_(std::move(answer)), started_(workers), shared_(shared) {}
  size_t size() const override { return started_.size(); }
  std::string Name(size_t worker) const override {
    return fmt::format("cuda:{}", shared_ ? 0 : worker);
  }
  Result<void> Start(size_t worker, int sharers) override {
    ++started_[worker];
    sharers_ = sharers;
    return {};
  }
  void Send(size_t worker, const std::string& line) override {
    requests_.push_back(Json::parse(line));
    for (const std::string& said : answer_(requests_.back())) {
      if (said == kEnds) {
        said_.push_back({worker, std::nullopt, "was killed by signal 9"});
        break;
      }
      said_.push_back({worker, said, ""});
    }
  }
  void Kill(size_t worker) override {
    std::erase_if(said_, [&](const Said& said) { return said.worker == worker; });
  }
  void Release(size_t worker) override { said_.push_back({worker, std::nullopt, "ended"}); }
  void Interrupt(size_t worker) override { Release(worker); }
  std::optional<Said> Wait(int) override {
    if (said_.empty()) return std::nullopt;
    Said said = said_.front();
    said_.pop_front();
    // What a dead worker said after that was said by nobody.
    if (!said.line)
      std::erase_if(said_, [&](const Said& other) { return other.worker == said.worker; });
    return said;
  }

  std::vector<Json> requests_;
  int sharers_ = 0;  // as the last one was started
  std::vector<int> starts() const { return started_; }

 private:
  Answer answer_;
  std::vector<int> started_;
  const bool shared_;
  std::deque<Said> said_;
};

std::string VerdictOn(const Json& request, size_t candidate) {
  return VerdictLine(request["id"], candidate, SampleVerdict(Outcome::kSlower));
}

std::vector<std::string> AllJudged(const Json& request) {
  std::vector<std::string> lines{
      ProgressLine(request["id"], {JudgeStage::kBuilding, "building", 0, 0, 0})};
  for (size_t i = 0; i < request["candidates"].size(); ++i) lines.push_back(VerdictOn(request, i));
  lines.push_back(DoneLine(request["id"]));
  return lines;
}

class Conducting : public ::testing::Test {
 protected:
  Conducting() : plan_(TestPlan()) { terms_.device = "cuda"; }

  ConductEnd Conduct(FakeFleet& fleet, std::vector<size_t> items = {0, 1, 2},
                     StopToken stop = StopToken()) {
    ConductEvents events;
    events.date = [] { return "2026-11-27T10:00:00Z"; };
    events.notice = [&](const std::string& text) { notices_.push_back(text); };
    events.progress = [&](const RunProgress& progress) {
      EXPECT_NE(progress.problem, nullptr);
      ++progresses_;
    };
    events.rows = [&](const std::vector<JudgedItem>& judged) -> Result<void> {
      if (full_) return EnvironmentError("no space left");
      for (const auto& [row, item] : judged)
        rows_.push_back(fmt::format("{}: {}", item,
                                    row.verdict ? OutcomeName(row.verdict->outcome)
                                                : std::string_view(row.error->message)));
      return {};
    };
    return Conductor(plan_, terms_, fleet, std::move(events)).Run(items, stop);
  }

  RunPlan plan_;
  AskedTerms terms_;
  bool full_ = false;
  std::vector<std::string> rows_, notices_;
  int progresses_ = 0;
};

TEST_F(Conducting, AProblemsCandidatesAreOneRequest) {
  FakeFleet fleet(1, AllJudged);
  const ConductEnd end = Conduct(fleet);
  EXPECT_FALSE(end.error);
  EXPECT_EQ(end.left, 0u);
  EXPECT_THAT(rows_, ElementsAre("0: slower", "1: slower", "2: slower"));
  ASSERT_EQ(fleet.requests_.size(), 2u);
  EXPECT_EQ(fleet.requests_[0]["terms"]["problem"], "KernelBench/level1/23_Softmax.py");
  EXPECT_EQ(fleet.requests_[0]["terms"]["device"], "cuda");
  EXPECT_EQ(fleet.requests_[0]["candidates"].size(), 2u);
  EXPECT_EQ(fleet.requests_[1]["candidates"][0]["source"], "third");
  EXPECT_EQ(progresses_, 2);
}

TEST_F(Conducting, SeveralWorkersShareTheWork) {
  FakeFleet fleet(2, AllJudged);
  EXPECT_FALSE(Conduct(fleet).error);
  EXPECT_EQ(rows_.size(), 3u);
  EXPECT_THAT(fleet.starts(), ElementsAre(1, 1));
}

// Beside others a candidate may lack memory that it has when it is alone.
TEST_F(Conducting, WhatLacksMemoryBesideOthersIsJudgedAlone) {
  FakeFleet* fleet_there = nullptr;
  FakeFleet fleet(
      3,
      [&](const Json& request) -> std::vector<std::string> {
        if (fleet_there->sharers_ == 1) return AllJudged(request);
        const Error error{ErrorKind::kUnjudged, "it needs 58 GB", ErrorCode::kTooLarge};
        if (request["candidates"].size() == 1)
          return {UnjudgedLine(request["id"], 0, error), ErrorLine(request["id"], error)};
        return {VerdictOn(request, 0),
                VerdictLine(request["id"], 1, SampleVerdict(Outcome::kOutOfMemory)),
                DoneLine(request["id"])};
      },
      true);
  fleet_there = &fleet;
  const ConductEnd end = Conduct(fleet);
  EXPECT_FALSE(end.error);
  EXPECT_EQ(end.left, 0u);
  EXPECT_THAT(rows_, ElementsAre("0: slower", "1: slower", "2: slower"));
  EXPECT_THAT(fleet.starts(), ElementsAre(2, 1, 1));
  EXPECT_THAT(notices_, ElementsAre("judged next, each with the device for itself: 2"));
}

// Large problems wait for their memory in the workers, which all stay: of 8 workers seven stood
// still at the end of a run.
TEST_F(Conducting, AllWorkersStayAsLongAsNothingIsToBeJudgedAlone) {
  FakeFleet* fleet_there = nullptr;
  std::vector<int> sharers;
  const auto answer = [&](const Json& request) {
    sharers.push_back(fleet_there->sharers_);
    return AllJudged(request);
  };
  FakeFleet fleet(8, answer, true);
  fleet_there = &fleet;
  EXPECT_FALSE(Conduct(fleet).error);
  EXPECT_THAT(sharers, ElementsAre(8, 8));
  EXPECT_THAT(fleet.starts(), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(notices_, ElementsAre());
}

// With eight workers a GPU had no memory left for one more context: a copy of the reference ended
// as `build_failed`.
TEST_F(Conducting, ACandidateThatCannotStartCudaBesideOthersIsJudgedAlone) {
  FakeFleet* fleet_there = nullptr;
  FakeFleet fleet(
      2,
      [&](const Json& request) -> std::vector<std::string> {
        if (fleet_there->sharers_ == 1) return AllJudged(request);
        Verdict verdict = SampleVerdict(Outcome::kBuildFailed);
        verdict.message = "in whatever words";
        verdict.cause = Cause::kScarceMemory;
        std::vector<std::string> lines;
        for (size_t i = 0; i < request["candidates"].size(); ++i)
          lines.push_back(VerdictLine(request["id"], i, verdict));
        lines.push_back(DoneLine(request["id"]));
        return lines;
      },
      true);
  fleet_there = &fleet;
  EXPECT_FALSE(Conduct(fleet).error);
  EXPECT_THAT(rows_, ElementsAre("0: slower", "1: slower", "2: slower"));
}

TEST_F(Conducting, WhatLacksMemoryAloneHasThatForItsVerdict) {
  FakeFleet fleet(
      2,
      [&](const Json& request) -> std::vector<std::string> {
        std::vector<std::string> lines;
        for (size_t i = 0; i < request["candidates"].size(); ++i)
          lines.push_back(VerdictLine(request["id"], i, SampleVerdict(Outcome::kOutOfMemory)));
        lines.push_back(DoneLine(request["id"]));
        return lines;
      },
      true);
  EXPECT_FALSE(Conduct(fleet).error);
  EXPECT_THAT(rows_, ElementsAre("0: out_of_memory", "1: out_of_memory", "2: out_of_memory"));
}

TEST_F(Conducting, AWorkersEndCostsNoVerdict) {
  int ends = 0;
  FakeFleet fleet(1, [&](const Json& request) -> std::vector<std::string> {
    if (ends++ == 0) return {VerdictOn(request, 0), FakeFleet::kEnds};
    return AllJudged(request);
  });
  const ConductEnd end = Conduct(fleet);
  EXPECT_FALSE(end.error);
  EXPECT_THAT(rows_, ElementsAre("0: slower", "1: slower", "2: slower"));
  EXPECT_THAT(fleet.starts(), ElementsAre(2));
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("was killed by signal 9; it is started again")));
}

TEST_F(Conducting, WhatEndsTheWorkerTwiceIsLeftBehind) {
  FakeFleet fleet(1, [](const Json& request) -> std::vector<std::string> {
    if (request["candidates"][0]["source"] == "second") return {FakeFleet::kEnds};
    if (request["candidates"].size() == 2) return {VerdictOn(request, 0), FakeFleet::kEnds};
    return AllJudged(request);
  });
  const ConductEnd end = Conduct(fleet);
  EXPECT_FALSE(end.error);
  EXPECT_THAT(rows_, ElementsAre("0: slower", HasSubstr("1: the worker of cuda:0 was killed"),
                                 "2: slower"));
}

TEST_F(Conducting, AWrongRequestIsNotRepeatedAndAFaultOfTheMachineOnce) {
  int environment = 0;
  FakeFleet fleet(1, [&](const Json& request) -> std::vector<std::string> {
    if (request["candidates"].size() == 2)
      return {ErrorLine(request["id"], {ErrorKind::kUsage, "its forward cannot run"})};
    if (environment++ == 0)
      return {ErrorLine(request["id"], {ErrorKind::kEnvironment, "no memory"})};
    return AllJudged(request);
  });
  EXPECT_FALSE(Conduct(fleet).error);
  EXPECT_THAT(rows_,
              ElementsAre("0: its forward cannot run", "1: its forward cannot run", "2: slower"));
  EXPECT_EQ(fleet.requests_.size(), 3u);
}

TEST_F(Conducting, WhatNeedsAnotherMachineIsNotTriedAgain) {
  FakeFleet fleet(1, [](const Json& request) -> std::vector<std::string> {
    const Error error{ErrorKind::kUnjudged, "it needs CUDA"};
    std::vector<std::string> lines;
    for (size_t i = 0; i < request["candidates"].size(); ++i)
      lines.push_back(UnjudgedLine(request["id"], i, error));
    lines.push_back(ErrorLine(request["id"], error));
    return lines;
  });
  EXPECT_FALSE(Conduct(fleet).error);
  EXPECT_THAT(rows_, ElementsAre("0: it needs CUDA", "1: it needs CUDA", "2: it needs CUDA"));
  EXPECT_EQ(fleet.requests_.size(), 2u);
}

// Of KernelBench's problems at their own sizes, three in a row did not fit a GPU, and the run
// ended.
TEST_F(Conducting, ProblemsThatAreTooLargeDoNotEndTheRun) {
  for (int i = 0; i < 8; ++i) {
    plan_.problems.push_back(plan_.problems[0]);
    plan_.problems.back().name = fmt::format("{}_Large", i);
    plan_.items.push_back({plan_.problems.size() - 1, 0, plan_.items[0].source});
  }
  FakeFleet fleet(1, [](const Json& request) -> std::vector<std::string> {
    return {ErrorLine(request["id"], {ErrorKind::kEnvironment, "it needs more than there is",
                                      ErrorCode::kTooLarge})};
  });
  const ConductEnd end = Conduct(fleet, {3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_FALSE(end.error);
  EXPECT_EQ(rows_.size(), 8u);
}

TEST_F(Conducting, AWorkerThatOnlyFailsIsGivenUp) {
  FakeFleet fleet(1, [](const Json&) -> std::vector<std::string> { return {FakeFleet::kEnds}; });
  const ConductEnd end = Conduct(fleet);
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->kind, ErrorKind::kEnvironment);
  EXPECT_THAT(end.error->message, HasSubstr("no worker is left that can judge"));
  EXPECT_GT(end.left, 0u);
  EXPECT_THAT(notices_.back(), HasSubstr("cuda:0 is given up"));
}

// The words of its failures may differ.
TEST_F(Conducting, AWorkerThatGivesNoVerdictIsGivenUpWhateverItSays) {
  for (int i = 0; i < 8; ++i) {
    plan_.problems.push_back(plan_.problems[0]);
    plan_.items.push_back({plan_.problems.size() - 1, 0, plan_.items[0].source});
  }
  int count = 0;
  FakeFleet fleet(1, [&](const Json& request) -> std::vector<std::string> {
    return {ErrorLine(request["id"],
                      {ErrorKind::kEnvironment, fmt::format("the GPU is lost, at {}", ++count)})};
  });
  const ConductEnd end = Conduct(fleet, {3, 4, 5, 6, 7, 8, 9, 10});
  ASSERT_TRUE(end.error);
  EXPECT_THAT(notices_.back(), HasSubstr("cuda:0 is given up"));
}

TEST_F(Conducting, ARowThatCannotBeKeptEndsTheRun) {
  full_ = true;
  FakeFleet fleet(1, AllJudged);
  const ConductEnd end = Conduct(fleet);
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->message, "no space left");
  EXPECT_EQ(end.left, 3u);
}

TEST_F(Conducting, AnInterruptEndsTheWorkers) {
  const std::atomic<bool> stop{true};
  FakeFleet fleet(1, AllJudged);
  const ConductEnd end = Conduct(fleet, {0, 1, 2}, StopToken(stop));
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->kind, ErrorKind::kInterrupted);
  EXPECT_EQ(end.left, 3u);
}

}  // namespace
}  // namespace assay
