#include "model/verdict_outline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/sample_verdicts.h"
#include "model/verdict_json.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string ErrorOf(std::string_view text) {
  const auto verdict = VerdictOutlineFromJson(text);
  return verdict ? "no error" : verdict.error().message;
}

// What an outline leaves empty.
Verdict Shortened(Verdict verdict) {
  verdict.samples.clear();
  verdict.log.clear();
  verdict.work.reset();
  verdict.roofline.reset();
  verdict.kernels.clear();
  verdict.profile.reset();
  verdict.sustained.reset();
  verdict.problem.signature.clear();
  if (verdict.correctness) verdict.correctness->draws.clear();
  return verdict;
}

TEST(VerdictOutline, HasAllButTheLongMembers) {
  for (const Verdict& verdict : SampleVerdicts()) {
    for (const int indent : {-1, 1}) {
      const auto outline = VerdictOutlineFromJson(VerdictToJson(verdict, indent));
      ASSERT_TRUE(outline) << outline.error().message;
      EXPECT_EQ(VerdictToJson(*outline, 1), VerdictToJson(Shortened(verdict), 1));
    }
  }
}

TEST(VerdictOutline, TextThatLooksLikeStructureIsText) {
  Verdict verdict = SampleVerdict(Outcome::kCrashed);
  verdict.log = R"(}], "samples": [ \" { )";
  verdict.message = R"(a "quoted" \ { [)";
  // A constant may have any name: those of the long members, too.
  verdict.problem.set = {{"samples", "[1]"}, {"signature", "8"}, {"log", "0"}};
  const auto outline = VerdictOutlineFromJson(VerdictToJson(verdict, 2));
  ASSERT_TRUE(outline) << outline.error().message;
  EXPECT_EQ(VerdictToJson(*outline, 1), VerdictToJson(Shortened(verdict), 1));
}

TEST(VerdictOutline, EveryTextThatWasCutOffIsRefused) {
  const std::string text = VerdictToJson(SampleVerdict(Outcome::kFaster), 1);
  for (size_t size = 1; size < text.size(); ++size)
    ASSERT_THAT(ErrorOf(text.substr(0, size)), HasSubstr("cut off")) << size;
}

TEST(VerdictOutline, StructureIsStillChecked) {
  const std::string text = VerdictToJson(SampleVerdict(Outcome::kFaster), -1);
  EXPECT_THAT(ErrorOf(text + "}"), HasSubstr("not a verdict"));
  EXPECT_THAT(ErrorOf("{," + text.substr(1)), HasSubstr("not a verdict"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("schema is missing"));
  EXPECT_THAT(ErrorOf("7"), HasSubstr("not a verdict"));
  std::string other = text;
  other.replace(other.find("verdict/1"), 9, "verdict/2");
  EXPECT_THAT(ErrorOf(other), HasSubstr("assay.verdict/2"));
}

TEST(SplitVerdicts, OneIsOne) {
  const VerdictTexts texts = SplitVerdicts(" {\"a\": [1]}\n", false);
  EXPECT_THAT(texts.documents, SizeIs(1));
  EXPECT_THAT(texts.fault, IsEmpty());
}

TEST(SplitVerdicts, AListIsTakenApart) {
  const VerdictTexts texts = SplitVerdicts("[{\"a\": \"],\"},\n {\"b\": [[]]} ]\n", false);
  EXPECT_THAT(texts.documents, testing::ElementsAre("{\"a\": \"],\"}", "{\"b\": [[]]}"));
  EXPECT_THAT(texts.fault, IsEmpty());
  EXPECT_THAT(SplitVerdicts("[]", false).documents, IsEmpty());
  EXPECT_THAT(SplitVerdicts("[]", false).fault, IsEmpty());
}

TEST(SplitVerdicts, WhatAListHasWholeIsKept) {
  const VerdictTexts cut = SplitVerdicts("[{\"a\": 1},\n{\"b\": ", false);
  EXPECT_THAT(cut.documents, testing::ElementsAre("{\"a\": 1}"));
  EXPECT_THAT(cut.fault, HasSubstr("cut off"));
  EXPECT_THAT(SplitVerdicts("[{},", false).fault, HasSubstr("cut off"));
  EXPECT_THAT(SplitVerdicts("[", false).fault, HasSubstr("cut off"));
  EXPECT_THAT(SplitVerdicts("[{} {}]", false).fault, HasSubstr("no comma"));
  EXPECT_THAT(SplitVerdicts("[{}] {}", false).fault, HasSubstr("after the list"));
}

TEST(SplitVerdicts, ALineThatWasCutOffSpoilsNoOther) {
  const VerdictTexts texts = SplitVerdicts("{\"a\": 1}\n\n{\"b\": [\n{\"c\": 3}", true);
  EXPECT_THAT(texts.documents, testing::ElementsAre("{\"a\": 1}", "{\"b\": [", "{\"c\": 3}"));
}

TEST(SplitVerdicts, NothingIsAFault) {
  EXPECT_THAT(SplitVerdicts(" \n", false).fault, HasSubstr("empty"));
  EXPECT_THAT(SplitVerdicts("", true).documents, IsEmpty());
}

}  // namespace
}  // namespace assay
