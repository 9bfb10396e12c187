#include "toolchain/nvrtc.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>

#include "base/files.h"
#include "toolchain/build.h"

namespace assay {
namespace {

using testing::ElementsAre;

class Toolkit : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create();
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(*folder));
    ::setenv("CUDA_HOME", folder_->path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("CUDA_HOME"); }
  void Add(const std::string& path) {
    std::filesystem::create_directories((folder_->path() / path).parent_path());
    ASSERT_TRUE(WriteFileAtomically((folder_->path() / path).string(), ""));
  }
  std::optional<TemporaryFolder> folder_;
};

TEST_F(Toolkit, TheNewestLibraryIsTaken) {
  for (const char* name : {"libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.alt.so.14",
                           "libnvrtc-builtins.so.13", "libnvrtc.so.13.0.48", "libnvrtc.so.9x"})
    Add(std::string("lib64/") + name);
  Add("include/cuda_fp16.h");
  const auto found = FindNvrtc();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->library, (folder_->path() / "lib64/libnvrtc.so.13").string());
  EXPECT_EQ(found->include, (folder_->path() / "include").string());
}

TEST_F(Toolkit, OneThatIsTooOldIsNone) {
  Add("lib64/libnvrtc.so.11");
  const auto found = FindNvrtc();
  EXPECT_FALSE(found && found->library.starts_with(folder_->path().string()));
}

TEST(Nvrtc, TheCommandNamesKernelsThenOptions) {
  EXPECT_THAT(NvrtcCommand({"/l/libnvrtc.so.13", "/l/include", "/l"}, "/assay/nvrtc_build",
                           "/candidate/kernel.cu", "/tmp/kernel.img", {"row_max", "f<4>"}, "sm_90a",
                           {"-use_fast_math"}, {{"BLOCK", 128}, {"ROWS", -1}}),
              ElementsAre("/assay/nvrtc_build", "/l/libnvrtc.so.13", "/candidate/kernel.cu",
                          "/tmp/kernel.img", "row_max", "f<4>", "--", "-arch=sm_90a", "-std=c++17",
                          "-I/l/include", "-DBLOCK=128", "-DROWS=-1", "-use_fast_math"));
}

TEST(Nvrtc, FlagsOfTheDevicesCompilerAreAllowed) {
  for (const char* flag : {"-use_fast_math", "--use_fast_math", "-lineinfo", "-std=c++20",
                           "--maxrregcount=128", "-maxrregcount=64", "--fmad=false", "-ftz=true",
                           "--prec-div=true", "--prec-sqrt=false", "--extra-device-vectorization"})
    EXPECT_TRUE(IsAllowedForDevice(flag)) << flag;
  const auto options =
      ParseBuildOptions("//! flags -use_fast_math -DN=4 -UM\n//! launch x", "cuda");
  ASSERT_TRUE(options) << options.error();
  EXPECT_THAT(options->flags, ElementsAre("-use_fast_math", "-DN=4", "-UM"));
}

TEST(Nvrtc, FlagsThatNameFilesOrTakeAnArchitectureAreNot) {
  for (const char* flag :
       {"-I/etc", "-include=x", "--pre-include=/etc/passwd", "-arch=sm_80", "-maxrregcount=9999",
        "-maxrregcount=8", "-maxrregcount=", "--fmad=maybe", "-std=gnu++17", "-Xptxas", "-O3",
        "--device-c", "-pch", "--pch-dir=/tmp", "---fmad=true=", "fmad=true", "", "-"})
    EXPECT_FALSE(IsAllowedForDevice(flag)) << flag;
  EXPECT_FALSE(ParseBuildOptions("//! flags -march=native\n//! launch x", "cuda"));
  EXPECT_FALSE(ParseBuildOptions("//! compiler g++\n//! launch x", "cuda"));
}

}  // namespace
}  // namespace assay
