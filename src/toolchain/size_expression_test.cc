#include "toolchain/size_expression.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using testing::HasSubstr;

const SizeScope kScope{{{"rows", 1000}, {"BLOCK", 128}}, {{"x", {1000, 33}}, {"s", {}}}};

int64_t Value(std::string_view text) {
  const auto value = EvaluateSize(text, kScope);
  EXPECT_TRUE(value) << text << ": " << value.error();
  return value.value_or(-1);
}

std::string ErrorOf(std::string_view text) {
  const auto value = EvaluateSize(text, kScope);
  EXPECT_FALSE(value) << text << " = " << *value;
  return value ? "" : value.error();
}

TEST(SizeExpression, ArithmeticBindsAsInC) {
  EXPECT_EQ(Value("1 + 2 * 3"), 7);
  EXPECT_EQ(Value("(1+2)*3"), 9);
  EXPECT_EQ(Value("20 - 5 - 5"), 10);
  EXPECT_EQ(Value("100 / 7 % 5"), 4);
  EXPECT_EQ(Value("-7 / 2"), -3);
  EXPECT_EQ(Value("- -3"), 3);
  EXPECT_EQ(Value("9223372036854775807"), 9223372036854775807);
}

TEST(SizeExpression, NamesTensorsAndFunctions) {
  EXPECT_EQ(Value("rows*BLOCK"), 128000);
  EXPECT_EQ(Value("x.size(1) + x.size(2 - 2)"), 1033);
  EXPECT_EQ(Value("x.count"), 33000);
  EXPECT_EQ(Value("s.count"), 1);
  EXPECT_EQ(Value("ceil_div(rows, BLOCK)"), 8);
  EXPECT_EQ(Value("ceil_div(0, 3)"), 0);
  EXPECT_EQ(Value("min(rows, max(BLOCK, 5))"), 128);
}

TEST(SizeExpression, ErrorsSayWhatIsThere) {
  EXPECT_THAT(ErrorOf("row"), HasSubstr("no size 'row'; there are BLOCK, rows, s.size"));
  EXPECT_THAT(ErrorOf("x + 1"), HasSubstr("x is a tensor"));
  EXPECT_THAT(ErrorOf("x.size(2)"), HasSubstr("x has 2 axes"));
  EXPECT_THAT(ErrorOf("x.size(-1)"), HasSubstr("x has 2 axes"));
  EXPECT_THAT(ErrorOf("x.shape(0)"), HasSubstr(".size(axis) and .count"));
  EXPECT_THAT(ErrorOf("y.size(0)"), HasSubstr("no tensor 'y'"));
  EXPECT_THAT(ErrorOf("pow(2, 3)"), HasSubstr("no function 'pow'"));
  EXPECT_THAT(ErrorOf("ceil_div(4, 0)"), HasSubstr("divides by 1 or more"));
}

TEST(SizeExpression, NothingIsComputedWrongInSilence) {
  EXPECT_THAT(ErrorOf("1 / 0"), HasSubstr("division by zero"));
  EXPECT_THAT(ErrorOf("1 % (2 - 2)"), HasSubstr("division by zero"));
  EXPECT_THAT(ErrorOf("9223372036854775808"), HasSubstr("64 bits"));
  EXPECT_THAT(ErrorOf("9223372036854775807 + 1"), HasSubstr("64 bits"));
  EXPECT_THAT(ErrorOf("4611686018427387904 * 2"), HasSubstr("64 bits"));
  EXPECT_THAT(ErrorOf("(-9223372036854775807 - 1) / -1"), HasSubstr("64 bits"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("ends too early"));
  EXPECT_THAT(ErrorOf("1 +"), HasSubstr("ends too early"));
  EXPECT_THAT(ErrorOf("(1"), HasSubstr("')' is missing"));
  EXPECT_THAT(ErrorOf("1 2"), HasSubstr("'2' is not expected here"));
  EXPECT_THAT(ErrorOf("4k"), HasSubstr("no decimal number"));
  EXPECT_THAT(ErrorOf("1; 2"), HasSubstr("not expected"));
  EXPECT_THAT(ErrorOf(std::string(100, '(') + "1" + std::string(100, ')')),
              HasSubstr("nested too deeply"));
  EXPECT_THAT(ErrorOf(std::string(100, '-') + "1"), HasSubstr("nested too deeply"));
  EXPECT_THAT(ErrorOf(std::string(2000, '1')), HasSubstr("1000 bytes"));
}

}  // namespace
}  // namespace assay
