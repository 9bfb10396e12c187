#include "values/varied_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

namespace assay {
namespace {

// A plan with float32 parameters of these sizes, one after another.
struct Weights {
  explicit Weights(const std::vector<uint64_t>& counts, uint64_t varies = 1)
      : plan(std::make_unique<wire::Plan>()) {
    for (const uint64_t count : counts) {
      wire::ArgumentSpec& argument = plan->arguments[plan->argument_count++];
      argument.role = wire::Role::kParameter;
      argument.kind = wire::Kind::kTensor;
      argument.dtype = wire::DType::kFloat32;
      argument.size_bytes = 4 * count;
      argument.offset = 4 * values.size();
      argument.varies = varies;
      for (uint64_t i = 0; i < count; ++i)
        values.push_back(0.25f + static_cast<float>(values.size()));
    }
  }
  VariedWeights Varied() const {
    std::vector<std::byte> constructed(4 * values.size() + 8);
    std::memcpy(constructed.data(), values.data(), 4 * values.size());
    return VariedWeights(*plan, std::move(constructed), reach);
  }

  std::unique_ptr<wire::Plan> plan;
  std::vector<float> values;
  Reach reach = Reach::kDrawn;
};

// A copy of weights.
struct Copy {
  explicit Copy(const Weights& weights) : varied(weights.Varied()), bytes(varied.constructed()) {}
  std::vector<float> Show(uint64_t version) {
    varied.Write(version, false, bytes.data());
    std::vector<float> floats(bytes.size() / 4 - 2);
    std::memcpy(floats.data(), bytes.data(), 4 * floats.size());
    return floats;
  }

  VariedWeights varied;
  std::vector<std::byte> bytes;
};

size_t Differences(const std::vector<float>& a, const std::vector<float>& b) {
  size_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1u : 0u;
  return count;
}

TEST(VariedWeights, AVersionIsTheSameEachTimeAndZeroIsWhatWasConstructed) {
  const Weights weights({10000, 7});
  Copy copy(weights);
  const std::vector<float> fifth = copy.Show(5);
  EXPECT_GT(Differences(copy.Show(6), fifth), 9990u);
  EXPECT_EQ(copy.Show(5), fifth);
  EXPECT_EQ(Copy(weights).Show(5), fifth);
  EXPECT_EQ(copy.Show(0), weights.values);
}

// Weights whose signs change from call to call have no packed signs that serve two calls, nor a
// list of their largest elements. All of these were called faster while signs and magnitudes
// stayed.
TEST(VariedWeights, DrawnElementsKeepNeitherSignNorOrder) {
  Weights weights({10000});
  for (size_t i = 0; i < weights.values.size(); i += 2) weights.values[i] *= -1;
  Copy copy(weights);
  const std::vector<float> one = copy.Show(3), other = copy.Show(4);
  size_t signs = 0, mantissas = 0, order = 0;
  for (size_t i = 1; i < one.size(); ++i) {
    signs += std::signbit(one[i]) == std::signbit(other[i]) ? 1u : 0u;
    int exponent = 0;
    mantissas += std::frexp(one[i], &exponent) == std::frexp(other[i], &exponent) ? 1u : 0u;
    order += std::fabs(one[i]) > std::fabs(one[i - 1]) ? 1u : 0u;
  }
  EXPECT_NEAR(static_cast<double>(signs), 5000, 300);
  EXPECT_LT(mantissas, 20u);
  EXPECT_NEAR(static_cast<double>(order), 5000, 300);
}

// Deep networks must not overflow with weights that are drawn.
TEST(VariedWeights, TheMeanSquareStaysAboutWhatItWas) {
  Weights weights({100000});
  for (size_t i = 0; i < weights.values.size(); ++i)
    weights.values[i] = static_cast<float>(i % 2000) / 1000.0f - 1;
  double before = 0, after = 0;
  for (const float value : weights.values) before += double{value} * double{value};
  for (const float value : Copy(weights).Show(3)) after += double{value} * double{value};
  EXPECT_NEAR(after / before, 1, 0.15);
}

// Positive elements may be a variance.
TEST(VariedWeights, ATensorOfOneSignKeepsIt) {
  for (const float sign : {1.0f, -1.0f}) {
    Weights weights({64, 1000});
    for (float& value : weights.values) value *= sign;
    for (const float value : Copy(weights).Show(7)) EXPECT_GT(value * sign, 0);
  }
}

// Nor has a small parameter a table of its few values.
TEST(VariedWeights, ElementsOfASmallTensorHaveManyValues) {
  const Weights weights({4});
  Copy copy(weights);
  std::set<float> values;
  for (uint64_t version = 1; version < 100; ++version) values.insert(copy.Show(version)[2]);
  EXPECT_EQ(values.size(), 99u);
}

TEST(VariedWeights, CarefulChangesOfALargeTensorReachUpToAQuarter) {
  Weights weights({10000});
  weights.reach = Reach::kCareful;
  const std::vector<float> shown = Copy(weights).Show(3);
  EXPECT_GT(Differences(weights.values, shown), 9990u);
  double most = 0;
  for (size_t i = 0; i < shown.size(); ++i)
    most = std::max<double>(most, std::fabs(shown[i] / weights.values[i] - 1));
  EXPECT_LT(most, 0.25);
  EXPECT_GT(most, 0.2);
}

// Such a tensor may be an exponent: 2 may become 1 or 4.
TEST(VariedWeights, CarefulChangesHalveOrDoubleElementsOfASmallTensor) {
  Weights weights({64});
  weights.reach = Reach::kCareful;
  Copy copy(weights);
  std::set<float> ratios;
  for (uint64_t version = 1; version < 100; ++version) {
    const std::vector<float> shown = copy.Show(version);
    for (size_t i = 0; i < shown.size(); ++i) ratios.insert(shown[i] / weights.values[i]);
  }
  EXPECT_EQ(ratios, (std::set<float>{0.5f, 1, 2}));
}

TEST(VariedWeights, ZerosAndExtremesStayWhatTheyAre) {
  for (const size_t count : {size_t{5}, size_t{500}}) {
    Weights weights({count});
    const std::vector<float> first = {0.0f, INFINITY, -0.0f, 1e-42f, 3e38f};
    std::copy(first.begin(), first.end(), weights.values.begin());
    Copy copy(weights);
    for (uint64_t version = 1; version < 50; ++version) {
      const std::vector<float> shown = copy.Show(version);
      EXPECT_EQ(shown[0], 0.0f);
      EXPECT_EQ(shown[1], INFINITY);
      EXPECT_EQ(shown[3], 1e-42f);
      EXPECT_TRUE(std::isfinite(shown[4]));
    }
  }
}

// An embedding tied to the output layer stands in the state_dict under both names.
TEST(VariedWeights, TiedParametersChangeAlike) {
  Weights weights({300, 300, 300});
  std::memcpy(&weights.values[600], &weights.values[0], 1200);
  Copy copy(weights);
  const std::vector<float> shown = copy.Show(1);
  EXPECT_EQ(std::memcmp(&shown[600], &shown[0], 1200), 0);
  EXPECT_NE(std::memcmp(&shown[300], &shown[0], 1200), 0);
}

TEST(VariedWeights, TensorsThatMayNotVaryStay) {
  const Weights weights({100}, 0);
  Copy copy(weights);
  EXPECT_FALSE(copy.varied.any_vary());
  EXPECT_EQ(copy.varied.others().size(), 1u);
  EXPECT_EQ(copy.Show(3), weights.values);
}

TEST(VariedWeights, ACopyThatHeldNoneIsWrittenWhole) {
  const Weights weights({100}, 0);
  const VariedWeights varied = weights.Varied();
  std::vector<std::byte> copy(varied.constructed().size());
  varied.Write(3, true, copy.data());
  EXPECT_EQ(copy, varied.constructed());
}

// Each type has its own layout of bits.
TEST(VariedWeights, CarefulHalvesKeepTheirSignAndTheirExponent) {
  for (const auto& [dtype, kept] :
       {std::pair{wire::DType::kFloat16, 0xFF00u}, std::pair{wire::DType::kBFloat16, 0xFFE0u}}) {
    auto plan = std::make_unique<wire::Plan>();
    plan->argument_count = 1;
    wire::ArgumentSpec& argument = plan->arguments[0];
    argument.role = wire::Role::kParameter;
    argument.dtype = dtype;
    argument.size_bytes = 2 * 1000;
    argument.varies = 1;
    std::vector<uint16_t> halves(1004, 0xBC12);
    std::vector<std::byte> bytes(2 * halves.size());
    std::memcpy(bytes.data(), halves.data(), bytes.size());
    const VariedWeights varied(*plan, bytes, Reach::kCareful);
    varied.Write(9, false, bytes.data());
    std::vector<uint16_t> shown(halves.size());
    std::memcpy(shown.data(), bytes.data(), bytes.size());
    std::set<uint16_t> different(shown.begin(), shown.begin() + 1000);
    EXPECT_GT(different.size(), 20u);
    for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(shown[i] & kept, halves[i] & kept);
  }
}

}  // namespace
}  // namespace assay
