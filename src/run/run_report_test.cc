#include "run/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/run_testing.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kMinuteNs = int64_t{60} * 1'000'000'000;

TEST(RunReport, ARowSaysWhatBecameOfACandidate) {
  const RunPlan plan = TestPlan();
  RunRow row = RowOf(plan, plan.items[1], "terms");
  row.verdict = SampleVerdict(Outcome::kFaster);
  const std::string line = RenderRunRow(row, {.width = 100});
  EXPECT_THAT(line, AllOf(StartsWith("1/23_Softmax "), HasSubstr("#1   faster "), HasSubstr("x ["),
                          EndsWith("\n")));
  row.verdict = SampleVerdict(Outcome::kWrong);
  EXPECT_THAT(RenderRunRow(row, {.width = 300}), HasSubstr(row.verdict->message));
  row.verdict->message = "second.py line 3: NameError: no such name";
  EXPECT_THAT(RenderRunRow(row, {.width = 300}), HasSubstr("wrong         line 3: NameError"));
  row.verdict.reset();
  row.error = Error{ErrorKind::kEnvironment,
                    "runs/x/second.py is not judged: it needs CUDA\nwhich is not here"};
  EXPECT_THAT(RenderRunRow(row, {.width = 100}), HasSubstr("not judged    it needs CUDA which"));
}

TEST(RunReport, ThePlanListsProblemsAndTroubles) {
  RunPlan plan = TestPlan();
  plan.problems[1].choice.set["dim"] = "64";
  EXPECT_EQ(RenderPlan(plan, {true, false, false}, {}),
            "3 candidates for 2 problems (3 Python); 1 judged before\n"
            "  1/23_Softmax               2 candidates\n"
            "  2/40_Matmul                1 candidate  dim=64\n");
  for (int i = 0; i < 22; ++i) plan.troubles.push_back(fmt::format("file {}: fault", i));
  EXPECT_THAT(RenderPlan(plan, {}, {}), AllOf(HasSubstr("22 cannot be judged:\n  file 0: fault\n"),
                                              EndsWith("file 19: fault\n  and 2 more\n")));
}

TEST(RunReport, AnEstimateRestsOnWhatWasJudged) {
  RunRow row;
  row.verdict = SampleVerdict(Outcome::kFaster);
  row.verdict->cost.total_s = 30;
  EXPECT_EQ(RenderEstimate({row, RunRow{}}, 10),
            "10 candidates left: about 5 min, at 30 s each as those judged before\n");
  EXPECT_EQ(RenderEstimate({row}, 0), "");
  EXPECT_EQ(RenderEstimate({RunRow{}}, 3), "");
}

TEST(RunReport, CountsOutcomesInOneOrder) {
  RunRow faster, wrong, unjudged;
  faster.verdict = SampleVerdict(Outcome::kFaster);
  wrong.verdict = SampleVerdict(Outcome::kWrong);
  unjudged.error = Error{};
  EXPECT_EQ(OutcomeCounts({&wrong, &faster, &wrong, &unjudged, nullptr}),
            "1 faster, 2 wrong, 2 not judged");
}

TEST(RunReport, ThePaceIsThatSinceTheStart) {
  RunPace pace(9, 0);
  EXPECT_EQ(pace.Text(kMinuteNs), "0 of 9, 0 faster");
  RunRow row;
  row.verdict = SampleVerdict(Outcome::kFaster);
  for (int i = 0; i < 3; ++i) pace.Add(row);
  EXPECT_EQ(pace.Text(2 * kMinuteNs), "3 of 9, 3 faster, 1.5 a minute, 4 min left");
  EXPECT_EQ(pace.Text(kMinuteNs / 2), "3 of 9, 3 faster, 6 a minute, 1 min left");
  EXPECT_EQ(pace.Text(300 * kMinuteNs), "3 of 9, 3 faster, 0.01 a minute, 10.0 h left");
  EXPECT_DOUBLE_EQ(pace.fraction(), 3.0 / 9);
}

}  // namespace
}  // namespace assay
