#include "model/older_words.h"

#include <gtest/gtest.h>

#include "model/sample_verdicts.h"
#include "model/verdict_json.h"

namespace assay {
namespace {

// The JSON of a verdict without this member, as older versions wrote it.
std::string Without(std::string text, const std::string& member) {
  const size_t at = text.find("\"" + member + "\":");
  EXPECT_NE(at, std::string::npos) << member;
  const size_t end = text.find_first_of(",}", at);
  return text[end] == ',' ? text.erase(at, end + 1 - at) : text.erase(at - 1, end + 1 - at);
}

TEST(OlderWords, AHintTellsItsMistake) {
  const auto mistake = MistakeByOlderWords;
  EXPECT_EQ(mistake(""), Mistake::kNone);
  EXPECT_EQ(mistake("right on ordinary values, wrong on huge values: likely overflow"),
            Mistake::kHugeValues);
  EXPECT_EQ(mistake("right on ordinary values, wrong in a new way"), Mistake::kUnusualValues);
  EXPECT_EQ(mistake("right at the size that was asked for, but at 3 x 5: all NaN"),
            Mistake::kOtherSize);
  EXPECT_EQ(mistake("12% of the elements are wrong, by up to 3"), Mistake::kOther);
}

TEST(OlderWords, AVerdictWithoutCodesGetsThem) {
  Verdict wrong = SampleVerdict(Outcome::kWrong);
  wrong.correctness->hint = "all zeros";
  wrong.correctness->draws[0].reason = "left out for the time: one draw takes 9 s here";
  wrong.machine.isolation = "WEAK: it read a file; bubblewrap";
  std::string text = VerdictToJson(wrong, -1);
  for (const char* member : {"mistake", "weak", "cause", "line"}) text = Without(text, member);
  const auto read = VerdictFromJson(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->correctness->mistake, Mistake::kOneValue);
  EXPECT_TRUE(read->correctness->draws[0].for_time);
  EXPECT_TRUE(read->machine.weak);
  EXPECT_EQ(read->cause, Cause::kNone);

  const auto failed =
      VerdictFromJson(Without(VerdictToJson(SampleVerdict(Outcome::kBuildFailed), -1), "line"));
  ASSERT_TRUE(failed) << failed.error().message;
  EXPECT_EQ(failed->line, 12);
}

TEST(OlderWords, AnUnsettledVerdictWithoutSpeedHasACause) {
  Verdict verdict = SampleVerdict(Outcome::kUnsettled);
  EXPECT_EQ(CauseByOlderWords(verdict), Cause::kNone);
  verdict.speed.reset();
  EXPECT_EQ(CauseByOlderWords(verdict), Cause::kBlindProblem);
  verdict.message = "correct; its speed was not measured: use --budget 90";
  EXPECT_EQ(CauseByOlderWords(verdict), Cause::kLongCalls);
}

TEST(OlderWords, ABudgetThatOtherProcessesTookIsDisturbed) {
  Verdict verdict = SampleVerdict(Outcome::kUnsettled);
  BaselineResult& eager = verdict.speed->baselines.at("eager");
  eager.why_unsettled = {UnsettledCause::kBudget, 60};
  eager.note = "other processes disturbed 12% of the measurements";
  const auto read = VerdictFromJson(Without(VerdictToJson(verdict, -1), "disturbed"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->speed->baselines.at("eager").why_unsettled->disturbed);
}

// Verdicts of today's judge are read by their codes, whatever their words hold.
TEST(OlderWords, WordsOfTodayDecideNothing) {
  Verdict verdict = SampleVerdict(Outcome::kUnsettled);
  verdict.speed.reset();
  verdict.message = "--budget, line 3: its memory limit";
  verdict.correctness->hint = "right on ordinary values";
  verdict.machine.isolation = "WEAK";
  const auto read = VerdictFromJson(VerdictToJson(verdict, -1));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->cause, Cause::kNone);
  EXPECT_EQ(read->line, 0);
  EXPECT_EQ(read->correctness->mistake, Mistake::kNone);
  EXPECT_FALSE(read->machine.weak);
}

}  // namespace
}  // namespace assay
