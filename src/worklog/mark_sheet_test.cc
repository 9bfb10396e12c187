#include "worklog/mark_sheet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worklog/worklog_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string SheetFor(const Worklog& worklog, const Marks& marks) {
  const Grade grade = GradeWorklog(worklog, CheckWorklog(worklog, GoodWitness(), ""),
                                   ParseRubric(DefaultRubricText(), "default").value(), marks)
                          .value();
  return RenderMarkSheet(worklog, grade, marks);
}

TEST(MarkSheet, AStudentReadsAllThatTheMentorSaid) {
  MatchBuilder builder = LostMatch();
  builder.words().author = "Ada";
  builder.words().versions.erase(builder.words().versions.begin());
  Marks marks;
  marks.mentor = "M. Entor";
  marks.note = "Show the profile.\nThe *gap* is well explained.";
  marks.lifted = "v1 was my demonstration";
  marks.points = {{"depth", 25}};
  const std::string sheet = SheetFor(builder.Build(), marks);
  EXPECT_THAT(sheet, HasSubstr("Ada, worklog 0123456789ab, marked by M. Entor."));
  EXPECT_THAT(sheet, HasSubstr("**25 of 30; not marked: correctness, analysis, honesty**"));
  EXPECT_THAT(sheet, HasSubstr("\n> Show the profile.\n>\n> The "));
  EXPECT_THAT(sheet, Not(HasSubstr("*gap*")));  // as it was typed, not as Markdown
  EXPECT_THAT(sheet, HasSubstr("## Depth of the attempt by hand: 25 of 30"));
  EXPECT_THAT(sheet, HasSubstr("## Honesty: not marked, of 10"));
  EXPECT_THAT(sheet, HasSubstr("- **found**, 10 points: at least three versions were measured"));
  EXPECT_THAT(sheet, HasSubstr("lifted by M. Entor: v1 was my demonstration."));
}

TEST(MarkSheet, WhatNobodyLiftedStandsThere) {
  MatchBuilder builder = LostMatch();
  builder.words().versions.erase(builder.words().versions.begin());
  EXPECT_THAT(SheetFor(builder.Build(), {}), HasSubstr("Honesty is 0 until a mentor lifts it."));
  EXPECT_THAT(SheetFor(LostMatch().Build(), {}), Not(HasSubstr("suspicious")));
}

}  // namespace
}  // namespace assay
