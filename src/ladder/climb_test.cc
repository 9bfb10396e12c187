#include "ladder/climb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ladder/ladder_testing.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Judges with a fake that gives verdicts of known outcomes until its token stops it.
class ClimbTest : public ::testing::Test {
 protected:
  ClimbTest() {
    tools_.now_ns = [this] { return now_ns_; };
    tools_.date = [] { return std::string("2026-11-26T10:00:00+00:00"); };
    tools_.keep = [this](const LadderRow& row) {
      kept_.push_back(row);
      return keep_;
    };
    tools_.finished = [this](const RungResult& result) { told_.push_back(result.rung.number); };
    tools_.judge = [this](const JudgeRequest& request, const JudgeEvents& events, StopToken stop) {
      ++calls_;
      for (const CandidateSource& source : request.candidates) {
        if (stop.stopped()) return Result<void>(Fail(ErrorKind::kInterrupted, "interrupted"));
        if (source.path == "lacking") {
          events.unjudged({ErrorKind::kUnjudged, "lacking needs CUDA"});
          continue;
        }
        if (source.path == "lost") return Result<void>(EnvironmentError("the GPU is lost"));
        now_ns_ += 10;
        Verdict verdict;
        verdict.outcome = source.path == "wrong" ? Outcome::kWrong : Outcome::kTie;
        verdict.candidate.path = source.path;
        verdict.samples.resize(2);
        events.verdict(verdict);
      }
      return Result<void>();
    };
  }

  // A plan of rungs: "recorded" ones have a row, the others are candidates of that name.
  static ClimbPlan PlanOf(const std::vector<std::string>& rungs) {
    ClimbPlan plan;
    for (const std::string& name : rungs) {
      const int number = static_cast<int>(plan.rungs.size()) + 1;
      plan.rungs.push_back({{name, number, "", 0}, {}, name == "recorded"});
      if (name == "recorded") {
        plan.rungs.back().row = TestRow("01_naive.cpp", 1);
        continue;
      }
      plan.request.candidates.emplace_back();
      plan.request.candidates.back().path = name;
    }
    return plan;
  }

  ClimbEnd Run(ClimbPlan* plan, int64_t end_ns = 1000) {
    return Climb("steps", "abc1234", plan, end_ns, interrupted_, tools_);
  }

  int64_t now_ns_ = 0;
  int calls_ = 0;
  Result<void> keep_;
  std::vector<LadderRow> kept_;
  std::vector<int> told_;
  std::atomic<bool> interrupted_{false};
  ClimbTools tools_;
};

TEST_F(ClimbTest, AWrongRungIsARowAndTheRestIsJudged) {
  ClimbPlan plan = PlanOf({"good", "wrong", "good"});
  const ClimbEnd end = Run(&plan);
  EXPECT_FALSE(end.error);
  EXPECT_EQ(end.left, 0u);
  EXPECT_EQ(calls_, 1);  // one session
  EXPECT_THAT(told_, ElementsAre(1, 2, 3));
  ASSERT_EQ(kept_.size(), 3u);
  EXPECT_EQ(kept_[1].verdict.outcome, Outcome::kWrong);
  EXPECT_EQ(kept_[1].judge, "abc1234");
  EXPECT_TRUE(kept_[1].verdict.samples.empty());
}

TEST_F(ClimbTest, RecordedRungsAreToldInTheirPlaceAndNotJudged) {
  ClimbPlan plan = PlanOf({"recorded", "good", "recorded", "good"});
  EXPECT_EQ(Run(&plan).left, 0u);
  EXPECT_THAT(told_, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(kept_.size(), 2u);
  ClimbPlan all = PlanOf({"recorded", "recorded"});
  EXPECT_EQ(Run(&all).left, 0u);
  EXPECT_EQ(calls_, 1);  // no session for nothing
}

TEST_F(ClimbTest, TheTimeEndsBetweenRungs) {
  ClimbPlan plan = PlanOf({"good", "good", "good", "recorded"});
  const ClimbEnd end = Run(&plan, 15);
  EXPECT_FALSE(end.error);
  EXPECT_EQ(end.left, 1u);
  EXPECT_THAT(told_, ElementsAre(1, 2, 4));
  ClimbPlan late = PlanOf({"good"});
  EXPECT_EQ(Run(&late, 15).left, 1u);
  EXPECT_EQ(calls_, 1);  // none is begun
}

TEST_F(ClimbTest, AnInterruptKeepsWhatStands) {
  ClimbPlan plan = PlanOf({"good", "good"});
  tools_.keep = [this](const LadderRow& row) {
    kept_.push_back(row);
    interrupted_ = true;
    return Result<void>();
  };
  const ClimbEnd end = Run(&plan);
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->kind, ErrorKind::kInterrupted);
  EXPECT_EQ(kept_.size(), 1u);
  EXPECT_EQ(end.left, 1u);
}

TEST_F(ClimbTest, TroubleOfTheMachineEndsIt) {
  ClimbPlan plan = PlanOf({"good", "lost", "good"});
  const ClimbEnd end = Run(&plan);
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->kind, ErrorKind::kEnvironment);
  EXPECT_EQ(end.left, 2u);
  EXPECT_EQ(kept_.size(), 1u);
}

TEST_F(ClimbTest, ARungThatNeedsWhatIsNotHereHasNoRow) {
  ClimbPlan plan = PlanOf({"recorded", "lacking", "wrong"});
  EXPECT_EQ(Run(&plan).left, 1u);
  EXPECT_FALSE(plan.rungs[1].row);
  ASSERT_TRUE(plan.rungs[2].row);
  EXPECT_EQ(plan.rungs[2].row->verdict.outcome, Outcome::kWrong);
}

TEST_F(ClimbTest, ARowThatCannotBeKeptEndsIt) {
  keep_ = EnvironmentError("the disk is full");
  ClimbPlan plan = PlanOf({"good", "good"});
  const ClimbEnd end = Run(&plan);
  ASSERT_TRUE(end.error);
  EXPECT_THAT(end.error->message, HasSubstr("disk"));
  EXPECT_EQ(kept_.size(), 1u);
}

// The baseline "best" is asked for alone, whatever further columns a table has.
TEST(PlanClimb, EveryLadderOfTheRepositoryCanBeJudged) {
  const auto ladders = FindLadders(std::string(ASSAY_SOURCE_DIRECTORY) + "/kernels");
  ASSERT_TRUE(ladders) << ladders.error().message;
  int beside_best = 0;
  for (const Ladder& ladder : *ladders) {
    const auto plan = PlanClimb(ladder, ladder.sizes[0], ladder.rungs, {}, {});
    ASSERT_TRUE(plan) << ladder.Path() << ": " << plan.error().message;
    const bool best = ladder.baseline == "best";
    EXPECT_EQ(plan->request.terms.opponent.best_baseline, best) << ladder.Path();
    for (const std::string& baseline : ladder.also_against)
      EXPECT_THAT(plan->request.terms.opponent.baselines, Contains(baseline)) << ladder.Path();
    beside_best += best;
  }
  EXPECT_GE(beside_best, 4);
}

TEST(NewestResults, ARungIsFoundByItsNameAtItsSize) {
  const Ladder ladder = TestLadder();
  std::vector<LadderRow> rows{TestRow("07_tiles.cpp", 0.8), TestRow("02_tiles.cpp", 0.7),
                              TestRow("01_naive.cpp", 0.1)};
  rows[1].date = "2026-11-25T10:00:00+00:00";
  rows[2].verdict.machine.gpu = "A GPU";
  const auto results = NewestResults(ladder, ladder.sizes[0], ladder.rungs, rows);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_FALSE(results[0].row);  // judged on a GPU
  ASSERT_TRUE(results[1].row);
  EXPECT_EQ(SpeedOf(results[1].row->verdict, "eager")->percent, 80);
  EXPECT_FALSE(NewestResults(ladder, ladder.sizes[1], ladder.rungs, rows)[1].row);
}

// Attention beside cuDNN is another problem file, with the same rungs and sizes.
TEST(NewestResults, ARowOfAnotherProblemFileIsNotTheLadders) {
  Ladder ladder = TestLadder();
  const std::vector<LadderRow> rows = {TestRow("01_naive.cpp", 0.5)};
  EXPECT_TRUE(NewestResults(ladder, ladder.sizes[0], ladder.rungs, rows)[0].row);
  ladder.problem = "problem_other.py";
  EXPECT_FALSE(NewestResults(ladder, ladder.sizes[0], ladder.rungs, rows)[0].row);
}

}  // namespace
}  // namespace assay
