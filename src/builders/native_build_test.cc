// Tests native candidates in CUDA, built in the real sandbox by a script in nvcc's place.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "base/files.h"
#include "base/hash.h"
#include "builders/build_candidate.h"
#include "toolchain/cubin.h"

namespace assay {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

// Writes its arguments, and the headers that it is shown, as its product.
constexpr std::string_view kWrites =
    R"(for word; do [ "$last" = -o ] && output=$word; last=$word; done
grep -q cudaStream_t /assay/include/assay/kernel.h || exit 1
[ -e /assay/include/dlpack/dlpack.h ] || exit 1
echo "$@" > "$output"; cat "$last" >> "$output")";
constexpr std::string_view kFails =
    R"(echo '/candidate/kernel.cu(3): error: identifier "q" is undefined'; exit 2)";

class CudaBuild : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(cache_);
    auto gpu = Gpu::Open(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1");
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_.emplace(std::move(*gpu));
    // Below a folder that every user may read: the sandbox has a user of its own.
    toolkit_ = fs::path("/var/tmp") / fmt::format("assay-fake-toolkit-{}", ::getpid());
    fs::create_directories(toolkit_ / "bin");
    fs::create_directories(toolkit_ / "include");
    std::ofstream(toolkit_ / "include/cuda_runtime.h") << "\n";
    WriteCompiler("13.0", kWrites);
    ::setenv("CUDA_HOME", toolkit_.c_str(), 1);
    ::setenv("XDG_CACHE_HOME", cache_->path().c_str(), 1);
    const std::string content = "#include <assay/kernel.h>\nASSAY_KERNEL() {}\n";
    source_ = {"kernel.cu", content, Sha256Hex(content), CandidateForm::kNative, "cuda"};
  }
  void TearDown() override {
    ::unsetenv("CUDA_HOME");
    ::unsetenv("XDG_CACHE_HOME");
    fs::remove_all(toolkit_);
  }
  void WriteCompiler(std::string_view release, std::string_view body) const {
    const fs::path path = toolkit_ / "bin/nvcc";
    std::ofstream(path) << fmt::format(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'Cuda, release {}'; exit; fi\n{}\n",
        release, body);
    fs::permissions(path, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                              fs::perms::others_read | fs::perms::others_exec);
  }
  Result<BuiltCandidate> Build(bool libraries_allowed = true) const {
    const DeviceTarget target{*gpu_, *plan_, libraries_allowed, {}};
    return BuildCandidate(source_, {}, {}, "", "", {}, &target);
  }

  Result<TemporaryFolder> cache_ = TemporaryFolder::Create();
  std::optional<Gpu> gpu_;
  std::unique_ptr<wire::Plan> plan_ = std::make_unique<wire::Plan>();
  fs::path toolkit_;
  CandidateSource source_;
};

TEST_F(CudaBuild, CompilesForTheDeviceAndKeepsWhatItMade) {
  const auto built = Build();
  ASSERT_TRUE(built) << built.error().message;
  ASSERT_FALSE(built->failure) << *built->failure << built->log;
  EXPECT_THAT(built->artifact, HasSubstr("-gencode=arch=compute_"));
  EXPECT_THAT(built->artifact, HasSubstr("ASSAY_KERNEL() {}"));
  EXPECT_THAT(built->compiler, HasSubstr("nvcc (Cuda, release 13.0) for sm_"));
  EXPECT_EQ(built->toolkit, "");  // its hosts need the driver alone
  EXPECT_FALSE(built->cached);
  const auto again = Build();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->cached);
  EXPECT_EQ(again->artifact, built->artifact);
}

TEST_F(CudaBuild, AnotherReleaseOrOtherFlagsBuildAnew) {
  ASSERT_TRUE(Build());
  WriteCompiler("13.1", kWrites);
  EXPECT_FALSE(Build()->cached);
  EXPECT_TRUE(Build()->cached);
  source_.content = "//! flags -O1\n" + source_.content;
  EXPECT_FALSE(Build()->cached);
  EXPECT_EQ(Build()->flags, "-O1");
}

TEST_F(CudaBuild, AnErrorNamesTheCandidatesLine) {
  WriteCompiler("13.0", kFails);
  const auto built = Build();
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(built->failure, "line 3: identifier \"q\" is undefined");
}

TEST_F(CudaBuild, LibrariesAreForProblemsThatAllowThem) {
  source_.content = "//! flags -lcublas\n" + source_.content;
  const auto allowed = Build();
  ASSERT_TRUE(allowed) << allowed.error().message;
  EXPECT_FALSE(allowed->failure);
  EXPECT_EQ(allowed->toolkit, fs::canonical(toolkit_).string());
  EXPECT_THAT(Build(false)->failure.value_or(""), HasSubstr("flag '-lcublas' is not allowed here"));
}

// nvcc itself, in the sandbox.
TEST_F(CudaBuild, TheShippedKernelCompilesAndItsErrorsAreLocated) {
  if (!fs::exists("/usr/local/cuda/bin/nvcc")) GTEST_SKIP() << "no nvcc in /usr/local/cuda";
  ::setenv("CUDA_HOME", "/usr/local/cuda", 1);
  source_.content =
      ReadFile(ASSAY_SOURCE_DIRECTORY "/kernels/softmax/native.cu", 1 << 20).value_or("");
  const auto built = Build();
  ASSERT_TRUE(built) << built.error().message;
  ASSERT_FALSE(built->failure) << *built->failure << built->log;
  EXPECT_EQ(built->artifact.substr(1, 3), "ELF");
  EXPECT_EQ(built->log, "");
  EXPECT_FALSE(FindCubins(built->artifact).empty());
  source_.content =
      "#include <assay/kernel.h>\n__global__ void k(float* y) {\n  y[0] = nothing;\n}";
  EXPECT_EQ(Build()->failure, "line 3: identifier \"nothing\" is undefined");
  source_.content = "#include <assay/kernel.h>\n\nASSAY_KERNEL(int n, cudaStream_t stream) {}\n";
  EXPECT_THAT(Build()->failure.value_or(""), HasSubstr("line 3: static assertion failed with"));
}

TEST(ArtifactHashes, CoverAllThatRunsAndNothingElse) {
  BuiltCandidate built;
  built.source.path = "a.cu";
  built.source.form = CandidateForm::kDevice;
  built.artifact = "image";
  built.launches = "launches";
  const std::string hash = ArtifactHash(built);
  EXPECT_EQ(hash.size(), 64u);
  BuiltCandidate same = built;
  same.source.path = "b.cu";
  same.source.content = "// another text";
  same.log = "a warning";
  EXPECT_EQ(ArtifactHash(same), hash);
  for (std::string BuiltCandidate::*part : {&BuiltCandidate::artifact, &BuiltCandidate::launches}) {
    BuiltCandidate other = built;
    other.*part += "!";
    EXPECT_NE(ArtifactHash(other), hash);
  }
  BuiltCandidate sized = built;
  sized.at_other_sizes = {nullptr, std::make_shared<BuiltCandidate>(built)};
  EXPECT_NE(ArtifactHash(sized), hash);
  BuiltCandidate native = built;
  native.source.form = CandidateForm::kNative;
  EXPECT_NE(ArtifactHash(native), hash);
  BuiltCandidate python = built, failed = built;
  python.source.form = CandidateForm::kPython;
  failed.failure = "line 3: nonsense";
  EXPECT_EQ(ArtifactHash(python), "");
  EXPECT_EQ(ArtifactHash(failed), "");
}

}  // namespace
}  // namespace assay
