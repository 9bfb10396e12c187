#include "builders/python_build.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/files.h"
#include "hosts/device_access.h"

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

// In the real sandbox, with a driver that PyTorch cannot use: what stands before that is in order.
TEST(PythonBuild, ADeviceThatPyTorchCannotUseIsTold) {
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "this machine has a GPU";
  const auto python = FindPython("");
  if (!python) GTEST_SKIP() << python.error().message;
  // Where every user may read, and no folder of the sandbox's own stands before it.
  namespace fs = std::filesystem;
  const fs::path driver = fs::path("/var/tmp") / fmt::format("assay-driver-{}", ::getpid());
  fs::create_directories(driver);
  fs::copy(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1", driver / "libcuda.so.1",
           fs::copy_options::overwrite_existing);
  const auto gpu = Gpu::Open((driver / "libcuda.so.1").c_str());
  ASSERT_TRUE(gpu) << gpu.error().message;
  const auto cache = TemporaryFolder::Create();
  ASSERT_TRUE(cache);
  ::setenv("XDG_CACHE_HOME", cache->path().c_str(), 1);
  const auto plan = std::make_unique<wire::Plan>();
  const DeviceTarget target{*gpu, *plan, true, {}};
  BuiltCandidate candidate;
  candidate.source = {"model.py", "class ModelNew: pass\n", "", CandidateForm::kPython, "python"};
  const auto built = BuildPython(std::move(candidate), {}, *python, "",
                                 R"({"device": "cuda", "threads": 1})", &target, {});
  ::unsetenv("XDG_CACHE_HOME");
  fs::remove_all(driver);
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_THAT(built->failure.value_or(""), testing::HasSubstr("cannot use the CUDA device"));
}

}  // namespace
}  // namespace assay
