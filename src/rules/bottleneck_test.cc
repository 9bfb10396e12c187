#include "rules/bottleneck.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using testing::HasSubstr;

constexpr int kMultiprocessors = 132;

// A softmax that does nothing badly, at 60% of what memory allows.
Verdict Plain() {
  Verdict verdict;
  verdict.roofline.emplace();
  verdict.roofline->regime = "memory";
  verdict.roofline->instructions = "float32 (FFMA)";
  verdict.roofline->percent_of_peak = 60;
  verdict.roofline->empty_call_ns = 2100;
  KernelRecord kernel;
  kernel.name = "softmax";
  kernel.registers = 32;
  kernel.launches = 1;
  kernel.threads = 256;
  kernel.blocks = 8192;
  kernel.occupancy = 1;
  kernel.limiter = "threads";
  kernel.waves = 7.75;
  kernel.instructions = {{"global_load", 4}, {"float32", 100}};
  kernel.widest_load_bytes = 16;
  verdict.kernels = {kernel};
  return verdict;
}

std::string Found(const Verdict& verdict) { return BottleneckOf(verdict, kMultiprocessors); }

TEST(Bottleneck, NothingIsSaidWhereNothingStandsOut) {
  EXPECT_EQ(Found(Plain()), "");
  EXPECT_EQ(Found(Verdict()), "");
}

TEST(Bottleneck, LocalMemoryComesFirst) {
  Verdict verdict = Plain();
  verdict.kernels[0].stack_bytes = 256;
  verdict.kernels[0].registers = 255;
  verdict.kernels[0].widest_load_bytes = 4;
  verdict.kernels[0].instructions["local"] = 64;
  EXPECT_THAT(Found(verdict),
              HasSubstr("softmax keeps 256 bytes a thread in local memory, beside 255 registers"));
  // Without a listing nobody knows that it is a function's frame.
  verdict.kernels[0].instructions.clear();
  EXPECT_THAT(Found(verdict), HasSubstr("local memory"));
}

TEST(Bottleneck, AFrameThatNothingTouchesIsNone) {
  Verdict verdict = Plain();
  verdict.kernels[0].stack_bytes = 32;
  EXPECT_EQ(Found(verdict), "");
}

TEST(Bottleneck, NothingIsSaidNearThePeak) {
  Verdict verdict = Plain();
  verdict.kernels[0].widest_load_bytes = 4;
  EXPECT_NE(Found(verdict), "");
  verdict.roofline->percent_of_peak = 90;
  EXPECT_EQ(Found(verdict), "");
}

TEST(Bottleneck, IdleMultiprocessors) {
  Verdict verdict = Plain();
  verdict.kernels[0].blocks = 16;
  EXPECT_THAT(Found(verdict), HasSubstr("has 16 blocks for 132 multiprocessors"));
  verdict.kernels[0].blocks = 1;
  EXPECT_THAT(Found(verdict), HasSubstr("has 1 block for"));
  // What a launch takes is the bound: more blocks would not help.
  verdict.roofline->regime = "overhead";
  EXPECT_EQ(Found(verdict), "");
}

TEST(Bottleneck, ProductsWithoutMatrixUnits) {
  Verdict verdict = Plain();
  verdict.roofline->regime = "compute";
  verdict.roofline->instructions = "tensor_bfloat16 (wgmma)";
  EXPECT_THAT(Found(verdict), HasSubstr("no kernel has a matrix instruction"));
  verdict.kernels[0].instructions["matrix"] = 16;
  EXPECT_EQ(Found(verdict), "");
  verdict.kernels[0].instructions.clear();
  EXPECT_EQ(Found(verdict), "");
}

// A library's kernels are not among those that can be read.
TEST(Bottleneck, KernelsThatNobodySeesAreNotSaidToLackAnything) {
  Verdict verdict = Plain();
  verdict.roofline->regime = "compute";
  verdict.roofline->instructions = "tensor_bfloat16 (wgmma)";
  verdict.kernels[0].launches = 0;
  EXPECT_EQ(Found(verdict), "");
  verdict.kernels.clear();
  EXPECT_EQ(Found(verdict), "");
}

TEST(Bottleneck, ALastSmallLaunchIsHowReductionsEnd) {
  Verdict verdict = Plain();
  verdict.kernels.push_back(verdict.kernels[0]);
  verdict.kernels[1].name = "finish";
  verdict.kernels[1].blocks = 1;
  EXPECT_EQ(Found(verdict), "");
  verdict.kernels[0].blocks = 100;
  EXPECT_THAT(Found(verdict), HasSubstr("softmax has 100 blocks for 132 multiprocessors"));
}

TEST(Bottleneck, OfVariantsNobodyKnowsWhichOneRuns) {
  Verdict verdict = Plain();
  verdict.kernels = {{"tuned", 255, 512, 0}, {"tuned", 64, 0, 0}};
  EXPECT_EQ(Found(verdict), "");
  verdict.kernels.pop_back();
  EXPECT_THAT(Found(verdict), HasSubstr("tuned keeps 512 bytes"));
}

TEST(Bottleneck, LowOccupancyNamesItsLimiter) {
  Verdict verdict = Plain();
  KernelRecord& kernel = verdict.kernels[0];
  kernel.occupancy = 0.1875;
  kernel.limiter = "shared memory";
  kernel.shared_bytes = 101376;
  EXPECT_THAT(Found(verdict), HasSubstr("19% of its warps at once, limited by shared memory"));
  kernel.instructions["async_copy"] = 2;  // a pipeline needs few warps
  EXPECT_EQ(Found(verdict), "");
}

TEST(Bottleneck, NarrowLoadsMatterToMemory) {
  Verdict verdict = Plain();
  verdict.kernels[0].widest_load_bytes = 4;
  EXPECT_THAT(Found(verdict), HasSubstr("softmax loads 4 bytes a thread and instruction at most"));
  verdict.roofline->regime = "compute";
  EXPECT_EQ(Found(verdict), "");
}

TEST(Bottleneck, AWaveThatIsMostlyEmpty) {
  Verdict verdict = Plain();
  verdict.kernels[0].waves = 1.1;
  EXPECT_THAT(Found(verdict), HasSubstr("takes 1.10 waves: the last one fills 10% of the GPU"));
  verdict.kernels[0].waves = 7.1;
  EXPECT_EQ(Found(verdict), "");
}

TEST(Bottleneck, SeveralLaunchesWhereALaunchIsTheBound) {
  Verdict verdict = Plain();
  verdict.roofline->regime = "overhead";
  EXPECT_EQ(Found(verdict), "");
  verdict.kernels[0].launches = 3;
  EXPECT_EQ(Found(verdict), "3 launches a call, where one takes 2.1 us: fuse them");
}

TEST(Bottleneck, KernelsWhoseLaunchesNobodyKnows) {
  Verdict verdict = Plain();
  verdict.kernels[0] = {"softmax", 40, 0, 1024};
  EXPECT_EQ(Found(verdict), "");
  verdict.kernels[0].widest_load_bytes = 8;
  EXPECT_THAT(Found(verdict), HasSubstr("loads 8 bytes"));
  // Nobody measured what bounds the problem.
  verdict.roofline.reset();
  EXPECT_EQ(Found(verdict), "");
}

}  // namespace
}  // namespace assay
