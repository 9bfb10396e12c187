#include "toolchain/nvcc.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "toolchain/build.h"
#include "toolchain/scoped_variable_testing.h"

namespace assay {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

// A folder with a toolkit's parts; its nvcc is a script that says its version.
class NvccToolkit : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(folder_);
    Write("include/cuda_runtime.h", "");
    Write("lib64/libcudart_static.a", "");
    Write("bin/nvcc",
          "#!/bin/sh\necho 'nvcc: NVIDIA (R) Cuda compiler driver'\n"
          "echo 'Cuda compilation tools, release 13.0, V13.0.48'\necho 'Build cuda_13.0'\n");
    fs::permissions(root() / "bin/nvcc", fs::perms::owner_all);
  }
  fs::path root() const { return fs::canonical(folder_->path()); }
  void Write(const std::string& name, const std::string& content) const {
    fs::create_directories((root() / name).parent_path());
    std::ofstream(root() / name) << content;
  }

  Result<TemporaryFolder> folder_ = TemporaryFolder::Create();
  ScopedVariable path_{"PATH", "/nonexistent"}, home_{"CUDA_HOME", ""}, other_{"CUDA_PATH", ""};
};

TEST_F(NvccToolkit, IsFoundInPathAndInItsVariable) {
  for (const auto& [name, value] : {std::pair{"PATH", "/nowhere:" + (root() / "bin").string()},
                                    std::pair{"CUDA_HOME", root().string()}}) {
    const ScopedVariable variable(name, value);
    const auto nvcc = FindNvcc();
    ASSERT_TRUE(nvcc) << name << nvcc.error().message;
    EXPECT_EQ(nvcc->path, (root() / "bin/nvcc").string());
    EXPECT_EQ(nvcc->version, "Cuda compilation tools, release 13.0, V13.0.48");
    EXPECT_EQ(nvcc->toolkit, root().string());
    EXPECT_EQ(nvcc->libraries, (root() / "lib64").string());
  }
}

// Its folder will be shown to candidates: a home folder with a bin/nvcc in it must not be.
TEST_F(NvccToolkit, AFolderWithoutHeadersIsPassedBy) {
  fs::remove(root() / "include/cuda_runtime.h");
  const ScopedVariable variable("PATH", (root() / "bin").string());
  EXPECT_FALSE(FindNvcc("/nonexistent/bin"));
}

TEST_F(NvccToolkit, ACachingWrapperIsPassedBy) {
  fs::rename(root() / "bin/nvcc", root() / "bin/ccache");
  fs::create_symlink(root() / "bin/ccache", root() / "bin/nvcc");
  const ScopedVariable variable("PATH", (root() / "bin").string());
  EXPECT_FALSE(FindNvcc("/nonexistent/bin"));
}

TEST_F(NvccToolkit, AMissingCompilerSaysWhatToDo) {
  const auto nvcc = FindNvcc("/nonexistent/bin");
  ASSERT_FALSE(nvcc);
  EXPECT_EQ(nvcc.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(nvcc.error().message, HasSubstr("there is no nvcc"));
  EXPECT_THAT(nvcc.error().message, HasSubstr("set CUDA_HOME"));
}

TEST_F(NvccToolkit, NvdisasmIsFoundAmongPythonsPackages) {
  EXPECT_FALSE(FindNvdisasm("/nonexistent/bin"));
  EXPECT_FALSE(FindNvdisasmInPackages({"/nonexistent", root().string()}));
  for (const char* name : {"triton/backends/nvidia/bin/nvdisasm", "nvidia/cu13/bin/nvdisasm"}) {
    Write(name, "");
    EXPECT_FALSE(FindNvdisasmInPackages({root().string()})) << "it cannot be run";
    fs::permissions(root() / name, fs::perms::owner_all);
    const auto found = FindNvdisasmInPackages({"/nonexistent", root().string()});
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->path, (root() / name).string());
    fs::remove(root() / name);
  }
}

const Nvcc kNvcc{"/cuda/bin/nvcc", "release 13.0", "/cuda", "/cuda/lib64"};

TEST(NvccCommand, IsForTheOneArchitectureAndStandsAlone) {
  EXPECT_THAT(
      NvccCommand(kNvcc, {}, "sm_90a", "/candidate/kernel.cu", "/tmp/kernel.so"),
      ElementsAre("/cuda/bin/nvcc", "-gencode=arch=compute_90a,code=sm_90a", "-O3", "-std=c++17",
                  "-no-compress", "-shared", "-Xcompiler=-fPIC,-fvisibility=hidden,-fmax-errors=3",
                  "-cudart=static", "-I/assay/include", "-Xlinker=-z,defs", "-o", "/tmp/kernel.so",
                  "/candidate/kernel.cu"));
}

// nvcc ends with "redefinition of argument" where an option is given twice.
TEST(NvccCommand, TheCandidatesChoiceTakesTheDefaultsPlace) {
  const auto command = NvccCommand(kNvcc, {"-O1", "-std=c++20", "-lineinfo"}, "sm_90a", "a", "b");
  EXPECT_THAT(command, Not(Contains("-O3")));
  EXPECT_THAT(command, Not(Contains("-std=c++17")));
  for (const char* flag : {"-O1", "-std=c++20", "-lineinfo"}) EXPECT_THAT(command, Contains(flag));
}

TEST(NvccCommand, AHostFindsTheLibrariesThatAreLinked) {
  const auto command = NvccCommand(kNvcc, {"-lcublas"}, "sm_90a", "a", "b");
  EXPECT_THAT(command, Contains("-lcublas"));
  EXPECT_THAT(command, Contains("-Xlinker=--disable-new-dtags,-rpath=/cuda/lib64"));
}

TEST(NvccFlags, ThoseOfNativeCandidatesAreNotThoseOfDeviceCode) {
  const std::string native = "#include <assay/kernel.h>\n";
  const std::string device = "//! launch f grid=(1) block=(1) args=()\n";
  const auto options = ParseBuildOptions(
      "//! flags -O2 -use_fast_math -DN=4 -UM --extended-lambda -lcublas\n" + native, "cuda");
  ASSERT_TRUE(options) << options.error();
  EXPECT_THAT(options->flags, ElementsAre("-O2", "-use_fast_math", "-DN=4", "-UM",
                                          "--extended-lambda", "-lcublas"));
  for (const char* flag : {"-O2", "-lcublas", "--extended-lambda"})
    EXPECT_FALSE(ParseBuildOptions(std::string("//! flags ") + flag + "\n" + device, "cuda"));
  for (const char* flag :
       {"-I/etc", "-include=x", "-arch=sm_80", "-gencode=arch=compute_80,code=sm_80", "-Xcompiler",
        "-Xcompiler=-fplugin=x", "-Xptxas", "-ccbin=/tmp/x", "-std=c++14", "-default-device",
        "-lcudart", "-l/tmp/x", "-rdc=true", "-dc", "-run", "--options-file=x", "-march=native",
        "-fopenmp"}) {
    const auto refused =
        ParseBuildOptions(std::string("//! flags ") + flag + "\n" + native, "cuda");
    ASSERT_FALSE(refused) << flag;
    EXPECT_THAT(refused.error(), HasSubstr("--extended-lambda")) << flag;
  }
  EXPECT_THAT(ParseBuildOptions("//! compiler g++\n" + native, "cuda").error(),
              HasSubstr("compiled by nvcc"));
}

}  // namespace
}  // namespace assay
