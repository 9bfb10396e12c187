#include "pipeline/python_build.h"

#include <gtest/gtest.h>

#include <memory>

#include "pipeline/judge_device.h"

namespace assay {
namespace {

TEST(PythonBuild, InputsAreDescribedWithoutValues) {
  const auto plan = std::make_unique<wire::Plan>();
  plan->argument_count = 4;
  plan->arguments[0].role = plan->arguments[1].role = wire::Role::kInput;
  plan->arguments[0].kind = wire::Kind::kTensor;
  plan->arguments[0].dtype = wire::DType::kFloat32;
  plan->arguments[0].rank = 2;
  plan->arguments[0].shape[0] = 3;
  plan->arguments[0].shape[1] = 5;
  plan->arguments[1].kind = wire::Kind::kInt;
  plan->arguments[2] = plan->arguments[0];
  plan->arguments[2].role = wire::Role::kParameter;
  plan->arguments[3] = plan->arguments[0];
  plan->arguments[3].role = wire::Role::kOutput;
  EXPECT_EQ(DescribeInputs(*plan), R"([{"dtype":2,"kind":1,"shape":[3,5]},{"kind":2}])");
}

TEST(PythonBuild, ArchitecturesAreWrittenAsPyTorchHasThem) {
  EXPECT_EQ(TorchArchitecture("sm_90a"), "9.0a");
  EXPECT_EQ(TorchArchitecture("sm_89"), "8.9");
  EXPECT_EQ(TorchArchitecture("sm_100a"), "10.0a");
  EXPECT_EQ(TorchArchitecture("sm_121a"), "12.1a");
}

}  // namespace
}  // namespace assay
