#include "toolchain/gpu_tools.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "toolchain/scoped_variable_testing.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;

namespace fs = std::filesystem;

// As NVIDIA's packages lay them out: scripts in a toolkit's bin, programs elsewhere.
class GpuTools : public testing::Test {
 protected:
  void Program(const std::string& name) const {
    fs::create_directories((root() / name).parent_path());
    std::ofstream(root() / name) << "#!/bin/sh\n";
    fs::permissions(root() / name, fs::perms::owner_all);
  }
  void Nsight(const std::string& folder) const {
    Program(folder + "/ncu");
    Program(folder + "/target/linux-desktop/ncu");
  }
  fs::path root() const { return fs::canonical(folder_->path()); }
  std::string At(const std::string& name) const { return (root() / name).string(); }
  Result<GpuTool> Ncu() const { return FindNcu(At("cuda/bin"), At("opt")); }
  Result<GpuTool> Sanitizer() const { return FindComputeSanitizer(At("cuda/bin")); }

  Result<TemporaryFolder> folder_ = TemporaryFolder::Create();
  ScopedVariable path_{"PATH", "/nonexistent"}, home_{"CUDA_HOME", ""}, other_{"CUDA_PATH", ""},
      ncu_{"ASSAY_NCU", ""}, sanitizer_{"ASSAY_COMPUTE_SANITIZER", ""};
};

TEST_F(GpuTools, WhereThereIsNoneItSaysWhatToDo) {
  EXPECT_EQ(Ncu().error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(Ncu().error().message, AllOf(HasSubstr("no ncu"), HasSubstr("install Nsight Compute"),
                                           HasSubstr("let ASSAY_NCU name")));
  EXPECT_THAT(Sanitizer().error().message,
              AllOf(HasSubstr("no compute-sanitizer"), HasSubstr("cuda-sanitizer"),
                    HasSubstr("let ASSAY_COMPUTE_SANITIZER name")));
}

TEST_F(GpuTools, TheNewestInstallationIsFoundWithoutAScript) {
  Nsight("opt/nsight-compute/2025.9.0");
  Nsight("opt/nsight-compute/2025.10.1");
  const auto tool = Ncu();
  ASSERT_TRUE(tool) << tool.error().message;
  EXPECT_EQ(tool->path, At("opt/nsight-compute/2025.10.1/ncu"));
  EXPECT_EQ(tool->folder, At("opt/nsight-compute/2025.10.1"));
}

TEST_F(GpuTools, TheScriptOfAToolkitLeadsToTheProgramBesideIt) {
  Program("cuda/bin/ncu");
  Program("cuda/bin/compute-sanitizer");
  Nsight("cuda/nsight-compute-2025.3.1");
  Program("cuda/compute-sanitizer/compute-sanitizer");
  Program("cuda/compute-sanitizer/libsanitizer-collection.so");
  EXPECT_EQ(Ncu().value().path, At("cuda/nsight-compute-2025.3.1/ncu"));
  EXPECT_EQ(Sanitizer().value().path, At("cuda/compute-sanitizer/compute-sanitizer"));
  EXPECT_EQ(Sanitizer().value().folder, At("cuda/compute-sanitizer"));
}

TEST_F(GpuTools, PathIsLookedAtBeforeTheUsualFolder) {
  Program("cuda/bin/ncu");
  Nsight("cuda/nsight-compute-2025.3.1");
  Nsight("mine");
  const ScopedVariable path("PATH", At("mine"));
  EXPECT_EQ(Ncu().value().path, At("mine/ncu"));
}

// Its folder will be shown to candidates: a home folder with an ncu in it must not be.
TEST_F(GpuTools, AProgramWithoutAnInstallationIsPassedBy) {
  Program("home/ncu");
  const ScopedVariable path("PATH", At("home"));
  EXPECT_FALSE(Ncu());
}

TEST_F(GpuTools, TheVariableGoesFirst) {
  Nsight("opt/nsight-compute/2025.9.0");
  Program("mine/ncu");
  const ScopedVariable named("ASSAY_NCU", At("mine/ncu"));
  EXPECT_EQ(Ncu().value().path, At("mine/ncu"));
  EXPECT_EQ(Ncu().value().folder, At("mine"));
  Nsight("other");
  const ScopedVariable inner("ASSAY_NCU", At("other/target/linux-desktop/ncu"));
  EXPECT_EQ(Ncu().value().path, At("other/ncu"));
  const ScopedVariable nothing("ASSAY_NCU", At("nowhere/ncu"));
  EXPECT_EQ(Ncu().error().kind, ErrorKind::kUsage);
  EXPECT_THAT(Ncu().error().message, HasSubstr("ASSAY_NCU names"));
}

}  // namespace
}  // namespace assay
