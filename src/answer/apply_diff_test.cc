#include "answer/apply_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::HasSubstr;

constexpr std::string_view kSource = "a\nb\nc\nd\n\nx\nb\nc\ny\n";

std::string Applied(std::string_view edits, std::string_view source = kSource) {
  const auto applied = ApplyEdits(source, edits);
  return applied ? *applied : "error: " + applied.error();
}

TEST(ApplyEdits, AppliesUnifiedDiffs) {
  EXPECT_EQ(Applied("--- a/k.cpp\n+++ b/k.cpp\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"),
            "a\nB\nc\nd\n\nx\nb\nc\ny\n");
  // The nearest place to its line; later hunks move with the lines that earlier ones add.
  EXPECT_EQ(Applied("@@ -1 +1,3 @@\n a\n+1\n+2\n@@ -7,2 +9,1 @@\n-b\n c\n"),
            "a\n1\n2\nb\nc\nd\n\nx\nc\ny\n");
}

TEST(ApplyEdits, ForgivesWhatModelsGetWrong) {
  // Wrong line numbers, none at all, blanks at line ends, a context line that lost its blank.
  EXPECT_EQ(Applied("@@ -700,1 +9,9 @@\n x\n-b\n+B\n"), "a\nb\nc\nd\n\nx\nB\nc\ny\n");
  EXPECT_EQ(Applied("@@ ... @@\n-a  \n+A\n b\n"), "A\nb\nc\nd\n\nx\nb\nc\ny\n");
  EXPECT_EQ(Applied("@@ @@\n d\n\n-x\n+X\n"), "a\nb\nc\nd\n\nX\nb\nc\ny\n");
  // Prose after a hunk.
  EXPECT_EQ(Applied("@@ -1 +1 @@\n-a\n+A\n b\n\nThis is faster.\n"), "A\nb\nc\nd\n\nx\nb\nc\ny\n");
  EXPECT_EQ(Applied("@@ -1 +1 @@\r\n-a\r\n+A\r\n", "a\r\nb\r\n"), "A\nb\n");
}

TEST(ApplyEdits, AppliesSearchAndReplace) {
  EXPECT_EQ(Applied("<<<<<<< SEARCH\nc\nd\n=======\nC\n>>>>>>> REPLACE\n"
                    "<<<<<<< SEARCH\ny\n=======\ny\nz\n>>>>>>> REPLACE\n"),
            "a\nb\nC\n\nx\nb\nc\ny\nz\n");
  EXPECT_THAT(Applied("<<<<<<< SEARCH\nc\n=======\nC\n"), HasSubstr("no '>>>>>>> REPLACE' line"));
}

TEST(ApplyEdits, NamesTheEditThatDoesNotFit) {
  EXPECT_THAT(Applied("@@ -1 +1 @@\n-a\n+A\n@@ -2 +2 @@\n-nowhere\n+B\n"),
              HasSubstr("Edit 2 does not fit the source: these lines are not in it, one after the "
                        "other, beginning with 'nowhere'"));
  EXPECT_THAT(Applied("nothing"), HasSubstr("no edit"));
  EXPECT_THAT(Applied("@@ @@\n+only\n"), HasSubstr("does not fit"));
}

TEST(ApplyEdits, AddsAWholeFile) {
  EXPECT_EQ(Applied("--- /dev/null\n+++ b/k.cpp\n@@ -0,0 +1,2 @@\n+one\n+two\n"), "one\ntwo\n");
}

TEST(LooksLikeEdits, TellsDiffsFromCode) {
  EXPECT_TRUE(LooksLikeEdits("@@ -1 +1 @@\n-a\n+b\n"));
  EXPECT_TRUE(LooksLikeEdits("x\n<<<<<<< SEARCH\n"));
  EXPECT_FALSE(LooksLikeEdits("int a = 1\n- 2\n+ 3;\n"));
  EXPECT_FALSE(LooksLikeEdits("@decorator\ndef f():\n"));
}

}  // namespace
}  // namespace assay
