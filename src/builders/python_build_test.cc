#include "builders/python_build.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>

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

TEST(PythonBuild, KnowsCandidatesWithoutACompilerByWhatTheyImport) {
  EXPECT_TRUE(
      CompilesNothing("import torch\nimport torch.nn as nn\nfrom typing import List, Any\n"
                      "class ModelNew(nn.Module):\n    pass  # important; from here\n"));
  for (const char* source :
       {"import triton\n", "import torch\nf = torch.compile(g)\n",
        "from torch.utils.cpp_extension import load_inline\n", "import liger_kernel\n",
        "import torch, tilelang\n", "  from flash_attn import flash_attn_func\n",
        "import torch; import cupy\n", "importlib.import_module('x')\n"})
    EXPECT_FALSE(CompilesNothing(source)) << source;
}

TEST(PythonBuild, ArchitecturesAreWrittenAsPyTorchHasThem) {
  EXPECT_EQ(TorchArchitecture("sm_90a"), "9.0a");
  EXPECT_EQ(TorchArchitecture("sm_89"), "8.9");
  EXPECT_EQ(TorchArchitecture("sm_100a"), "10.0a");
  EXPECT_EQ(TorchArchitecture("sm_121a"), "12.1a");
}

// In the real sandbox, with a driver that PyTorch cannot use.
class BuildWithoutDevice : public testing::Test {
 protected:
  // A pickled construction record (assay_host/record.py) of a class Model without arguments.
  static constexpr const char* kRecord =
      "(dp0\nVversion\np1\nI1\nsVinit_inputs\np2\nc_codecs\nencode\np3\n(V(lp0\\u000a.\np4\n"
      "Vlatin1\np5\ntp6\nRp7\nsVclass_name\np8\nVModel\np9\nsVdefault_dtype\np10\n"
      "ctorch\nfloat32\np11\ns.";

  void SetUp() override {
    if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "this machine has a GPU";
    const auto python = FindPython("");
    if (!python) GTEST_SKIP() << python.error().message;
    python_ = *python;
    // Every user may read there, and no folder of the sandbox's own stands before it.
    namespace fs = std::filesystem;
    driver_ = fs::path("/var/tmp") / fmt::format("assay-driver-{}", ::getpid());
    fs::create_directories(driver_);
    fs::copy(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1", driver_ / "libcuda.so.1",
             fs::copy_options::overwrite_existing);
    auto gpu = Gpu::Open((driver_ / "libcuda.so.1").c_str());
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_.emplace(std::move(*gpu));
    cache_.emplace(TemporaryFolder::Create().value());
    ::setenv("XDG_CACHE_HOME", cache_->path().c_str(), 1);
    ::setenv("XDG_STATE_HOME", cache_->path().c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("XDG_STATE_HOME");
    if (!driver_.empty()) std::filesystem::remove_all(driver_);
  }
  // Returns why it did not build.
  std::string Build(const std::string& source, bool forks = false) {
    const auto plan = std::make_unique<wire::Plan>();
    const DeviceTarget target{*gpu_, *plan, true, {}, forks};
    BuiltCandidate candidate;
    candidate.source = {"model.py", source, "", CandidateForm::kPython, "python"};
    const auto built = BuildPython(std::move(candidate), {}, python_, kRecord,
                                   R"({"device": "cuda", "threads": 1})", &target, {});
    if (!built) return built.error().message;
    return built->failure.value_or("");
  }

  PythonRuntime python_;
  std::filesystem::path driver_;
  std::optional<Gpu> gpu_;
  std::optional<TemporaryFolder> cache_;
};

TEST_F(BuildWithoutDevice, ADeviceThatPyTorchCannotUseIsTold) {
  EXPECT_THAT(Build("import triton\nclass ModelNew: pass\n"),
              testing::HasSubstr("cannot use the CUDA device"));
}

// What torch's loader leaves, and the builder marks, once it has built an extension.
constexpr const char* kBuilds =
    "import os, torch\n"
    "from torch.utils import cpp_extension\n"
    "own = os.environ['TORCH_EXTENSIONS_DIR'] + '/rows'\n"
    "os.makedirs(own, exist_ok=True)\n"
    "open(own + '/.assay_built', 'w').close()\n";

// Beside a measurement no build may use the device.
TEST_F(BuildWithoutDevice, WhatCompilesAtItsImportNeedsNoDevice) {
  const std::string extension = kBuilds;
  const std::string model =
      "class ModelNew(torch.nn.Module):\n"
      "    def forward(self, x): return x\n";
  EXPECT_EQ(Build(extension + model), "");
  // It compiles in its first call, if at all, which needs the device.
  EXPECT_THAT(Build("import torch, torch.utils.cpp_extension\n" + model),
              testing::HasSubstr("cannot use the CUDA device"));
  // Only the device can tell whether that would do.
  EXPECT_THAT(Build(extension + "class ModelNew(torch.nn.Module):\n"
                                "    def __init__(self):\n"
                                "        super().__init__()\n"
                                "        self.y = torch.ones(3, device='cuda')\n"),
              testing::HasSubstr("cannot use the CUDA device"));
}

// Each copy of a reference kept measurements waiting for 3 s, while its builder imported PyTorch.
TEST_F(BuildWithoutDevice, WhatHasNoCompilerNeedsNoDevice) {
  EXPECT_EQ(Build("import torch\n"
                  "class ModelNew(torch.nn.Module):\n"
                  "    def forward(self, x): return x\n"),
            "");
  EXPECT_THAT(Build("import torch\n"
                    "class ModelNew(torch.nn.Module):\n"
                    "    def __init__(self):\n"
                    "        super().__init__()\n"
                    "        self.y = torch.ones(3, device='cuda')\n"),
              testing::HasSubstr("cannot use the CUDA device"));
}

// A module that leaves a file where extensions are compiled, and can be constructed only if an
// earlier import has left one.
TEST_F(BuildWithoutDevice, FindsWhatWasCompiledAhead) {
  const std::string source =
      std::string(kBuilds) +
      "mark = os.environ['TORCH_EXTENSIONS_DIR'] + '/mark'\n"
      "found = os.path.exists(mark)\n"
      "open(mark, 'w').close()\n"
      "class ModelNew(torch.nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        if not found: raise RuntimeError('it was not compiled ahead')\n"
      "    def forward(self, x): return x\n";
  const CandidateSource candidate{"model.py", source, "", CandidateForm::kPython, "python"};
  const std::string settings = R"({"device": "cuda", "threads": 1})";
  ASSERT_TRUE(CompileImports(candidate, {}, python_, settings, *gpu_, {}));
  EXPECT_EQ(Build(source), "");
}

// A fork finds the toolkit and its own folder for extensions, not those of its nursery.
TEST_F(BuildWithoutDevice, AForkedBuilderIsAsAnExecutedOne) {
  const std::string source =
      std::string(kBuilds) +
      "assert os.environ['TORCH_EXTENSIONS_DIR'] == '/tmp/extensions'\n"
      "assert cpp_extension.CUDA_HOME == os.environ.get('CUDA_HOME'), cpp_extension.CUDA_HOME\n"
      "assert 'LD_PRELOAD' not in os.environ and os.getcwd() == '/tmp'\n"
      "assert os.system('true') == 0\n"
      "class ModelNew(torch.nn.Module):\n"
      "    def forward(self, x): return x\n";
  EXPECT_EQ(Build(source, true), "");
  EXPECT_EQ(Build(source + "# another\n", false), "");
}

TEST_F(BuildWithoutDevice, AnExtensionThatDoesNotCompileIsNotBuiltTwice) {
  const std::string failure = Build(
      "import torch\n"
      "from torch.utils.cpp_extension import load_inline\n"
      "load_inline(name='bad', cpp_sources='int f( {', functions=['f'])\n"
      "class ModelNew(torch.nn.Module): pass\n",
      true);
  EXPECT_THAT(failure, testing::HasSubstr("the extension does not compile"));
}

}  // namespace
}  // namespace assay
