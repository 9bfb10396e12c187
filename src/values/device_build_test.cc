// Tests candidates in the device form, built by NVRTC in the real sandbox, where there is an NVRTC.
#include "builders/device_build.h"

#include <fmt/format.h>
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

// Rungs for sm_90a at ragged sizes: wgmma of float8, and one map over all experts.
TEST_F(DeviceBuild, TheRungsInFloat8) {
  constexpr int64_t kRows = 300, kBlocks = 9, kColumnBlocks = 5, kExperts = 3;
  const int64_t inner = 128 * kBlocks, columns = 128 * kColumnBlocks;
  const auto input = [](const char* name, DType dtype, std::vector<int64_t> shape) {
    return Tensor(name, Role::kInput, dtype, std::move(shape));
  };
  ProblemDescription dense, grouped, masked;
  dense.arguments = {input("a", DType::kFloat8E4M3, {kRows, inner}),
                     input("a_scales", DType::kFloat32, {kBlocks, kRows}),
                     input("b", DType::kFloat8E4M3, {columns, inner}),
                     input("b_scales", DType::kFloat32, {kColumnBlocks, kBlocks}),
                     Tensor("out", Role::kOutput, DType::kBFloat16, {kRows, columns})};
  const wire::ArgumentSpec experts = input("b", DType::kUInt8, {kExperts, columns, inner}),
                           scales = input("b_scales", DType::kFloat32,
                                          {kExperts, kColumnBlocks, kBlocks});
  grouped.arguments = {
      input("a", DType::kUInt8, {kRows, inner}), dense.arguments[1], experts, scales,
      input("ends", DType::kInt32, {kExperts}),  dense.arguments[4]};
  masked.arguments = {input("a", DType::kUInt8, {kExperts, 70, inner}),
                      input("a_scales", DType::kFloat32, {kExperts, kBlocks, 70}),
                      experts,
                      scales,
                      input("counts", DType::kInt32, {kExperts}),
                      Tensor("out", Role::kOutput, DType::kBFloat16, {kExperts, 70, columns})};
  for (const char* rung : {"01_naive", "02_bf16_mma", "03_fp8_mma", "04_wgmma", "05_specialised",
                           "06_tall_tile", "07_tma_store", "08_few_rows"})
    EXPECT_THAT(Kernels(Shipped(fmt::format("fp8-gemm/{}.cu", rung)), dense), SizeIs(1)) << rung;
  for (const char* rung :
       {"01_naive", "02_one_launch", "03_wgmma", "04_persistent", "05_tall_tile"})
    EXPECT_THAT(Kernels(Shipped(fmt::format("grouped-fp8/{}.cu", rung)), grouped), SizeIs(1))
        << rung;
  for (const char* rung : {"01_naive_masked", "06_masked", "07_swapped"})
    EXPECT_THAT(Kernels(Shipped(fmt::format("grouped-fp8/{}.cu", rung)), masked), SizeIs(1))
        << rung;
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
