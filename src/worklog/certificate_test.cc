#include "worklog/certificate.h"

#include <gtest/gtest.h>

#include "worklog/markdown.h"
#include "worklog/worklog_testing.h"

namespace assay {
namespace {

constexpr const char* kLibrary = ASSAY_BUILD_DIRECTORY "/lib/assay/certificate.so";

TEST(Certificate, ItIsOnePageOfPdf) {
  MatchBuilder builder = LostMatch();
  builder.words().author = "A long name, with \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d and <b>marks</b>";
  const auto pdf = DrawCertificate(SheetOf(builder.Build(), {}, ""), kLibrary);
  ASSERT_TRUE(pdf) << pdf.error().message;
  EXPECT_TRUE(pdf->starts_with("%PDF-"));
  EXPECT_NE(pdf->find("%%EOF"), std::string::npos);
}

TEST(Certificate, ItSaysWhoWonAndWhatItIsWorth) {
  Grade grade;
  grade.mark = 91;
  grade.points = 100;
  const CertificateSheet sheet = SheetOf(LostMatch().Build(), grade, "M. Entor");
  EXPECT_EQ(sheet.hand.best, "0.900x");
  EXPECT_EQ(sheet.model.best, "1.60x");
  EXPECT_EQ(sheet.marks, "91 of 100 points for the worklog, marked by M. Entor");
  EXPECT_EQ(SheetOf(LostMatch().Build(), grade, "").marks, "");
}

TEST(Certificate, ALiftIsTold) {
  MatchBuilder builder = LostMatch();
  builder.words().versions.erase(builder.words().versions.begin());
  const Worklog worklog = builder.Build();
  Marks marks;
  marks.mentor = "M. Entor";
  marks.lifted = "v1 was my demonstration";
  const Grade grade = GradeWorklog(worklog, CheckWorklog(worklog, GoodWitness(), ""),
                                   ParseRubric(DefaultRubricText(), "default").value(), marks)
                          .value();
  EXPECT_TRUE(grade.open.empty());
  EXPECT_EQ(SheetOf(worklog, grade, "").marks,
            "what looked suspicious was lifted by M. Entor: v1 was my demonstration");
}

TEST(Certificate, TheHashIsThatOfTheMarkdown) {
  MatchBuilder builder = LostMatch();
  const std::string before = WorklogHash(builder.Build());
  EXPECT_EQ(before, Sha256Hex(RenderMarkdown(builder.Build())));
  builder.words().stuck[0].text += " And more.";
  EXPECT_NE(WorklogHash(builder.Build()), before);
}

TEST(Certificate, WithoutTheLibraryThereIsAnError) {
  const auto pdf = DrawCertificate(SheetOf(LostMatch().Build(), {}, ""), "/nonexistent/x.so");
  ASSERT_FALSE(pdf);
  EXPECT_EQ(pdf.error().kind, ErrorKind::kEnvironment);
  EXPECT_NE(pdf.error().message.find("cairo and pango"), std::string::npos);
}

}  // namespace
}  // namespace assay
