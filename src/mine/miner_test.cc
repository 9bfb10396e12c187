#include "mine/miner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::HasSubstr;

constexpr const char* kProblem = R"(import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.rand(4)]
)";

// In the real sandbox; PyTorch may be too old to compile.
class MinerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto python = FindPython("");
    if (!python) GTEST_SKIP() << python.error().message;
    terms_.python = *python;
    problem_.name = "relu";
    problem_.path = "relu.py";
    problem_.source = kProblem;
  }

  MinerTerms terms_;
  ProblemRequest problem_;
};

TEST_F(MinerTest, AProblemIsMinedWherePyTorchCanCompile) {
  const auto answer = MineProblem(terms_, problem_, "default");
  if (terms_.python.torch_version.starts_with("1.")) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, ErrorKind::kEnvironment);
    EXPECT_THAT(answer.error().message, HasSubstr("has no torch.compile"));
  } else {
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->refusal, "");
    EXPECT_THAT(answer->code.triton_code, HasSubstr("class ModelNew(Model):"));
  }
}

TEST_F(MinerTest, ALongCompilationIsARefusal) {
  terms_.timeout_s = 0.01;
  const auto answer = MineProblem(terms_, problem_, "default");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_THAT(answer->refusal, HasSubstr("--compile-timeout"));
}

}  // namespace
}  // namespace assay
