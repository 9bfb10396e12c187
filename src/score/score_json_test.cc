#include "score/score_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "score/score_testing.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// tests/e2e/test_score.py holds it to docs/score.schema.json.
TEST(ScoreJson, SaysWhatTheScoreSays) {
  const Score score = ComputeScore(SelectVerdicts(FiveProblems(), {}).value(), {});
  const std::string text = ScoreToJson(score, {"a.json: broken"});
  EXPECT_THAT(text, StartsWith("{\n \"schema\": \"assay.score/1\""));
  EXPECT_THAT(text, HasSubstr("\"asked\": 5"));
  EXPECT_THAT(text, HasSubstr("\"share\": 0.6"));
  EXPECT_THAT(text, HasSubstr("a.json: broken"));
}

TEST(ScoreJson, NamesThatAreNoTextBreakNothing) {
  std::vector<Verdict> verdicts{Judged("bad \xff name", Outcome::kWrong)};
  const std::string text = ScoreToJson(ComputeScore(SelectVerdicts(verdicts, {}).value(), {}), {});
  EXPECT_THAT(text, HasSubstr("bad \xEF\xBF\xBD name"));
}

}  // namespace
}  // namespace assay
