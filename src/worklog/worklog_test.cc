#include "worklog/worklog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "worklog/worklog_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;

class WorklogFolderTest : public testing::Test {
 protected:
  WorklogFolderTest() : temporary_(TemporaryFolder::Create().value()) {
    MatchBuilder builder = LostMatch();
    const Worklog worklog = builder.Build();
    auto folder = WorklogFolder::Make(Path());
    EXPECT_TRUE(folder);
    EXPECT_TRUE(folder->AddFacts(builder.facts()));
    EXPECT_TRUE(folder->AddWords(WordsHead(worklog.words)));
    for (const VersionWords& version : worklog.words.versions)
      EXPECT_TRUE(folder->AddWords(WordsOf(version)));
    for (const auto& [file, source] : worklog.sources) EXPECT_TRUE(folder->Write(file, source));
  }

  std::string Path() const { return (temporary_.path() / "match").string(); }
  void Write(const std::string& file, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(std::filesystem::path(Path()) / file, text));
  }
  std::string Content(const std::string& file) {
    return ReadFile(std::filesystem::path(Path()) / file, 1 << 24).value();
  }
  // The error of reading it.
  std::string Fault() {
    auto folder = WorklogFolder::Open(Path());
    if (!folder) return folder.error().message;
    auto worklog = folder->Read();
    return worklog ? "" : worklog.error().message;
  }

  TemporaryFolder temporary_;
};

TEST_F(WorklogFolderTest, ItIsReadAsItWasWritten) {
  auto folder = WorklogFolder::Open(Path());
  ASSERT_TRUE(folder);
  const auto worklog = folder->Read();
  ASSERT_TRUE(worklog) << worklog.error().message;
  EXPECT_EQ(worklog->match.versions.size(), 4u);
  EXPECT_EQ(worklog->words.versions.size(), 4u);
  EXPECT_EQ(worklog->SourceOf(*worklog->match.Find("v1")), "// v1\n");
}

TEST_F(WorklogFolderTest, WordsAreAddedAndNothingIsRewritten) {
  Write("worklog.toml", Content("worklog.toml") + "# the author's comment");
  auto folder = WorklogFolder::Open(Path());
  ASSERT_TRUE(folder);
  ASSERT_TRUE(folder->AddWords(WordsOf(StuckWords{Player::kHand, "text"})));
  EXPECT_THAT(Content("worklog.toml"), HasSubstr("# the author's comment\n\n[[stuck]]"));
}

TEST_F(WorklogFolderTest, EachBadStateHasOneClearError) {
  const std::string words = Content("worklog.toml"), facts = Content("facts.jsonl");
  Write("worklog.toml", "");
  EXPECT_THAT(Fault(), HasSubstr("worklog.toml is empty"));
  Write("worklog.toml", words + "<<<<<<< HEAD\n");
  EXPECT_THAT(Fault(), HasSubstr("a merge left a conflict"));
  Write("worklog.toml", words);
  Write("facts.jsonl", "");
  EXPECT_THAT(Fault(), HasSubstr("there are no facts"));
  Write("facts.jsonl", facts.substr(0, facts.size() / 2));
  EXPECT_THAT(Fault(), HasSubstr("not a fact of a worklog"));
  Write("facts.jsonl", facts.substr(facts.find('\n') + 1));
  EXPECT_THAT(Fault(), HasSubstr("do not begin with the match's beginning"));
  Write("facts.jsonl", facts);
  Write("plan.md", "\xff");
  EXPECT_THAT(Fault(), HasSubstr("plan.md is not UTF-8"));
  Write("plan.md", std::string(2 << 20, 'x'));
  EXPECT_THAT(Fault(), HasSubstr("larger than the limit"));
  Write("plan.md", "words\n");
  EXPECT_EQ(Fault(), "");
  std::filesystem::remove(std::filesystem::path(Path()) / "worklog.toml");
  EXPECT_THAT(Fault(), HasSubstr("has no worklog"));
}

TEST_F(WorklogFolderTest, AnotherMatchsFactsAreTold) {
  std::string words = Content("worklog.toml");
  words.replace(words.find("0123456789ab"), 12, "ffffffffffff");
  Write("worklog.toml", words);
  EXPECT_THAT(Fault(), HasSubstr("they are of two matches"));
}

TEST_F(WorklogFolderTest, LinksLeadNowhere) {
  namespace fs = std::filesystem;
  const fs::path folder = Path();
  const fs::path secret = temporary_.path() / "secret";
  ASSERT_TRUE(WriteFileAtomically(secret, "secret"));
  fs::remove(folder / "versions" / "v1.cpp");
  fs::create_symlink(secret, folder / "versions" / "v1.cpp");
  auto opened = WorklogFolder::Open(Path());
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->Read()->sources.count("versions/v1.cpp"), 0u);
  fs::create_symlink(secret, folder / "plan.md");
  EXPECT_THAT(opened->Read().error().message, HasSubstr("plan.md is a symbolic link"));
}

TEST_F(WorklogFolderTest, ANewWorklogTakesNobodysPlace) {
  const auto folder = WorklogFolder::Make(Path());
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, HasSubstr("has a worklog"));
}

TEST(Source, MustBeTextOfAModerateLength) {
  EXPECT_TRUE(CheckSource("int x;", "a.cpp"));
  EXPECT_THAT(CheckSource("caf\xe9", "a.cpp").error().message,
              HasSubstr("a.cpp is not UTF-8, and a worklog is text: save it as UTF-8"));
  EXPECT_THAT(CheckSource(std::string(5 << 20, 'x'), "a.cpp").error().message,
              HasSubstr("a.cpp has 5.24 MB; a worklog takes sources of 1.05 MB at most"));
}

}  // namespace
}  // namespace assay
