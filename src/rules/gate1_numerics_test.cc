// Gate 1's constants against real arithmetic: honest float32 programs pass, lower precision and
// broken algorithms fail.
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <string>

#include "rules/elements.h"
#include "rules/gate1.h"
#include "rules/gate1_testing.h"

namespace assay {
namespace {

enum class Data { kNormal, kShifted, kUniform };

std::vector<float> Draw(Data data, size_t count, uint32_t seed) {
  switch (data) {
    case Data::kNormal:
      return NormalDraw(count, seed);
    case Data::kShifted:
      return NormalDraw(count, seed, 1000, 0.1);
    case Data::kUniform:
      return UniformDraw(count, seed);
  }
  return {};
}

// Passes both against float64 and, with the reference error learned there, against the reference,
// or neither.
bool Passes(const TestOutput& output) {
  ReferenceError learned;
  const OutputComparison precise = CompareWithOracle(output.View(), {}, &learned);
  const OutputComparison timed = CompareWithReference(output.View(), {}, learned);
  EXPECT_EQ(precise.passed, timed.passed)
      << "oracle " << precise.error_ratio << " reference " << timed.error_ratio;
  EXPECT_EQ(precise.passed, precise.error_ratio <= 1);
  return precise.passed && timed.passed;
}

PrecisionClass Shown(const TestOutput& output) {
  const OutputComparison comparison = CompareWithOracle(output.View(), {}, nullptr);
  return comparison.meets_a_class ? comparison.shown : PrecisionClass::kExact;
}

// ---- Sums and dot products: one a row ----

using Dot = std::function<float(const float* a, const float* b, size_t count)>;

float NaiveDot(const float* a, const float* b, size_t count) {
  float sum = 0;
  for (size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}
float FusedDot(const float* a, const float* b, size_t count) {
  float sum = 0;
  for (size_t i = 0; i < count; ++i) sum = std::fma(a[i], b[i], sum);
  return sum;
}
float ReversedDot(const float* a, const float* b, size_t count) {
  float sum = 0;
  for (size_t i = count; i > 0; --i) sum += a[i - 1] * b[i - 1];
  return sum;
}
float LanesDot(const float* a, const float* b, size_t count) {
  float lanes[8] = {};
  for (size_t i = 0; i < count; ++i) lanes[i % 8] += a[i] * b[i];
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}
float BlockedDot(const float* a, const float* b, size_t count) {
  float sum = 0;
  for (size_t i = 0; i < count; i += 256)
    sum += NaiveDot(a + i, b + i, std::min<size_t>(256, count - i));
  return sum;
}
float PairwiseDot(const float* a, const float* b, size_t count) {
  if (count <= 16) return NaiveDot(a, b, count);
  return PairwiseDot(a, b, count / 2) +
         PairwiseDot(a + count / 2, b + count / 2, count - count / 2);
}
double ExactDot(const float* a, const float* b, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}
Dot RoundedDot(int bits) {  // products, or their factors, rounded
  return [bits](const float* a, const float* b, size_t count) {
    float sum = 0;
    for (size_t i = 0; i < count; ++i)
      sum += RoundToBits(RoundToBits(a[i], bits) * RoundToBits(b[i], bits), bits);
    return sum;
  };
}

enum class Weights { kOnes, kNormal, kSame };  // of the second factor; kSame: drawn as the first

TestOutput Dots(size_t rows, size_t terms, Data data, Weights weights, const Dot& candidate,
                const Dot& reference, uint32_t seed) {
  const std::vector<float> a = Draw(data, rows * terms, seed);
  const std::vector<float> b =
      weights == Weights::kOnes
          ? std::vector<float>(terms, 1.0F)
          : Draw(weights == Weights::kSame ? data : Data::kNormal, terms, seed + 1);
  TestOutput output;
  output.shape = {static_cast<int64_t>(rows)};
  for (size_t row = 0; row < rows; ++row) {
    const float* x = a.data() + row * terms;
    output.candidate.push_back(candidate(x, b.data(), terms));
    output.reference.push_back(reference(x, b.data(), terms));
    output.truth.push_back(ExactDot(x, b.data(), terms));
  }
  return output;
}

TEST(Gate1Numerics, HonestSumsAndDotProductsPass) {
  struct Program {
    const char* name;
    Dot dot;
    bool sequential;
  };
  const Program programs[] = {{"naive", NaiveDot, true},       {"fused", FusedDot, true},
                              {"reversed", ReversedDot, true}, {"lanes", LanesDot, false},
                              {"blocked", BlockedDot, false},  {"pairwise", PairwiseDot, false}};
  for (size_t terms : {4096U, 65536U})
    for (Data data : {Data::kNormal, Data::kShifted, Data::kUniform})
      for (Weights weights : {Weights::kOnes, Weights::kNormal, Weights::kSame})
        for (const auto& [name, program, sequential] : programs) {
          const TestOutput output = Dots(48, terms, data, weights, program, PairwiseDot, 7);
          if (sequential && terms > 4096 && data == Data::kShifted && weights == Weights::kSame) {
            // Products near 10^6 added to sums near 10^10: every addition rounds the same way, and
            // what is left has an error of 4e-4. That is not float32 accuracy, however natural the
            // loop looks.
            EXPECT_FALSE(Passes(output));
            continue;
          }
          EXPECT_TRUE(Passes(output))
              << name << " " << terms << " data " << int(data) << " " << int(weights);
          EXPECT_EQ(Shown(output), PrecisionClass::kFloat32);
        }
}

TEST(Gate1Numerics, RoundedSumsAndDotProductsFail) {
  for (size_t terms : {64U, 4096U, 65536U})
    for (Weights ones : {Weights::kOnes, Weights::kNormal}) {
      EXPECT_FALSE(Passes(Dots(48, terms, Data::kNormal, ones, RoundedDot(11), PairwiseDot, 3)));
      EXPECT_FALSE(Passes(Dots(48, terms, Data::kNormal, ones, RoundedDot(8), PairwiseDot, 3)));
      // Also where the reference itself sums naively.
      EXPECT_FALSE(Passes(Dots(48, terms, Data::kNormal, ones, RoundedDot(11), NaiveDot, 5)));
    }
}

TEST(Gate1Numerics, ALoneNaiveSumPassesNearlyAlways) {
  // One output of mixed signs may be luckily small: the one case where draws of an honest program
  // may differ.
  int honest = 0;
  int rounded = 0;
  constexpr int kTrials = 300;
  for (uint32_t seed = 0; seed < kTrials; ++seed) {
    const auto passes = [&](const Dot& program) {
      const TestOutput output =
          Dots(1, 4096, Data::kNormal, Weights::kOnes, program, LanesDot, 10 + seed);
      return CompareWithOracle(output.View(), {}, nullptr).passed;
    };
    honest += passes(NaiveDot);
    rounded += passes(RoundedDot(11));
  }
  EXPECT_GE(honest, kTrials - 3);
  EXPECT_LE(rounded, kTrials * 45 / 100);  // so 8 draws let fewer than 0.2% through
}

// ---- Matrix product ----

TestOutput Matmul(size_t inner, Data data, int bits, const Dot& program, uint32_t seed) {
  constexpr size_t kSide = 24;
  const std::vector<float> a = Draw(data, kSide * inner, seed);
  const std::vector<float> b = Draw(data, kSide * inner, seed + 1);  // transposed
  const std::vector<float> a_used = bits < 24 ? RoundToBits(a, bits) : a;
  const std::vector<float> b_used = bits < 24 ? RoundToBits(b, bits) : b;
  TestOutput output;
  output.shape = {kSide, kSide};
  for (size_t i = 0; i < kSide; ++i)
    for (size_t j = 0; j < kSide; ++j) {
      output.candidate.push_back(program(&a_used[i * inner], &b_used[j * inner], inner));
      output.reference.push_back(BlockedDot(&a[i * inner], &b[j * inner], inner));
      output.truth.push_back(ExactDot(&a[i * inner], &b[j * inner], inner));
    }
  return output;
}

TEST(Gate1Numerics, HonestMatrixProductsPassAndRoundedOnesFail) {
  for (size_t inner : {64U, 256U, 1024U, 4096U}) {
    for (const Dot& program : {Dot(NaiveDot), Dot(FusedDot), Dot(LanesDot), Dot(ReversedDot)}) {
      EXPECT_TRUE(Passes(Matmul(inner, Data::kNormal, 24, program, 11))) << inner;
      EXPECT_TRUE(Passes(Matmul(inner, Data::kUniform, 24, program, 11))) << inner;
      EXPECT_TRUE(Passes(Matmul(inner, Data::kShifted, 24, program, 11))) << inner;
    }
    for (const Dot& program : {Dot(NaiveDot), Dot(ExactDot)}) {
      const TestOutput tf32 = Matmul(inner, Data::kNormal, 11, program, 11);
      EXPECT_FALSE(Passes(tf32)) << inner;
      EXPECT_EQ(Shown(tf32), PrecisionClass::kTf32) << inner;
      const TestOutput bfloat16 = Matmul(inner, Data::kNormal, 8, program, 11);
      EXPECT_FALSE(Passes(bfloat16)) << inner;
      EXPECT_EQ(Shown(bfloat16), PrecisionClass::kBFloat16) << inner;
    }
  }
}

TEST(Gate1Numerics, PositiveDataHidesRoundingUntilOneTermStandsOut) {
  // Rounding errors of 4096 positive terms average out below what a long float32 sum may show...
  EXPECT_TRUE(Passes(Matmul(4096, Data::kUniform, 11, NaiveDot, 13)));
  // ...which is why draws with one outlier a row belong to gate 1.
  constexpr size_t kInner = 4096;
  std::vector<float> a = UniformDraw(64 * kInner, 1);
  const std::vector<float> b = UniformDraw(kInner, 2);
  TestOutput output;
  output.shape = {64};
  for (size_t row = 0; row < 64; ++row) {
    float* x = &a[row * kInner];
    x[(row * 977) % kInner] *= 1e5F;
    const std::vector<float> rounded = RoundToBits(std::vector<float>(x, x + kInner), 11);
    output.candidate.push_back(NaiveDot(rounded.data(), b.data(), kInner));
    output.reference.push_back(BlockedDot(x, b.data(), kInner));
    output.truth.push_back(ExactDot(x, b.data(), kInner));
  }
  EXPECT_FALSE(Passes(output));
}

// ---- Softmax ----

// Range reduction and a polynomial of degree 7 in float32: relative error about 1e-7.
float PolynomialExp(float x) {
  const float scaled = std::nearbyint(x * 1.44269504F);
  const float rest = std::fma(scaled, 2.12194440e-4F, std::fma(scaled, -0.693359375F, x));
  float value = 1.0F / 5040;
  for (float coefficient : {1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F})
    value = value * rest + coefficient;
  return std::ldexp(value, static_cast<int>(scaled));
}

using RowProgram = std::function<std::vector<float>(const std::vector<float>& x)>;

std::vector<float> Softmax(const std::vector<float>& x, float (*exponential)(float),
                           bool naive_sum) {
  const float largest = *std::max_element(x.begin(), x.end());
  std::vector<float> y;
  for (float value : x) y.push_back(exponential(value - largest));
  const std::vector<float> ones(x.size(), 1.0F);
  const float sum = naive_sum ? NaiveDot(y.data(), ones.data(), y.size())
                              : LanesDot(y.data(), ones.data(), y.size());
  for (float& value : y) value = naive_sum ? value / sum : value * (1 / sum);
  return y;
}
std::vector<double> ExactSoftmax(const std::vector<float>& x) {
  const double largest = *std::max_element(x.begin(), x.end());
  std::vector<double> y;
  double sum = 0;
  for (float value : x) sum += y.emplace_back(std::exp(double{value} - largest));
  for (double& value : y) value /= sum;
  return y;
}
float ExpFloat(float x) { return std::exp(x); }

// ---- Layer norm ----

std::vector<float> LayerNorm(const std::vector<float>& x, const Dot& dot) {
  const auto n = static_cast<float>(x.size());
  const std::vector<float> ones(x.size(), 1.0F);
  const float mean = dot(x.data(), ones.data(), x.size()) / n;
  std::vector<float> y;
  for (float value : x) y.push_back(value - mean);
  const float variance = dot(y.data(), y.data(), y.size()) / n;
  const float scale = 1 / std::sqrt(variance + 1e-5F);
  for (float& value : y) value *= scale;
  return y;
}
std::vector<float> OnePassLayerNorm(const std::vector<float>& x) {
  const auto n = static_cast<float>(x.size());
  const std::vector<float> ones(x.size(), 1.0F);
  const float mean = LanesDot(x.data(), ones.data(), x.size()) / n;
  const float variance = std::max(0.0F, LanesDot(x.data(), x.data(), x.size()) / n - mean * mean);
  std::vector<float> y;
  for (float value : x) y.push_back((value - mean) / std::sqrt(variance + 1e-5F));
  return y;
}
std::vector<double> ExactLayerNorm(const std::vector<float>& x) {
  double mean = 0;
  for (float value : x) mean += double{value} / static_cast<double>(x.size());
  double variance = 0;
  for (float value : x) variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
  std::vector<double> y;
  for (float value : x) y.push_back((value - mean) / std::sqrt(variance + 1e-5));
  return y;
}

TestOutput Rows(size_t rows, size_t columns, Data data, const RowProgram& candidate,
                const RowProgram& reference,
                std::vector<double> (*exact)(const std::vector<float>&), uint32_t seed) {
  TestOutput output;
  output.shape = {static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
  for (size_t row = 0; row < rows; ++row) {
    const std::vector<float> x = Draw(data, columns, seed + static_cast<uint32_t>(row));
    for (float value : candidate(x)) output.candidate.push_back(value);
    for (float value : reference(x)) output.reference.push_back(value);
    for (double value : exact(x)) output.truth.push_back(value);
  }
  return output;
}

TEST(Gate1Numerics, HonestSoftmaxPassesAndRoundedOneFails) {
  const RowProgram reference = [](const auto& x) { return Softmax(x, ExpFloat, false); };
  const RowProgram naive = [](const auto& x) { return Softmax(x, ExpFloat, true); };
  const RowProgram polynomial = [](const auto& x) { return Softmax(x, PolynomialExp, true); };
  for (size_t columns : {100U, 4096U, 65536U})
    for (Data data : {Data::kNormal, Data::kShifted, Data::kUniform}) {
      EXPECT_TRUE(Passes(Rows(8, columns, data, naive, reference, ExactSoftmax, 5))) << columns;
      EXPECT_TRUE(Passes(Rows(8, columns, data, polynomial, reference, ExactSoftmax, 5)))
          << columns;
      for (int bits : {8, 11}) {
        const RowProgram rounded_output = [&](const auto& x) {
          return RoundToBits(reference(x), bits);
        };
        const RowProgram rounded_input = [&](const auto& x) {
          return reference(RoundToBits(x, bits));
        };
        const RowProgram rounded_exp = [&](const auto& x) {
          const float largest = *std::max_element(x.begin(), x.end());
          std::vector<float> y;
          for (float value : x) y.push_back(RoundToBits(std::exp(value - largest), bits));
          const float sum = NaiveDot(y.data(), std::vector<float>(y.size(), 1.0F).data(), y.size());
          for (float& value : y) value /= sum;
          return y;
        };
        for (const RowProgram& rounded : {rounded_output, rounded_input, rounded_exp})
          EXPECT_FALSE(Passes(Rows(8, columns, data, rounded, reference, ExactSoftmax, 5)))
              << columns << " " << bits;
      }
    }
}

TEST(Gate1Numerics, HonestLayerNormPassesAndRoundedOneFails) {
  const RowProgram reference = [](const auto& x) { return LayerNorm(x, PairwiseDot); };
  const RowProgram naive = [](const auto& x) { return LayerNorm(x, NaiveDot); };
  const RowProgram lanes = [](const auto& x) { return LayerNorm(x, LanesDot); };
  for (size_t columns : {256U, 4096U, 65536U})
    for (Data data : {Data::kNormal, Data::kUniform, Data::kShifted}) {
      EXPECT_TRUE(Passes(Rows(8, columns, data, naive, reference, ExactLayerNorm, 5)))
          << columns << " data " << int(data);
      EXPECT_TRUE(Passes(Rows(8, columns, data, lanes, reference, ExactLayerNorm, 5))) << columns;
      for (int bits : {8, 11}) {
        const RowProgram rounded_output = [&](const auto& x) {
          return RoundToBits(reference(x), bits);
        };
        const RowProgram rounded_input = [&](const auto& x) {
          return reference(RoundToBits(x, bits));
        };
        if (data != Data::kShifted) {
          EXPECT_FALSE(
              Passes(Rows(8, columns, data, rounded_output, reference, ExactLayerNorm, 5)));
        }
        EXPECT_FALSE(Passes(Rows(8, columns, data, rounded_input, reference, ExactLayerNorm, 5)));
      }
    }
}

TEST(Gate1Numerics, VarianceFromSquaresFailsOnShiftedDataOnly) {
  const RowProgram reference = [](const auto& x) { return LayerNorm(x, PairwiseDot); };
  for (size_t columns : {256U, 4096U, 65536U}) {
    EXPECT_TRUE(
        Passes(Rows(8, columns, Data::kNormal, OnePassLayerNorm, reference, ExactLayerNorm, 5)));
    EXPECT_FALSE(
        Passes(Rows(8, columns, Data::kShifted, OnePassLayerNorm, reference, ExactLayerNorm, 5)));
  }
}

TEST(Gate1Numerics, CopyingTheInputOfALayerNormFails) {
  const RowProgram reference = [](const auto& x) { return LayerNorm(x, PairwiseDot); };
  const RowProgram copy = [](const auto& x) { return x; };
  EXPECT_FALSE(Passes(Rows(8, 65536, Data::kNormal, copy, reference, ExactLayerNorm, 5)));
}

TEST(Gate1Numerics, SkippingTheMaximumOfASoftmaxFailsOnlyWhereItOverflows) {
  const RowProgram reference = [](const auto& x) { return Softmax(x, ExpFloat, false); };
  const RowProgram no_maximum = [](const auto& x) {
    std::vector<float> y;
    float sum = 0;
    for (float value : x) sum += y.emplace_back(std::exp(value));
    for (float& value : y) value /= sum;
    return y;
  };
  EXPECT_TRUE(Passes(Rows(8, 1024, Data::kNormal, no_maximum, reference, ExactSoftmax, 5)));
  EXPECT_FALSE(Passes(Rows(8, 1024, Data::kShifted, no_maximum, reference, ExactSoftmax, 5)));
}

// ---- Half precision outputs ----

struct HalfOutput {
  std::vector<uint16_t> candidate, reference;
  TestOutput floats;
  OutputView View(DType dtype) const {
    OutputView view = floats.View();
    view.dtype = dtype;
    view.candidate = candidate.data();
    view.reference = reference.data();
    return view;
  }
};

HalfOutput HalfMatmul(DType dtype, int input_bits, bool half_sum, size_t inner) {
  const int bits = dtype == DType::kFloat16 ? 11 : 8;
  const auto narrow = [&](float value) {
    return dtype == DType::kFloat16 ? ToFloat16(value) : ToBFloat16(value);
  };
  constexpr size_t kSide = 24;
  const std::vector<float> a = RoundToBits(NormalDraw(kSide * inner, 1), bits);
  const std::vector<float> b = RoundToBits(NormalDraw(kSide * inner, 2), bits);
  HalfOutput output;
  output.floats.shape = {kSide, kSide};
  output.floats.reference.resize(kSide * kSide);
  for (size_t i = 0; i < kSide; ++i)
    for (size_t j = 0; j < kSide; ++j) {
      float sum = 0;
      for (size_t k = 0; k < inner; ++k) {
        sum +=
            RoundToBits(a[i * inner + k], input_bits) * RoundToBits(b[j * inner + k], input_bits);
        if (half_sum) sum = RoundToBits(sum, bits);
      }
      output.candidate.push_back(narrow(sum));
      output.reference.push_back(narrow(BlockedDot(&a[i * inner], &b[j * inner], inner)));
      output.floats.truth.push_back(ExactDot(&a[i * inner], &b[j * inner], inner));
    }
  return output;
}

TEST(Gate1Numerics, HalfPrecisionOutputsAreHeldToTheirOwnRounding) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    CompareRule rule;
    rule.required = NativeClass(dtype);
    const auto both = [&](const HalfOutput& output) {
      ReferenceError learned;
      const OutputComparison precise = CompareWithOracle(output.View(dtype), rule, &learned);
      EXPECT_EQ(precise.passed, CompareWithReference(output.View(dtype), rule, learned).passed);
      return precise.passed;
    };
    EXPECT_TRUE(both(HalfMatmul(dtype, 23, false, 1024)));
    EXPECT_FALSE(both(HalfMatmul(dtype, 23, true, 1024))) << "sums kept in half precision";
    EXPECT_FALSE(both(HalfMatmul(dtype, dtype == DType::kFloat16 ? 8 : 5, false, 1024)));
  }
}

TEST(Gate1Numerics, ALowerBarIsMetOpenly) {
  const TestOutput tf32 = Matmul(512, Data::kNormal, 11, NaiveDot, 17);
  const TestOutput bfloat16 = Matmul(512, Data::kNormal, 8, NaiveDot, 17);
  CompareRule rule;
  rule.required = PrecisionClass::kTf32;
  ReferenceError learned;
  EXPECT_TRUE(CompareWithOracle(tf32.View(), rule, &learned).passed);
  const OutputComparison timed = CompareWithReference(tf32.View(), rule, learned);
  EXPECT_TRUE(timed.passed);
  EXPECT_EQ(timed.shown, PrecisionClass::kTf32);
  EXPECT_FALSE(CompareWithOracle(bfloat16.View(), rule, nullptr).passed);
  EXPECT_FALSE(CompareWithReference(bfloat16.View(), rule, learned).passed);
  rule.required = PrecisionClass::kBFloat16;
  EXPECT_TRUE(CompareWithOracle(bfloat16.View(), rule, nullptr).passed);
}

TEST(Gate1Numerics, Float8OutputsMayBeOffByTheirRounding) {
  constexpr size_t kCount = 64;
  std::vector<uint8_t> rounded(kCount), off(kCount);
  std::vector<double> truth(kCount);
  OutputView view;
  view.dtype = DType::kFloat8E4M3;
  view.shape = {kCount};
  view.count = kCount;
  for (size_t i = 0; i < kCount; ++i) {
    rounded[i] = static_cast<uint8_t>(64 + i % 16);
    off[i] = static_cast<uint8_t>(rounded[i] + 3);
    truth[i] = 1.03 * LoadOne(view.dtype, rounded.data(), static_cast<int64_t>(i));
  }
  EXPECT_EQ(truth[0], 1.03 * 2);
  view.reference = rounded.data();
  view.oracle = truth.data();
  view.candidate = rounded.data();
  const OutputComparison right = CompareWithOracle(view, {}, nullptr);
  EXPECT_TRUE(right.passed);
  EXPECT_EQ(right.shown, PrecisionClass::kFloat8);
  EXPECT_TRUE(CompareWithReference(view, {}, {0.03, 0.03}).passed);
  view.candidate = off.data();
  EXPECT_FALSE(CompareWithOracle(view, {}, nullptr).passed) << "three steps";
  EXPECT_FALSE(CompareWithReference(view, {}, {0.03, 0.03}).passed);
}

}  // namespace
}  // namespace assay
