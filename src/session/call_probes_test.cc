#include "session/call_probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/sample_verdicts.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(CallProbes, ASmallerSizeIsReadFromTheOptionsThatMakeIt) {
  EXPECT_THAT(SetOfOptions("--set ROWS=32 --set COLUMNS=64", {{"ROWS", "64"}, {"N", "3"}}),
              ElementsAre(Pair("COLUMNS", "64"), Pair("N", "3"), Pair("ROWS", "32")));
  // A value for a shell, and what is no option.
  EXPECT_THAT(SetOfOptions("--set 'SHAPE=(2, 3)'", {{"ROWS", "64"}}), IsEmpty());
  EXPECT_THAT(SetOfOptions("ROWS", {{"ROWS", "64"}}), IsEmpty());
}

// A card had no word on it, and a reader took --probe for broken.
TEST(CallProbes, WhatIsNotLookedAtIsTold) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  EXPECT_EQ(WhyNotLookedAt(CandidateForm::kNative, verdict), "");
  EXPECT_THAT(WhyNotLookedAt(CandidateForm::kPython, verdict), HasSubstr("native code"));
  verdict.speed.reset();
  EXPECT_THAT(WhyNotLookedAt(CandidateForm::kNative, verdict), HasSubstr("measured no speed"));
  verdict = SampleVerdict(Outcome::kWrong);
  EXPECT_THAT(WhyNotLookedAt(CandidateForm::kNative, verdict), HasSubstr("correct candidates"));
}

}  // namespace
}  // namespace assay
