#include "rules/gate1.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <numeric>

#include "rules/elements.h"
#include "rules/error_scan.h"
#include "rules/gate1_testing.h"
#include "rules/row_kernels.h"

namespace assay {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// A candidate and a reference that both round the truth, so that errors are 0.
TestOutput Right(std::vector<int64_t> shape, uint32_t seed = 1) {
  TestOutput output;
  const int64_t count =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  output.shape = std::move(shape);
  output.reference = NormalDraw(static_cast<size_t>(count), seed);
  output.candidate = output.reference;
  output.truth.assign(output.reference.begin(), output.reference.end());
  return output;
}

// Judged against float64 and against the reference; both must agree.
bool Passes(const TestOutput& output, const CompareRule& rule = {}) {
  ReferenceError learned;
  const OutputComparison precise = CompareWithOracle(output.View(), rule, &learned);
  const OutputComparison timed = CompareWithReference(output.View(), rule, learned);
  EXPECT_EQ(precise.passed, timed.passed);
  EXPECT_EQ(precise.passed, !precise.mismatch.has_value());
  EXPECT_EQ(timed.passed, !timed.mismatch.has_value());
  return precise.passed;
}

TEST(Gate1, EqualOutputsPassInTheNativeClass) {
  const TestOutput output = Right({64, 100});
  const OutputComparison comparison = CompareWithOracle(output.View(), {}, nullptr);
  EXPECT_TRUE(comparison.passed);
  EXPECT_TRUE(comparison.meets_a_class);
  EXPECT_EQ(comparison.shown, PrecisionClass::kFloat32);
  EXPECT_EQ(comparison.error_ratio, 0);
  EXPECT_TRUE(Passes(output));
}

TEST(Gate1, OneElementOfAMillionWrongByAThousandthFails) {
  for (int64_t index : {int64_t{0}, int64_t{123456}, int64_t{999999}}) {
    TestOutput output = Right({1000, 1000});
    const auto at = static_cast<size_t>(index);
    output.reference[at] = output.candidate[at] = 0.75F;
    output.truth[at] = 0.75;
    EXPECT_TRUE(Passes(output));
    output.candidate[at] *= 1.001F;
    const OutputComparison comparison = CompareWithReference(output.View(), {}, {});
    EXPECT_FALSE(comparison.passed);
    ASSERT_TRUE(comparison.mismatch);
    EXPECT_EQ(comparison.mismatch->index, (std::vector<int64_t>{index / 1000, index % 1000}));
    EXPECT_FLOAT_EQ(static_cast<float>(comparison.mismatch->expected), 0.75F);
    EXPECT_DOUBLE_EQ(comparison.mismatch->share_wrong, 1e-6);
    EXPECT_FALSE(Passes(output));
  }
}

TEST(Gate1, NanAnywhereFails) {
  for (size_t at : {size_t{0}, size_t{17}, size_t{99}, size_t{6399}}) {
    TestOutput output = Right({64, 100});
    output.candidate[at] = kNaN;
    EXPECT_FALSE(Passes(output));
    EXPECT_EQ(CompareWithOracle(output.View(), {}, nullptr).error_ratio, kInf);
    CompareRule allclose;
    allclose.allclose = AllClose{0.5, 0.5};
    EXPECT_FALSE(Passes(output, allclose));
  }
}

TEST(Gate1, ExpectedNanAndInfinitiesMustBeThere) {
  const auto with = [](float expected, float got) {
    TestOutput output = Right({8, 40});
    output.reference[100] = expected;
    output.truth[100] = double{expected};
    output.candidate[100] = got;
    return output;
  };
  EXPECT_TRUE(Passes(with(kNaN, kNaN)));
  EXPECT_TRUE(Passes(with(kInf, kInf)));
  EXPECT_TRUE(Passes(with(-kInf, -kInf)));
  EXPECT_FALSE(Passes(with(kNaN, 1)));
  EXPECT_FALSE(Passes(with(kNaN, kInf)));
  EXPECT_FALSE(Passes(with(kInf, -kInf)));
  EXPECT_FALSE(Passes(with(kInf, std::numeric_limits<float>::max())));
  EXPECT_FALSE(Passes(with(kInf, kNaN)));
  EXPECT_FALSE(Passes(with(1, -kInf)));
}

TEST(Gate1, WrongElementsBesideExpectedNanStillFail) {
  TestOutput output = Right({8, 40});
  output.reference[3] = output.candidate[3] = kNaN;
  output.truth[3] = double{kNaN};
  EXPECT_TRUE(Passes(output));
  output.candidate[4] += 0.01F;
  EXPECT_FALSE(Passes(output));
  EXPECT_EQ(CompareWithOracle(output.View(), {}, nullptr).mismatch->index,
            (std::vector<int64_t>{0, 4}));
}

TEST(Gate1, ZerosForSmallOutputsFail) {
  TestOutput output = Right({64, 100});
  for (size_t i = 0; i < output.reference.size(); ++i) {
    output.reference[i] *= 1e-8F;
    output.truth[i] = double{output.reference[i]};
    output.candidate[i] = 0;
  }
  EXPECT_FALSE(Passes(output));
  CompareRule kernelbench;
  kernelbench.allclose = AllClose{1e-4, 1e-4};
  EXPECT_TRUE(Passes(output, kernelbench));  // the hole that error ratios close
}

TEST(Gate1, ARowOfSmallValuesHasItsOwnScale) {
  TestOutput output = Right({64, 100});
  for (size_t i = 100; i < 200; ++i) {
    output.reference[i] *= 1e-3F;
    output.truth[i] = double{output.reference[i]};
    output.candidate[i] = output.reference[i];
  }
  EXPECT_TRUE(Passes(output));
  for (size_t i = 100; i < 200; ++i) output.candidate[i] = 0;
  EXPECT_FALSE(Passes(output));
}

TEST(Gate1, RoundingAtTheScaleOfTheRestIsAllowedInRowsOfZeros) {
  TestOutput output = Right({64, 100});
  for (size_t i = 100; i < 200; ++i)
    output.reference[i] = output.candidate[i] = 0, output.truth[i] = 0;
  output.candidate[150] = 5e-8F;  // a value that should cancel
  EXPECT_TRUE(Passes(output));
  output.candidate[150] = 1e-4F;
  EXPECT_FALSE(Passes(output));
}

TEST(Gate1, DenormalsMayBeFlushedWithinTheRowsScaleOnly) {
  TestOutput output = Right({4, 100});
  output.reference[7] = 1e-39F;
  output.truth[7] = 1e-39;
  output.candidate[7] = 0;
  EXPECT_TRUE(Passes(output));
  for (size_t i = 0; i < output.reference.size(); ++i) {
    output.reference[i] = static_cast<float>(1e-40 * (1 + static_cast<double>(i)));
    output.truth[i] = double{output.reference[i]};
    output.candidate[i] = 0;
  }
  EXPECT_FALSE(Passes(output));
  for (size_t i = 0; i < output.reference.size(); ++i)
    output.truth[i] *= 1 + 1e-6;  // below one spacing
  output.candidate = output.reference;
  EXPECT_TRUE(Passes(output));
}

TEST(Gate1, AnUnwrittenLastBlockFails) {
  TestOutput output = Right({100, 300});
  for (size_t i = output.candidate.size() - 77; i < output.candidate.size(); ++i)
    output.candidate[i] = 0;
  EXPECT_FALSE(Passes(output));
  EXPECT_NEAR(CompareWithReference(output.View(), {}, {}).mismatch->share_wrong, 77.0 / 30000,
              1e-9);
}

TEST(Gate1, SignsOfZeroAreEqual) {
  TestOutput output = Right({4, 100});
  output.reference[5] = 0.0F;
  output.truth[5] = 0;
  output.candidate[5] = -0.0F;
  EXPECT_TRUE(Passes(output));
}

TEST(Gate1, AllZeroOutputsMustBeZeroButForRounding) {
  TestOutput output = Right({4, 100});
  output.reference.assign(400, 0);
  output.candidate.assign(400, 0);
  output.truth.assign(400, 0);
  EXPECT_TRUE(Passes(output));
  output.candidate[399] = 1e-30F;
  EXPECT_FALSE(Passes(output));
  output.ordinary_scale = 0.3;  // terms that cancel, as in the gradient of a softmax
  output.candidate[399] = -8e-9F;
  EXPECT_TRUE(Passes(output));
  output.candidate[399] = 1e-5F;
  EXPECT_FALSE(Passes(output));
}

TEST(Gate1, ScalarsShortRowsAndEmptyOutputsHaveRowsToo) {
  EXPECT_EQ(RowElements({}, 1), 1);
  EXPECT_EQ(RowElements({1000}, 1000), 1000);
  EXPECT_EQ(RowElements({50, 3, 3}, 450), 450);
  EXPECT_EQ(RowElements({50, 40, 3}, 6000), 120);
  EXPECT_EQ(RowElements({50, 16}, 800), 16);
  EXPECT_EQ(RowElements({5, 0}, 0), 1);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {1}, {7}, {50, 3}, {3, 5, 2}, {5, 0}, {2, 3000}}) {
    TestOutput output = Right(shape);
    EXPECT_TRUE(Passes(output));
    if (output.candidate.empty()) continue;
    output.candidate.back() += 1;
    EXPECT_FALSE(Passes(output));
  }
}

TEST(Gate1, HugeAndTinyFloat64ValuesNeitherOverflowNorVanish) {
  for (double scale : {1e-300, 1e-200, 1.0, 1e200, 1e300}) {
    std::vector<double> reference;
    for (int i = 0; i < 500; ++i) reference.push_back(scale * (1 + 0.01 * i));
    std::vector<double> candidate = reference;
    OutputView view;
    view.name = "out";
    view.dtype = DType::kFloat64;
    view.shape = {500};
    view.count = 500;
    view.candidate = candidate.data();
    view.reference = reference.data();
    view.oracle = reference.data();
    CompareRule rule;
    rule.required = PrecisionClass::kFloat64;
    const auto both = [&] {
      const bool precise = CompareWithOracle(view, rule, nullptr).passed;
      EXPECT_EQ(precise, CompareWithReference(view, rule, {}).passed) << scale;
      return precise;
    };
    EXPECT_TRUE(both());
    candidate[499] *= 1 + 1e-14;
    EXPECT_TRUE(both()) << scale;
    for (double& value : candidate) value = double{static_cast<float>(value / scale)} * scale;
    EXPECT_FALSE(both()) << scale;
    const OutputComparison rounded = CompareWithOracle(view, rule, nullptr);
    EXPECT_EQ(rounded.shown, PrecisionClass::kFloat32);
  }
}

TEST(Gate1, HalfPrecisionDecodesExactly) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const double value = LoadOne(DType::kFloat16, &half, 0);
    float as_float;
    LoadHalfAsFloat(DType::kFloat16, &half, 0, 1, &as_float);
    if (std::isnan(value)) {
      EXPECT_TRUE((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0);
      EXPECT_TRUE(std::isnan(as_float));
      continue;
    }
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const int mantissa = static_cast<int>(bits & 0x3ff);
    const double size = exponent == 31  ? double{kInf}
                        : exponent == 0 ? std::ldexp(mantissa, -24)
                                        : std::ldexp(1024 + mantissa, exponent - 25);
    EXPECT_EQ(value, bits & 0x8000 ? -size : size);
    EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0);
    EXPECT_EQ(double{as_float}, value);
    EXPECT_EQ(ToFloat16(value), half);
    const uint32_t wide = bits << 16;
    float expected;
    std::memcpy(&expected, &wide, sizeof(expected));
    const double brain = LoadOne(DType::kBFloat16, &half, 0);
    EXPECT_TRUE(brain == double{expected} || (std::isnan(brain) && std::isnan(expected)));
  }
}

TEST(Gate1, FastKernelsAgreeWithPortableOnes) {
  std::vector<uint16_t> halves(65536);
  std::iota(halves.begin(), halves.end(), uint16_t{0});
  std::vector<float> fast(halves.size());
  std::vector<float> portable(halves.size());
  Kernels().widen_float16(halves.data(), 65536, fast.data());
  PortableKernels().widen_float16(halves.data(), 65536, portable.data());
  for (size_t i = 0; i < fast.size(); ++i)
    EXPECT_TRUE(fast[i] == portable[i] || (std::isnan(fast[i]) && std::isnan(portable[i]))) << i;

  for (int64_t count = 0; count < 70; ++count) {
    const std::vector<float> y = NormalDraw(70, 1);
    const std::vector<float> r = NormalDraw(70, 2);
    RowSums a;
    RowSums b;
    Kernels().sums_float(y.data(), r.data(), count, &a);
    PortableKernels().sums_float(y.data(), r.data(), count, &b);
    EXPECT_NEAR(a.difference2, b.difference2, 1e-12);
    EXPECT_NEAR(a.reference2, b.reference2, 1e-12);
    EXPECT_EQ(a.difference_max, b.difference_max);
    EXPECT_EQ(Kernels().ratio_float(y.data(), r.data(), count, 0.5, 2),
              PortableKernels().ratio_float(y.data(), r.data(), count, 0.5, 2));
  }
}

TEST(Gate1, KernelsSeeOneNanOrInfinityAtEveryPlace) {
  for (const RowKernels* kernels : {&Kernels(), &PortableKernels()})
    for (float special : {kNaN, kInf, -kInf})
      for (size_t at = 0; at < 37; ++at) {
        std::vector<float> y = NormalDraw(37, 1);
        const std::vector<float> r = y;
        y[at] = special;
        RowSums sums;
        kernels->sums_float(y.data(), r.data(), 37, &sums);
        EXPECT_FALSE(std::isfinite(sums.difference2));
        EXPECT_EQ(kernels->ratio_float(y.data(), r.data(), 37, 1, 1), double{kInf});
      }
}

template <typename T>
OutputView IntegerView(DType dtype, const std::vector<T>& candidate,
                       const std::vector<T>& reference) {
  OutputView view;
  view.name = "out";
  view.dtype = dtype;
  view.shape = {static_cast<int64_t>(candidate.size())};
  view.count = static_cast<int64_t>(candidate.size());
  view.candidate = candidate.data();
  view.reference = reference.data();
  return view;
}

TEST(Gate1, IntegersMustBeEqual) {
  std::vector<int64_t> reference(5000);
  std::iota(reference.begin(), reference.end(), int64_t{1} << 60);
  std::vector<int64_t> candidate = reference;
  EXPECT_TRUE(
      CompareWithOracle(IntegerView(DType::kInt64, candidate, reference), {}, nullptr).passed);
  candidate[4321] += 1;  // equal as a double
  const OutputComparison comparison =
      CompareWithReference(IntegerView(DType::kInt64, candidate, reference), {}, {});
  EXPECT_FALSE(comparison.passed || comparison.meets_a_class);
  EXPECT_EQ(comparison.shown, PrecisionClass::kExact);
  EXPECT_EQ(comparison.mismatch->index, std::vector<int64_t>{4321});
  EXPECT_EQ(comparison.mismatch->whole, (WholeValues{reference[4321], candidate[4321]}));
  EXPECT_EQ(comparison.max_abs_error, 1);
  EXPECT_DOUBLE_EQ(comparison.mismatch->share_wrong, 1.0 / 5000);
}

TEST(Gate1, BoolBytesOtherThanZeroAndOneAreWrong) {
  std::vector<uint8_t> reference{0, 1, 1, 0};
  std::vector<uint8_t> candidate = reference;
  EXPECT_TRUE(CompareWithReference(IntegerView(DType::kBool, candidate, reference), {}, {}).passed);
  candidate[2] = 255;
  EXPECT_FALSE(
      CompareWithReference(IntegerView(DType::kBool, candidate, reference), {}, {}).passed);
  reference[2] = 255;
  EXPECT_FALSE(
      CompareWithReference(IntegerView(DType::kBool, candidate, reference), {}, {}).passed);
  EXPECT_TRUE(
      CompareWithReference(IntegerView(DType::kUInt8, candidate, reference), {}, {}).passed);
}

TEST(Gate1, FloatsThatMustBeExactAre) {
  CompareRule rule;
  rule.required = PrecisionClass::kExact;
  TestOutput output = Right({4, 100});
  output.reference[3] = output.candidate[3] = kNaN;
  output.truth[3] = double{kNaN};
  EXPECT_TRUE(Passes(output, rule));
  output.candidate[9] = std::nextafter(output.candidate[9], kInf);
  EXPECT_FALSE(Passes(output, rule));
  EXPECT_TRUE(Passes(output));
}

TEST(Gate1, AllCloseIsKernelBenchsRuleAgainstTheReference) {
  CompareRule rule;
  rule.allclose = AllClose{1e-4, 1e-4};
  TestOutput output = Right({4, 100});
  for (double& truth : output.truth) truth += 7;  // plays no part
  output.reference[0] = 1;
  output.candidate[0] = 1.00019F;
  EXPECT_TRUE(Passes(output, rule));
  output.candidate[0] = 1.00021F;
  EXPECT_FALSE(Passes(output, rule));
  output.reference[0] = output.candidate[0] = kInf;
  EXPECT_TRUE(Passes(output, rule));
  output.candidate[0] = -kInf;
  EXPECT_FALSE(Passes(output, rule));
  // A reference may give NaN by design: it must then be there, and nowhere else.
  output.reference[0] = output.candidate[0] = kNaN;
  EXPECT_TRUE(Passes(output, rule));
  output.candidate[0] = 1;
  EXPECT_FALSE(Passes(output, rule));
  output.candidate[0] = output.candidate[1] = kNaN;
  EXPECT_FALSE(Passes(output, rule));
}

TEST(Gate1, TolerancesParse) {
  EXPECT_FALSE(ParseTolerance("error-ratio")->has_value());
  EXPECT_FALSE(ParseTolerance("")->has_value());
  const auto close = ParseTolerance("allclose:1e-4");
  ASSERT_TRUE(close && *close);
  EXPECT_EQ((*close)->absolute, 1e-4);
  EXPECT_EQ((*close)->relative, 1e-4);
  for (const char* bad :
       {"allclose", "allclose:", "allclose:x", "allclose:1e-4x", "allclose:-1", "allclose:nan",
        "allclose:inf", "allclose:0", "allclose:1", "close:1e-4"}) {
    const auto result = ParseTolerance(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
    EXPECT_NE(result.error().message.find(bad), std::string::npos);
  }
}

TEST(Gate1, LearnsTheLargestReferenceErrorOverDraws) {
  TestOutput output = Right({64, 100});
  ReferenceError learned;
  CompareWithOracle(output.View(), {}, &learned);
  EXPECT_EQ(learned.norm_relative, 0);
  for (size_t i = 0; i < output.truth.size(); ++i) output.truth[i] *= 1 + 1e-6;
  CompareWithOracle(output.View(), {}, &learned);
  EXPECT_NEAR(learned.norm_relative, 1e-6, 1e-9);
  EXPECT_GT(learned.element_relative, 0.5e-6);
  EXPECT_LT(learned.element_relative, 1e-6);
  EXPECT_NEAR(learned.root_mean_square, 1, 0.05);
  const ReferenceError before = learned;
  CompareWithOracle(Right({64, 100}).View(), {}, &learned);
  EXPECT_EQ(learned.norm_relative, before.norm_relative);
}

TEST(Gate1, NothingWrongByAQuarterPassesHoweverBadTheReferenceIs) {
  TestOutput output = Right({64, 100});
  for (float& value : output.reference) value *= 1.1F;
  for (float& value : output.candidate) value *= 1.3F;
  EXPECT_FALSE(CompareWithOracle(output.View(), {}, nullptr).passed);
}

TEST(Gate1, TheCheapPassAgreesWithThePreciseRule) {
  // Errors around the bound, of every shape of row: whatever passes cheaply must pass precisely,
  // and the reverse.
  int passed = 0;
  int failed = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 generator(seed);
    const int64_t columns = std::uniform_int_distribution<int64_t>(1, 300)(generator);
    TestOutput output = Right({20, columns}, seed);
    const double size = std::exp2(std::uniform_real_distribution<double>(-18, -13)(generator));
    for (float& value : output.candidate)
      value += static_cast<float>(std::uniform_real_distribution<double>(-size, size)(generator));
    // Without an oracle, CompareWithOracle's precise scan would take the cheap way: give it the
    // reference as truth.
    const bool cheap = CompareWithReference(output.View(), {}, {}).passed;
    const bool precise = CompareWithOracle(output.View(), {}, nullptr).passed;
    EXPECT_EQ(cheap, precise) << seed;
    (precise ? passed : failed) += 1;
    // What was measured elsewhere is concluded from alike.
    const MeasuredErrors measured = ScanErrors(output.View());
    const auto concluded = ConcludeWithOracle(output.View(), {}, nullptr, measured);
    EXPECT_EQ(concluded.has_value(), precise) << seed;
  }
  EXPECT_GT(passed, 50);
  EXPECT_GT(failed, 50);
}

}  // namespace
}  // namespace assay
