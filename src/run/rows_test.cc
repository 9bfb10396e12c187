#include "run/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "run/run_testing.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

class RunRowFiles : public ::testing::Test {
 protected:
  RunRowFiles() : folder_(TemporaryFolder::Create().value()), plan_(TestPlan()) {}
  std::string Path() const { return (folder_.path() / "verdicts.jsonl").string(); }
  RunRow Judged(size_t item) const {
    RunRow row = RowOf(plan_, plan_.items[item], "terms");
    row.date = "2026-11-27T10:00:00Z";
    row.verdict = SampleVerdict(Outcome::kFaster);
    return row;
  }
  RunRow Unjudged(size_t item) const {
    RunRow row = RowOf(plan_, plan_.items[item], "terms");
    row.error = Error{ErrorKind::kEnvironment, "needs CUDA, which is not here"};
    return row;
  }

  TemporaryFolder folder_;
  RunPlan plan_;
};

TEST_F(RunRowFiles, RowsAreReadAsTheyWereWritten) {
  {
    auto file = RunRows::Open(Path());
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->Append({Judged(1), Unjudged(2)}));
    EXPECT_THAT(RunRows::Open(Path()).error().message, HasSubstr("another assay run adds to it"));
  }
  const auto file = RunRows::Open(Path());
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->rows().size(), 2u);
  EXPECT_TRUE(IsRunRow(RunRowToJson(file->rows()[1])));
  EXPECT_FALSE(IsRunRow(R"({"schema":"assay.verdict/1"})"));
  const RunRow& row = file->rows()[0];
  EXPECT_EQ(row.key, RunKey(plan_, plan_.items[1], "terms"));
  EXPECT_EQ(row.level, 1);
  EXPECT_EQ(row.problem_number, 23);
  EXPECT_EQ(row.problem, "23_Softmax");
  EXPECT_EQ(row.sample, 1);
  EXPECT_EQ(row.verdict->outcome, Outcome::kFaster);
  EXPECT_EQ(row.verdict->samples.size(), Judged(1).verdict->samples.size());
  EXPECT_EQ(file->rows()[1].error->message, "needs CUDA, which is not here");
}

TEST_F(RunRowFiles, ATornRowIsDroppedAndABrokenOneNamed) {
  ASSERT_TRUE(RunRows::Open(Path())->Append({Judged(0)}));
  std::ofstream(Path(), std::ios::app) << RunRowToJson(Judged(1)).substr(0, 300);
  EXPECT_EQ(ReadRunRows(Path())->size(), 1u);
  {
    const auto file = RunRows::Open(Path());
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_TRUE(file->was_torn());
    EXPECT_EQ(file->rows().size(), 1u);
  }
  std::ofstream(Path(), std::ios::app) << "{}\n";
  EXPECT_THAT(RunRows::Open(Path()).error().message, HasSubstr("line 2: its schema is not"));
}

TEST_F(RunRowFiles, AKeyStandsForAllThatAVerdictDependsOn) {
  const std::string key = RunKey(plan_, plan_.items[0], "terms");
  EXPECT_EQ(RunKey(plan_, plan_.items[0], "terms"), key);
  EXPECT_NE(RunKey(plan_, plan_.items[0], "other terms"), key);
  EXPECT_NE(RunKey(plan_, plan_.items[1], "terms"), key);
  const auto changed = [&](auto change) {
    RunPlan other = TestPlan();
    change(other);
    return RunKey(other, other.items[0], "terms");
  };
  EXPECT_NE(changed([](RunPlan& plan) { plan.items[0].source.hash = "x"; }), key);
  EXPECT_NE(changed([](RunPlan& plan) { plan.items[0].sample = 5; }), key);
  EXPECT_NE(changed([](RunPlan& plan) { plan.problems[0].hash = "x"; }), key);
  EXPECT_NE(changed([](RunPlan& plan) { plan.problems[0].choice.set["dim"] = "4"; }), key);
  EXPECT_EQ(changed([](RunPlan& plan) { plan.items[0].source.path = "moved.py"; }), key);
}

TEST_F(RunRowFiles, AVerdictStandsBeforeAnyError) {
  const std::vector<RunRow> rows{Unjudged(0), Judged(1), Unjudged(1)};
  const auto found = RowsOfPlan(plan_, rows, "terms");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_TRUE(found[0]->error);
  EXPECT_TRUE(found[1]->verdict);
  EXPECT_EQ(found[2], nullptr);
  EXPECT_EQ(RowsOfPlan(plan_, rows, "other")[1], nullptr);
}

}  // namespace
}  // namespace assay
