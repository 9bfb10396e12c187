#include "serve/worklog_upload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "serve/class_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;

std::vector<std::string> TextsOf(const std::vector<Finding>& findings, FindingKind kind) {
  std::vector<std::string> texts;
  for (const Finding& each : findings)
    if (each.kind == kind) texts.push_back(each.text);
  return texts;
}

TEST(WorklogUpload, AWholeWorklogIsComplete) {
  MatchBuilder builder = LostMatch();
  const auto uploaded = ReadUploadedWorklog(FilesOf(builder));
  ASSERT_TRUE(uploaded) << uploaded.error().message;
  EXPECT_EQ(uploaded->facts.size(), builder.facts().size());
  const auto findings = CheckUploadedWorklog(*uploaded, {uploaded->facts, false});
  EXPECT_THAT(TextsOf(findings, FindingKind::kSuspicious), testing::IsEmpty());
  EXPECT_THAT(TextsOf(findings, FindingKind::kChanged), testing::IsEmpty());
  // It goes without saying that the author's archive is elsewhere.
  for (const std::string& text : TextsOf(findings, FindingKind::kNote))
    EXPECT_THAT(text, testing::Not(HasSubstr("archive")));
}

// The report shows the reference: an upload without it would never be complete.
TEST(WorklogUpload, AWorklogThatIsCompleteHereIsCompleteThere) {
  for (const std::string name : {"match", "worklog"}) {
    const auto files = FilesOfWorklogFolder(ASSAY_SOURCE_DIRECTORY "/examples/" + name);
    ASSERT_TRUE(files) << files.error().message;
    const auto uploaded = ReadUploadedWorklog(*files);
    ASSERT_TRUE(uploaded) << uploaded.error().message;
    const auto findings = CheckUploadedWorklog(*uploaded, {uploaded->facts, false});
    EXPECT_THAT(TextsOf(findings, FindingKind::kMissing), testing::IsEmpty()) << name;
    EXPECT_THAT(TextsOf(findings, FindingKind::kChanged), testing::IsEmpty()) << name;
  }
}

TEST(WorklogUpload, AFolderAroundItIsStripped) {
  MatchBuilder builder = LostMatch();
  std::vector<TarFile> files = FilesOf(builder);
  const size_t count = files.size();
  for (TarFile& file : files) file.path = "match/" + file.path;
  files.push_back({"match/marks.toml", "mine"});
  files.push_back({"match/rubric.toml", "mine"});
  files.push_back({"match/.git/config", ""});
  files.push_back({"match/versions/deep/v1.cpp", ""});
  files.push_back({"elsewhere.toml", ""});
  const auto kept = FilesOfWorklog(std::move(files));
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->size(), count);
  EXPECT_TRUE(ReadUploadedWorklog(*kept));
}

TEST(WorklogUpload, TheReferenceGoesAlongSinceTheReportBeginsWithIt) {
  const std::string folder = ASSAY_SOURCE_DIRECTORY "/examples/worklog";
  const auto files = FilesOfWorklogFolder(folder);
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_EQ(std::ranges::count(*files, std::string(kReferenceFile), &TarFile::path), 1);
  const auto uploaded = ReadUploadedWorklog(*files);
  ASSERT_TRUE(uploaded) << uploaded.error().message;
  const auto findings = CheckUploadedWorklog(*uploaded, {uploaded->facts, false});
  EXPECT_THAT(TextsOf(findings, FindingKind::kMissing), testing::IsEmpty());
}

TEST(WorklogUpload, WithoutFactsItIsNone) {
  EXPECT_THAT(FilesOfWorklog({{"worklog.toml", ""}}).error().message, HasSubstr("facts.jsonl"));
  EXPECT_THAT(FilesOfWorklog({{"a.txt", ""}}).error().message, HasSubstr("worklog.toml"));
}

TEST(WorklogUpload, AnEditedFactIsRefusedByItsLine) {
  MatchBuilder builder = LostMatch();
  std::vector<TarFile> files = FilesOf(builder);
  for (TarFile& file : files)
    if (file.path == kFactsFile) {
      const size_t at = file.content.find("Three passes");
      ASSERT_NE(at, std::string::npos);
      file.content.replace(at, 5, "Seven");
    }
  const auto uploaded = ReadUploadedWorklog(files);
  ASSERT_FALSE(uploaded);
  EXPECT_EQ(uploaded.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(uploaded.error().message, HasSubstr("line"));
  EXPECT_THAT(uploaded.error().message, testing::Not(HasSubstr("/tmp")));
}

TEST(WorklogUpload, AFactThatWasThereOnceMustStay) {
  MatchBuilder builder = LostMatch();
  const auto uploaded = ReadUploadedWorklog(FilesOf(builder)).value();
  std::vector<std::string> known = uploaded.facts;
  known.push_back("another");
  const auto findings = CheckUploadedWorklog(uploaded, {known, false});
  EXPECT_THAT(TextsOf(findings, FindingKind::kSuspicious),
              testing::ElementsAre(HasSubstr("a fact is missing")));
}

TEST(WorklogUpload, ACopyOfAnothersWorklogIsSuspicious) {
  MatchBuilder builder = LostMatch();
  const auto uploaded = ReadUploadedWorklog(FilesOf(builder)).value();
  EXPECT_THAT(
      TextsOf(CheckUploadedWorklog(uploaded, {uploaded.facts, true}), FindingKind::kSuspicious),
      testing::ElementsAre(HasSubstr("another account")));
}

TEST(WorklogUpload, ALinkInTheFolderIsRefused) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  std::filesystem::create_symlink("/etc/passwd", folder.path() / "plan.md");
  EXPECT_THAT(FilesOfWorklogFolder(folder.path().string()).error().message,
              HasSubstr("symbolic link"));
}

}  // namespace
}  // namespace assay
