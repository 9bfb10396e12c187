#include "values/varied_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

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
  std::byte* data() { return reinterpret_cast<std::byte*>(values.data()); }

  std::unique_ptr<wire::Plan> plan;
  std::vector<float> values;
};

size_t Differences(const std::vector<float>& a, const std::vector<float>& b) {
  size_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1u : 0u;
  return count;
}

TEST(VariedWeights, AVersionIsTheSameEachTimeAndZeroIsWhatWasConstructed) {
  Weights weights({10000, 7});
  const std::vector<float> constructed = weights.values;
  VariedWeights varied(*weights.plan, weights.data());
  EXPECT_TRUE(varied.Show(5));
  const std::vector<float> fifth = weights.values;
  EXPECT_GE(Differences(constructed, fifth), 2u);
  EXPECT_LE(Differences(constructed, fifth), 4u);
  EXPECT_TRUE(varied.Show(6));
  EXPECT_GT(Differences(weights.values, fifth), 0u);
  varied.Show(5);
  EXPECT_EQ(weights.values, fifth);
  varied.Show(0);
  EXPECT_EQ(weights.values, constructed);
}

TEST(VariedWeights, AChangeIsTwiceOrHalf) {
  Weights weights({64});
  const std::vector<float> constructed = weights.values;
  VariedWeights varied(*weights.plan, weights.data());
  for (uint64_t version = 1; version < 100; ++version) {
    varied.Show(version);
    for (size_t i = 0; i < constructed.size(); ++i) {
      const float ratio = weights.values[i] / constructed[i];
      EXPECT_TRUE(ratio == 1 || ratio == 2 || ratio == 0.5f) << ratio;
    }
  }
}

TEST(VariedWeights, ZerosAndExtremesStayWhatTheyAre) {
  Weights weights({5});
  weights.values = {0.0f, INFINITY, -0.0f, 1e-42f, 3e38f};
  VariedWeights varied(*weights.plan, weights.data());
  for (uint64_t version = 1; version < 50; ++version) {
    varied.Show(version);
    EXPECT_EQ(weights.values[0], 0.0f);
    EXPECT_EQ(weights.values[1], INFINITY);
    EXPECT_EQ(weights.values[3], 1e-42f);
    EXPECT_TRUE(std::isfinite(weights.values[4]));
  }
}

// An embedding tied to the output layer stands in the state_dict under both names.
TEST(VariedWeights, TiedParametersChangeAlike) {
  Weights weights({100, 100, 100});
  std::memcpy(&weights.values[200], &weights.values[0], 400);
  VariedWeights varied(*weights.plan, weights.data());
  for (uint64_t version = 1; version < 20; ++version) {
    varied.Show(version);
    EXPECT_EQ(std::memcmp(&weights.values[200], &weights.values[0], 400), 0);
  }
}

TEST(VariedWeights, WhatMayNotVaryStays) {
  Weights weights({100}, 0);
  const std::vector<float> constructed = weights.values;
  VariedWeights varied(*weights.plan, weights.data());
  EXPECT_FALSE(varied.any_vary());
  EXPECT_FALSE(varied.Show(3));
  EXPECT_EQ(weights.values, constructed);
}

}  // namespace
}  // namespace assay
