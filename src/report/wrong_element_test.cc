#include "report/wrong_element.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

Mismatch Values(double expected, double got) { return {"out", {0}, expected, got, 1}; }

// A card said 'got 6.64996e+07' of two integers that differ in their last digit.
TEST(WrongElement, IntegersHaveAllTheirDigits) {
  Mismatch mismatch = Values(0x1p62, 0x1p62);
  mismatch.whole = WholeValues{.expected = (int64_t{1} << 62) + 1, .got = int64_t{1} << 62};
  const ElementTexts texts = TextsOf(mismatch, 6);
  EXPECT_EQ(texts.expected, "4611686018427387905");
  EXPECT_EQ(texts.got, "4611686018427387904");
}

TEST(WrongElement, OthersHaveAsManyAsTellThemApart) {
  ElementTexts texts = TextsOf(Values(0.123456789, 0.2), 6);
  EXPECT_EQ(texts.expected, "0.123457");
  EXPECT_EQ(texts.got, "0.2");
  texts = TextsOf(Values(16777217, 16777216), 6);
  EXPECT_EQ(texts.expected, "16777217");
  EXPECT_EQ(texts.got, "16777216");
  texts = TextsOf(Values(1, 1), 6);
  EXPECT_EQ(texts.expected, texts.got);
  EXPECT_EQ(TextsOf(Values(-std::nan(""), std::nan("")), 6).expected, "nan");
}

}  // namespace
}  // namespace assay
