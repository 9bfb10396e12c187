// Tests candidates in the device form, built by NVRTC in the real sandbox, where there is an NVRTC.
#include "builders/device_build.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "base/files.h"
#include "base/hash.h"
#include "builders/kernel_records.h"
#include "problem/arguments_testing.h"
#include "problem/suite.h"
#include "toolchain/nvrtc.h"
#include "values/slot_layout.h"

namespace assay {
namespace {

using testing::SizeIs;
using wire::DType;
using wire::Role;

class DeviceBuild : public testing::Test {
 protected:
  void SetUp() override {
    if (!FindNvrtc()) GTEST_SKIP() << "no NVRTC here";
    auto gpu = Gpu::Open(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1");
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_.emplace(std::move(*gpu));
    ASSERT_TRUE(cache_);
    ::setenv("XDG_CACHE_HOME", cache_->path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }

  // The kernels of a source that must build.
  std::vector<KernelRecord> Kernels(const std::string& content,
                                    const ProblemDescription& description) const {
    const auto plan = std::make_unique<wire::Plan>(LayOutSlots(description).value());
    const CandidateSource source{"kernel.cu", content, Sha256Hex(content), CandidateForm::kDevice,
                                 "cuda"};
    const auto built = BuildDevice(source, {}, {*gpu_, *plan, true, {}}, {});
    if (!built || built->failure) {
      ADD_FAILURE() << (built ? *built->failure + built->log : built.error().message) << content;
      return {};
    }
    return KernelRecordsOf(*built, gpu_->facts());
  }
  static std::string Shipped(const std::string& name) {
    return ReadFile(ASSAY_SOURCE_DIRECTORY "/kernels/" + name, 1 << 20).value_or("");
  }

  std::optional<Gpu> gpu_;
  Result<TemporaryFolder> cache_ = TemporaryFolder::Create();
};

TEST_F(DeviceBuild, TheShippedSoftmax) {
  ProblemDescription description;
  description.arguments = {Tensor("x", Role::kInput, DType::kFloat32, {8192, 1024}),
                           Tensor("out", Role::kOutput, DType::kFloat32, {8192, 1024})};
  const auto kernels = Kernels(Shipped("softmax/one_read.cu"), description);
  ASSERT_THAT(kernels, SizeIs(1));
  EXPECT_EQ(kernels[0].name, "softmax");
  EXPECT_EQ(kernels[0].blocks, 8192);
  EXPECT_EQ(kernels[0].threads, 256);
  EXPECT_EQ(kernels[0].shared_bytes, 32);  // eight floats
  EXPECT_EQ(kernels[0].stack_bytes, 0);
  EXPECT_GT(kernels[0].registers, 8);
  EXPECT_LT(kernels[0].registers, 64);
}

TEST_F(DeviceBuild, TheShippedMatrixProductCoversRaggedSizes) {
  ProblemDescription description;
  description.arguments = {Tensor("a", Role::kInput, DType::kFloat32, {33, 5}),
                           Tensor("b", Role::kInput, DType::kFloat32, {5, 65}),
                           Tensor("out", Role::kOutput, DType::kFloat32, {33, 65})};
  const auto kernels = Kernels(Shipped("matmul/naive.cu"), description);
  ASSERT_THAT(kernels, SizeIs(1));
  EXPECT_EQ(kernels[0].threads, 256);
  EXPECT_EQ(kernels[0].blocks, 3 * 5);
}

TEST_F(DeviceBuild, AStubBuildsAsItStands) {
  ProblemDescription description;
  description.arguments = {Tensor("new", Role::kInput, DType::kFloat16, {4, 16}),
                           Tensor("index", Role::kInput, DType::kInt64, {4}),
                           Tensor("norm_weight", Role::kParameter, DType::kBFloat16, {16}),
                           Tensor("out", Role::kOutput, DType::kUInt8, {4, 16})};
  ProblemRequest request;
  request.name = "gather-rows";
  request.path = "gather.py";
  const auto stub = WriteStub(request, description, "device");
  ASSERT_TRUE(stub) << stub.error().message;
  const auto kernels = Kernels(*stub, description);
  ASSERT_THAT(kernels, SizeIs(1));
  EXPECT_EQ(kernels[0].name, "gather_rows_kernel");
}

}  // namespace
}  // namespace assay
