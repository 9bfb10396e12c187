#include "speed/library_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr const char* kCopy =
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_";

class LibraryKernels : public testing::Test {
 protected:
  LibraryKernels() : trace_(std::make_unique<wire::KernelTrace>()) {
    candidate_.source.form = CandidateForm::kPython;
    // What a build leaves of kernels that nobody can read has their names beside it.
    candidate_.artifact = std::string("\0_Z7softmaxPKfPf\0triton_rows\0", 28);
    candidate_.source.content = "@triton.jit\ndef fused_rows(x, out):\n  pass\n# nvjet_tst_64x8\n";
  }
  void Ran(const std::string& name, uint64_t time_ns, uint64_t runs = 1) {
    wire::TracedKernel& kernel = trace_->kernels[trace_->kernel_count++];
    kernel.time_ns = time_ns;
    kernel.runs = runs;
    std::strncpy(kernel.name, name.c_str(), sizeof kernel.name - 1);
  }
  LibraryTime Time() const { return LibraryTimeOf(*trace_, OwnKernels(candidate_)); }

  BuiltCandidate candidate_;
  std::unique_ptr<wire::KernelTrace> trace_;
};

TEST_F(LibraryKernels, WhatTheBuildLeftIsTheCandidatesOwn) {
  Ran("_Z7softmaxPKfPf", 900, 3);
  Ran("triton_rows", 50);
  Ran("fused_rows", 50);
  const LibraryTime time = Time();
  EXPECT_EQ(time.samples, 5);
  EXPECT_EQ(time.foreign_share, 0);
  EXPECT_THAT(time.shares, IsEmpty());
}

// PyTorch 2.11's softmax of short rows lies in no namespace of PyTorch's, and stood in a verdict
// under its own name.
TEST_F(LibraryKernels, PyTorchsSoftmaxOfShortRowsIsPyTorchs) {
  Ran("_ZN43_GLOBAL__N__5f3c1a_10_SoftMax_cu_9f9720softmax_warp_forwardIfffLi11ELb0ELb0EEEvPT0_",
      10);
  EXPECT_THAT(Time().shares, ElementsAre(Pair("PyTorch", 1.0)));
}

// `def` before a library's kernel, in a comment, makes it no kernel of Triton's.
TEST_F(LibraryKernels, MangledNamesAreNoFunctionsOfTheSource) {
  const std::string name = "_ZN6somlib12fast_softmaxEPKfPf";
  candidate_.source.content += "# def " + name + "(x)\n";
  Ran(name, 10);
  EXPECT_DOUBLE_EQ(Time().foreign_share, 1.0);
}

TEST_F(LibraryKernels, LibrariesAreToldByTheNamesOfTheirKernels) {
  Ran(kCopy, 100);
  Ran("nvjet_tst_64x8", 500);
  Ran("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32", 100);
  Ran("_ZN5cudnn3ops20nchwToNhwcKernelE", 100);
  Ran("_Z7softmaxPKfPf", 200);
  const LibraryTime time = Time();
  EXPECT_THAT(time.shares,
              ElementsAre(Pair("PyTorch", 0.1), Pair("cuBLAS", 0.6), Pair("cuDNN", 0.1)));
  EXPECT_DOUBLE_EQ(time.foreign_share, 0.8);
}

// A comment that names a library's kernel made it nobody's, once.
TEST_F(LibraryKernels, ALibrarysNameInTheSourceMakesItNotTheCandidates) {
  candidate_.source.content += "def nvjet_tst_64x8(): pass\n";
  candidate_.artifact += std::string("\0nvjet_tst_64x8\0", 16);
  EXPECT_FALSE(OwnKernels(candidate_).Has("nvjet_tst_64x8"));
}

// What it writes lies in the candidate's artifact, too, where the builder's call compiled it. Some
// copy it into their source, and then it is theirs.
TEST_F(LibraryKernels, WhatTorchCompileWroteIsTheCandidatesWhereItsSourceHasIt) {
  candidate_.artifact += std::string("triton_poi_fused_add_0\0", 23);
  Ran("triton_poi_fused_add_0", 100);
  EXPECT_THAT(Time().shares, ElementsAre(Pair("torch.compile", 1.0)));
  candidate_.source.content += "def triton_poi_fused_add_0(in_ptr0, out_ptr0):\n  pass\n";
  EXPECT_THAT(Time().shares, IsEmpty());
}

TEST_F(LibraryKernels, WhatNobodyKnowsIsForeignUnderItsOwnName) {
  Ran("cask_kernel", 300);
  Ran("rows", 300);  // a part of names alone
  Ran("red\x1b[31mrows", 300);
  trace_->untold_ns = 100;
  EXPECT_THAT(Time().shares,
              ElementsAre(Pair("cask_kernel", 0.3), Pair("code generated as it runs", 0.1),
                          Pair("red[31mrows", 0.3), Pair("rows", 0.3)));
  EXPECT_DOUBLE_EQ(Time().foreign_share, 1);
  EXPECT_EQ(Time().samples, 3);
}

TEST_F(LibraryKernels, AForgedTraceBreaksNothing) {
  EXPECT_EQ(Time().samples, 0);
  trace_->kernel_count = UINT32_MAX;
  for (wire::TracedKernel& kernel : trace_->kernels) {
    kernel.time_ns = kernel.runs = UINT64_MAX;
    std::memset(kernel.name, 'x', sizeof kernel.name);
  }
  std::memset(trace_->message, 27, sizeof trace_->message);
  const LibraryTime time = Time();
  EXPECT_GT(time.samples, 0);
  EXPECT_LE(time.foreign_share, 1);
  EXPECT_EQ(TraceFailure(*trace_), "");
}

}  // namespace
}  // namespace assay
