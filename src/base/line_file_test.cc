#include "base/line_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <fstream>

#include "base/files.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LineFiles : public ::testing::Test {
 protected:
  LineFiles() : folder_(TemporaryFolder::Create().value()) {}
  std::string Path() const { return (folder_.path() / "new" / "lines").string(); }
  std::string Text() const { return ReadFile(Path(), 1 << 20).value(); }
  Result<LineFile> Open() const {
    return LineFile::Open(Path(), "assay run",
                          [](std::string_view line) { return line.ends_with("}"); });
  }

  TemporaryFolder folder_;
};

TEST_F(LineFiles, GrowsByALine) {
  {
    auto file = Open();
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_TRUE(file->Append("{1}"));
    EXPECT_TRUE(file->Append("{2}"));
    EXPECT_EQ(file->Read(), "{1}\n{2}\n");
    EXPECT_FALSE(file->was_torn());
  }
  EXPECT_EQ(Open()->Read(), "{1}\n{2}\n");
}

TEST_F(LineFiles, OneProcessAtATimeHasIt) {
  const auto file = Open();
  const auto second = Open();
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("is in use: another assay run adds to it"));
}

TEST_F(LineFiles, ATornLineIsCutOffAndNoOther) {
  ASSERT_TRUE(Open()->Append("{1}"));
  std::ofstream(Path(), std::ios::app) << "{2";
  auto file = Open();
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->was_torn());
  EXPECT_TRUE(file->Append("{3}"));
  EXPECT_EQ(Text(), "{1}\n{3}\n");
}

TEST_F(LineFiles, AWholeLineWithoutItsLineBreakStays) {
  ASSERT_TRUE(Open()->Append("{1}"));
  std::ofstream(Path(), std::ios::app) << "{2}";
  auto file = Open();
  EXPECT_FALSE(file->was_torn());
  EXPECT_TRUE(file->Append("{3}"));
  EXPECT_EQ(Text(), "{1}\n{2}\n{3}\n");
}

// As on a full disk: a part of the line was written when the rest did not fit.
TEST_F(LineFiles, ALineThatDoesNotFitLeavesNothing) {
  auto file = Open();
  ASSERT_TRUE(file->Append("{1}"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit few{20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &few), 0);
  const auto added = file->Append("{" + std::string(100, '2') + "}");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().message, HasSubstr("cannot write to " + Path()));
  EXPECT_EQ(Text(), "{1}\n");
  EXPECT_TRUE(file->Append("{3}"));
  EXPECT_EQ(Text(), "{1}\n{3}\n");
}

TEST(Lines, AreTakenOneByOneAndATornOneIsNot) {
  const auto lines_of = [](std::string_view text) {
    std::vector<std::string> lines;
    const auto read = ForEachLine(
        text, "rows", [](std::string_view line) { return line.ends_with("}"); },
        [&](std::string_view line) -> Result<void> {
          if (line.empty()) return UsageError("it is empty");
          lines.emplace_back(line);
          return {};
        });
    if (!read) lines.push_back(read.error().message);
    return lines;
  };
  EXPECT_THAT(lines_of("{1}\n{2}\n"), ElementsAre("{1}", "{2}"));
  EXPECT_THAT(lines_of("{1}\n{2}"), ElementsAre("{1}", "{2}"));
  EXPECT_THAT(lines_of("{1}\n{2"), ElementsAre("{1}"));
  EXPECT_THAT(lines_of("{1}\n\n{3}\n"),
              ElementsAre("{1}", "rows line 2: it is empty: mend or remove the line"));
  EXPECT_THAT(lines_of(""), ElementsAre());
}

TEST_F(LineFiles, WhatCannotBeOpenedIsNamed) {
  std::ofstream(folder_.path() / "new");
  const auto file = Open();
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("cannot open " + Path()));
}

}  // namespace
}  // namespace assay
