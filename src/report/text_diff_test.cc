#include "report/text_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(UnifiedDiff, OfEqualTextsIsEmpty) {
  EXPECT_EQ(UnifiedDiff("a\nb\n", "a\nb\n", "x", "y"), "");
  EXPECT_EQ(UnifiedDiff("", "", "x", "y"), "");
}

TEST(UnifiedDiff, ShowsAChangeWithThreeLinesAround) {
  EXPECT_EQ(UnifiedDiff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "x", "y"),
            "--- x\n+++ y\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(UnifiedDiff, ShowsChangesFarApartInHunksOfTheirOwn) {
  std::string before, after;
  for (int i = 1; i <= 30; ++i) {
    before += std::to_string(i) + "\n";
    if (i != 3) after += std::to_string(i) + "\n";
    if (i == 25) after += "new\n";
  }
  EXPECT_EQ(UnifiedDiff(before, after, "x", "y"),
            "--- x\n+++ y\n@@ -1,6 +1,5 @@\n 1\n 2\n-3\n 4\n 5\n 6\n"
            "@@ -23,6 +22,7 @@\n 23\n 24\n 25\n+new\n 26\n 27\n 28\n");
}

TEST(UnifiedDiff, CountsLinesOfATextThatIsEmpty) {
  EXPECT_EQ(UnifiedDiff("", "a\nb", "x", "y"), "--- x\n+++ y\n@@ -0,0 +1,2 @@\n+a\n+b\n");
  EXPECT_EQ(UnifiedDiff("a\n", "", "x", "y"), "--- x\n+++ y\n@@ -1 +0,0 @@\n-a\n");
}

TEST(UnifiedDiff, ReplacesWhatIsTooLongToCompare) {
  std::string before, after;
  for (int i = 0; i < 5000; ++i) {
    before += "a" + std::to_string(i) + "\n";
    after += "b" + std::to_string(i) + "\n";
  }
  const std::string diff = UnifiedDiff("same\n" + before, "same\n" + after, "x", "y");
  EXPECT_THAT(diff, testing::HasSubstr("@@ -1,5001 +1,5001 @@\n same\n-a0\n"));
}

}  // namespace
}  // namespace assay
