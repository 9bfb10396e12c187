#include "search/normalise.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(NormalisedSource, LosesCommentsAndWhiteSpace) {
  EXPECT_EQ(NormalisedSource("// a\nint  x;\t/* b\n c */ int y; // d\n\n\n  int z;\n", "cpp"),
            "int x; int y;\nint z;");
  EXPECT_EQ(NormalisedSource("int x;  \r\nint y;", "cpp"), "int x;\nint y;");
}

TEST(NormalisedSource, KeepsLinesThatAssayReads) {
  EXPECT_EQ(NormalisedSource("//! tune A = 1\nint x; // 1", "cpp"), "//! tune A = 1\nint x;");
  EXPECT_NE(NormalisedSource("//! tune A = 1", "cpp"), NormalisedSource("//! tune A = 2", "cpp"));
  EXPECT_EQ(NormalisedSource("/*! flags -O1 */\nint x;", "c"), "/*! flags -O1 */\nint x;");
}

TEST(NormalisedSource, KeepsLiterals) {
  EXPECT_EQ(NormalisedSource("f(\"a  // b\\\"  c\");  g('\"', ' ');", "cpp"),
            "f(\"a  // b\\\"  c\"); g('\"', ' ');");
  EXPECT_EQ(NormalisedSource("x = R\"k(  // no\n\n comment )k\";  y", "cpp"),
            "x = R\"k(  // no\n\n comment )k\"; y");
  EXPECT_EQ(NormalisedSource("int n = 1'000;  // a 'word", "cpp"), "int n = 1'000;");
}

TEST(NormalisedSource, TextThatEndsEarlyIsTakenAsItIs) {
  EXPECT_EQ(NormalisedSource("x = \"never closed", "cpp"), "x = \"never closed");
  EXPECT_EQ(NormalisedSource("x /* never closed", "cpp"), "x");
  EXPECT_EQ(NormalisedSource("R\"(never closed", "cpp"), "R\"(never closed");
  EXPECT_EQ(NormalisedSource("'\\", "cpp"), "'\\");
}

TEST(NormalisedSource, IndentationMeansSomethingInPython) {
  EXPECT_EQ(NormalisedSource("def f():  \n\n    return 1\n", "python"), "def f():\n    return 1\n");
}

}  // namespace
}  // namespace assay
