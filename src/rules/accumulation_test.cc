// Emulates a matrix unit that adds float8 products in 14 bits, with and without promotion.
#include "rules/accumulation.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "rules/elements.h"
#include "rules/gate1_testing.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kLength = 4096, kElements = 96, kStep = 32, kPromoted = 128;

// Numbers of e4m3 of all sizes; no NaN.
std::vector<double> Numbers(size_t count, uint32_t seed, bool one_sign) {
  std::mt19937 generator(seed);
  std::vector<double> numbers(count);
  for (double& number : numbers) {
    const auto code = static_cast<uint8_t>(generator() % 127 | (generator() % 2) << 7);
    LoadAsDouble(DType::kFloat8E4M3, &code, 0, 1, &number);
    if (one_sign) number = 64 + std::fabs(number) / 8;
  }
  return numbers;
}

// One step of the unit: addends are cut at 2^-13 of the largest, towards zero.
double AddStep(double sum, const double* products) {
  double largest = std::fabs(sum);
  for (size_t i = 0; i < kStep; ++i) largest = std::max(largest, std::fabs(products[i]));
  if (largest == 0) return 0;
  const double unit = std::ldexp(1.0, std::ilogb(largest) - 13);
  double total = std::trunc(sum / unit);
  for (size_t i = 0; i < kStep; ++i) total += std::trunc(products[i] / unit);
  return total * unit;
}

// A row of sums of kLength products, promoted every `promoted` of them.
struct Product {
  TestOutput output;
  HintContext context;
  uint8_t none = 0;

  Product(bool one_sign, size_t promoted, DType operands = DType::kFloat8E4M3) {
    const std::vector<double> a = Numbers(kLength, 1, one_sign);
    output.shape = {1, kElements};
    for (uint32_t element = 0; element < kElements; ++element) {
      std::vector<double> products = Numbers(kLength, element + 2, one_sign);
      double truth = 0, total = 0, sum = 0;
      for (size_t k = 0; k < kLength; ++k) truth += products[k] *= a[k];
      for (size_t k = 0; k < kLength; k += kStep) {
        sum = AddStep(sum, &products[k]);
        if ((k + kStep) % promoted != 0) continue;
        total += std::exchange(sum, 0.0);
      }
      output.truth.push_back(truth);
      output.reference.push_back(static_cast<float>(truth));
      output.candidate.push_back(static_cast<float>(total));
    }
    context.inputs = {{"a", operands, kLength, &none, kLength},
                      {"b", operands, kLength * kElements, &none, kLength}};
  }
  std::string Said() const { return DescribeAccumulation(output.View(), context); }
};

TEST(Accumulation, OneLevelSumsOfOneSignAreNamedAndFailInBFloat16) {
  const Product product(true, kLength);
  EXPECT_THAT(product.Said(), HasSubstr("too small by"));
  EXPECT_THAT(product.Said(), HasSubstr("sums of 4096 float8 products"));
  CompareRule rule;
  rule.required = PrecisionClass::kBFloat16;
  const OutputView view = product.output.View();
  const OutputComparison comparison = CompareWithOracle(view, rule, nullptr);
  EXPECT_FALSE(comparison.passed);
  const Hint hint = FailureHint(view, comparison, product.context);
  EXPECT_THAT(hint.text, HasSubstr("one-level accumulation"));
  EXPECT_EQ(hint.mistake, Mistake::kPrecision);
}

TEST(Accumulation, OneLevelSumsOfBothSignsAreNamedWhereTheyFail) {
  const Product product(false, kLength);
  const OutputView view = product.output.View();
  const OutputComparison comparison = CompareWithOracle(view, {}, nullptr);
  EXPECT_FALSE(comparison.passed) << "float32 demands more";
  const Hint hint = FailureHint(view, comparison, product.context);
  EXPECT_THAT(hint.text, HasSubstr("one-level accumulation"));
  EXPECT_EQ(hint.mistake, Mistake::kPrecision);
}

TEST(Accumulation, PromotedSumsPassInBFloat16AndAreNotNamed) {
  CompareRule rule;
  rule.required = PrecisionClass::kBFloat16;
  for (const bool one_sign : {true, false}) {
    const Product product(one_sign, kPromoted);
    EXPECT_TRUE(CompareWithOracle(product.output.View(), rule, nullptr).passed);
    EXPECT_THAT(product.Said(), IsEmpty());
  }
}

TEST(Accumulation, OtherErrorsAreNotTakenForIt) {
  EXPECT_THAT(Product(true, kLength, DType::kUInt8).Said(), IsEmpty()) << "no float8 input";
  Product rounded(false, kPromoted);
  for (float& value : rounded.output.candidate) value = RoundToBits(value, 8);
  EXPECT_THAT(rounded.Said(), IsEmpty()) << "rounded to bfloat16";
  Product scaled(true, kPromoted);
  for (float& value : scaled.output.candidate) value *= 0.5F;
  EXPECT_THAT(scaled.Said(), IsEmpty()) << "half of each sum is missing";
  Product broken(true, kLength);
  broken.output.candidate[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(broken.Said(), IsEmpty());
}

}  // namespace
}  // namespace assay
