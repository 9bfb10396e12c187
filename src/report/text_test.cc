#include "report/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace assay {
namespace {

using ::testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(FormatBytes, KeepsThreeDigits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(812), "812 B");
  EXPECT_EQ(FormatBytes(16777216), "16.8 MB");
  EXPECT_EQ(FormatBytes(999'700), "1.00 MB");
  EXPECT_EQ(FormatBytes(123'456'789'000), "123 GB");
  EXPECT_EQ(FormatCount(10'485'760), "10.5 M");
  EXPECT_EQ(FormatCount(12), "12");
  EXPECT_EQ(FormatCount(4e18), "4000 P");
}

TEST(FormatRate, TakesThePrefixThatFits) {
  EXPECT_EQ(FormatRate(13.1e9, "B/s"), "13.1 GB/s");
  EXPECT_EQ(FormatRate(4.27e12, "B/s"), "4.27 TB/s");
  EXPECT_EQ(FormatRate(727e12, "FLOP/s"), "727 TFLOP/s");
  EXPECT_EQ(FormatRate(1.5e15, "FLOP/s"), "1.50 PFLOP/s");
}

TEST(Printable, DefusesWhatTerminalsActOn) {
  EXPECT_EQ(Printable("\x1b[2J\x1b]0;title\a", true), "?[2J?]0;title?");
  EXPECT_EQ(Printable("a\nb\tc\rd", true), "a b c d");
  EXPECT_EQ(Printable("\u202Egnp.exe\u200B\uFEFF", true), "?gnp.exe??");
  EXPECT_EQ(Printable("\u0085\u009b", true), "??");  // C1 controls
  EXPECT_EQ(Printable(std::string_view("\0x", 2), true), "?x");
}

TEST(Printable, KeepsTextAndReplacesBrokenBytes) {
  EXPECT_EQ(Printable("größe 数 ✔", true), "größe 数 ✔");
  EXPECT_EQ(Printable("größe", false), "gr??e");
  EXPECT_EQ(Printable("\xff\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80", true), std::string(10, '?'));
  EXPECT_EQ(Printable("\xe2\x96", true), "??");  // cut in the middle
}

TEST(DisplayWidth, CountsColumns) {
  EXPECT_EQ(DisplayWidth("abc"), 3);
  EXPECT_EQ(DisplayWidth("größe"), 5);
  EXPECT_EQ(DisplayWidth("数学"), 4);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1);
}

TEST(Shortened, MarksWhatItCut) {
  EXPECT_EQ(Shortened("softmax", 7, true), "softmax");
  EXPECT_EQ(Shortened("softmax.cpp", 7, true), "softma…");
  EXPECT_EQ(Shortened("softmax.cpp", 7, false), "soft...");
  EXPECT_EQ(Shortened("数数数", 4, true), "数…");
  EXPECT_EQ(Shortened("softmax", 2, false), "so");
  EXPECT_EQ(Shortened("softmax", 0, true), "");
}

TEST(Wrapped, BreaksAtSpacesAndInsideLongWords) {
  EXPECT_THAT(Wrapped("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(Wrapped("abcdefghij k", 4), ElementsAre("abcd", "efgh", "ij k"));
  EXPECT_THAT(Wrapped("  a   b ", 9), ElementsAre("a b"));
  EXPECT_THAT(Wrapped("", 9), ElementsAre(""));
  EXPECT_THAT(Wrapped("数数", 1), ElementsAre("数数"));  // ends, though no line can hold it
}

TEST(FormatDuration, PicksTheUnit) {
  EXPECT_EQ(FormatDuration(0), "0.00 ns");
  EXPECT_EQ(FormatDuration(812), "812 ns");
  EXPECT_EQ(FormatDuration(999.4), "999 ns");
  EXPECT_EQ(FormatDuration(999.6), "1.00 us");
  EXPECT_EQ(FormatDuration(12345), "12.3 us");
  EXPECT_EQ(FormatDuration(4.02e6), "4.02 ms");
  EXPECT_EQ(FormatDuration(9.996e6), "10.0 ms");
  EXPECT_EQ(FormatDuration(2.5e9), "2.50 s");
  EXPECT_EQ(FormatDuration(7.2e12), "7200 s");
  EXPECT_EQ(FormatDuration(kNan), "?");
  EXPECT_EQ(FormatDuration(-1), "?");
}

TEST(FormatRatio, KeepsWhatMatters) {
  EXPECT_EQ(FormatRatio(2.512), "2.51x");
  EXPECT_EQ(FormatRatio(1.003), "1.003x");
  EXPECT_EQ(FormatRatio(1.0999), "1.10x");
  EXPECT_EQ(FormatRatio(0.314), "0.314x");
  EXPECT_EQ(FormatRatio(0.0123), "0.012x");
  EXPECT_EQ(FormatRatio(48.24), "48.2x");
  EXPECT_EQ(FormatRatio(123.4), "123x");
  EXPECT_EQ(FormatRatio(999'999), "999999x");
  EXPECT_EQ(FormatRatio(1.7e308), "1.7e+308x");  // it had 309 digits
  EXPECT_EQ(FormatRatio(kInfinity), "?");
}

TEST(FormatGain, IsPercentUntilTwofold) {
  EXPECT_EQ(FormatGain(1.016), "1.6%");
  EXPECT_EQ(FormatGain(1.25), "25%");
  EXPECT_EQ(FormatGain(2.1), "2.10x");
  EXPECT_EQ(FormatGain(kNan), "?");
  EXPECT_EQ(FormatGain(0.9), "?");
}

TEST(FormatShare, ShowsSmallShares) {
  EXPECT_EQ(FormatShare(1.0 / 4096), "0.024%");
  EXPECT_EQ(FormatShare(0.5), "50%");
  EXPECT_EQ(FormatShare(0.9999), "over 99%");
  EXPECT_EQ(FormatShare(1), "all");
  EXPECT_EQ(FormatShare(kNan), "?");
}

TEST(ShellQuoted, ReadsBackAsOneArgument) {
  EXPECT_EQ(ShellQuoted("kernels/softmax.cpp"), "kernels/softmax.cpp");
  EXPECT_EQ(ShellQuoted(""), "''");
  EXPECT_EQ(ShellQuoted("my kernel.cpp"), "'my kernel.cpp'");
  EXPECT_EQ(ShellQuoted("it's; rm -rf ~"), "'it'\\''s; rm -rf ~'");
}

}  // namespace
}  // namespace assay
