#include "rules/profile_finding.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "rules/bottleneck.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

KernelProfile Kernel() {
  KernelProfile kernel;
  kernel.name = "softmax<256>";
  kernel.launches = 1;
  kernel.cycles_share = 1;
  kernel.dram_percent = kernel.memory_percent = 34;
  kernel.sm_percent = 22;
  kernel.tensor_percent = 0;
  kernel.warps_active_percent = 38;
  kernel.stalls = {{"long_scoreboard", 62}, {"wait", 9}};
  return kernel;
}

Verdict Of(KernelProfile kernel) {
  Verdict verdict;
  verdict.profile = ProfileRecord{{std::move(kernel)}, ""};
  return verdict;
}

std::string Found(KernelProfile kernel) { return BottleneckOf(Of(std::move(kernel)), 132); }

int NumbersIn(const std::string& text) {
  int numbers = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if (std::isdigit(text[i]) && (i == 0 || (!std::isdigit(text[i - 1]) && text[i - 1] != '.')))
      ++numbers;
  return numbers;
}

TEST(ProfileFinding, DramThatIsBusyIsNamed) {
  KernelProfile kernel = Kernel();
  kernel.dram_percent = kernel.memory_percent = 91.4;
  EXPECT_EQ(Found(kernel), "memory-bound: softmax<256> has DRAM at 91% of its peak");
}

// From 85% of the measured peak on nothing else is said; but counters were asked for.
TEST(ProfileFinding, IsSaidNearThePeakToo) {
  KernelProfile kernel = Kernel();
  kernel.dram_percent = kernel.memory_percent = 91;
  Verdict verdict = Of(kernel);
  verdict.roofline = Roofline{};
  verdict.roofline->percent_of_peak = 95;
  EXPECT_THAT(BottleneckOf(verdict, 132), StartsWith("memory-bound"));
  verdict.profile.reset();
  EXPECT_EQ(BottleneckOf(verdict, 132), "");
}

TEST(ProfileFinding, BytesThatNeedNotBeMovedAreTold) {
  KernelProfile kernel = Kernel();
  kernel.dram_percent = kernel.memory_percent = 88;
  kernel.dram_bytes = 2.5e9;
  Verdict verdict = Of(kernel);
  verdict.work = Work{};
  verdict.work->bytes = 1e9;
  EXPECT_EQ(BottleneckOf(verdict, 132),
            "memory-bound: softmax<256> has DRAM at 88% of its peak, and the call moves 2.5 times "
            "the bytes that it must");
  verdict.work->bytes = 2e9;
  EXPECT_EQ(BottleneckOf(verdict, 132), "memory-bound: softmax<256> has DRAM at 88% of its peak");
}

TEST(ProfileFinding, OtherUnitsThatAreBusyAreNamed) {
  KernelProfile kernel = Kernel();
  kernel.tensor_percent = 71;
  kernel.sm_percent = 74;
  EXPECT_EQ(Found(kernel),
            "compute-bound: softmax<256> keeps the matrix units at 71% of their peak");
  kernel.tensor_percent = 3;
  EXPECT_THAT(Found(kernel), HasSubstr("busiest unit at 74% of its peak, and the matrix units at "
                                       "3%"));
  kernel.memory_percent = 83;
  EXPECT_THAT(Found(kernel), StartsWith("bound by caches or shared memory"));
}

TEST(ProfileFinding, WasteGoesBeforeTheUnitThatItKeepsBusy) {
  KernelProfile kernel = Kernel();
  kernel.dram_percent = kernel.memory_percent = 91;
  kernel.load_used_percent = 25;
  EXPECT_EQ(Found(kernel),
            "uncoalesced loads: softmax<256> uses 25% of each 32-byte sector that it asks for");
  kernel.load_used_percent = 100;
  kernel.store_used_percent = 12.5;
  EXPECT_THAT(Found(kernel), StartsWith("uncoalesced stores: "));
  kernel.store_used_percent.reset();
  kernel.conflict_percent = 60;
  EXPECT_EQ(Found(kernel),
            "bank conflicts: they take 60% of the cycles of shared memory in softmax<256>");
}

// A sum of rows stores one value a row, an eighth of a sector: that was once named as what holds it
// back, at 18% of its memory's peak.
TEST(ProfileFinding, StoresThatNobodyWaitsForAreNotTold) {
  KernelProfile kernel = Kernel();
  kernel.memory_percent = kernel.dram_percent = 18;
  kernel.load_used_percent = 100;
  kernel.store_used_percent = 12.5;
  kernel.stalls = {{"long_scoreboard", 76}};
  EXPECT_THAT(Found(kernel), StartsWith("latency: "));
  kernel.stalls = {{"drain", 60}};
  EXPECT_THAT(Found(kernel), StartsWith("uncoalesced stores: "));
}

// Where neither memory is what the kernel waits for, nothing is lost by either.
TEST(ProfileFinding, WasteThatCostsNothingIsNotTold) {
  KernelProfile kernel = Kernel();
  kernel.load_used_percent = 25;
  kernel.conflict_percent = 60;
  kernel.stalls = {{"barrier", 70}};
  EXPECT_THAT(Found(kernel), HasSubstr("each other at a barrier"));
}

TEST(ProfileFinding, WhereNoUnitIsBusyItSaysWhatWarpsWaitFor) {
  const std::string found = Found(Kernel());
  EXPECT_EQ(found,
            "latency: warps of softmax<256> wait for global memory (62% of all waiting), with DRAM "
            "at 34% of its peak and 38% of the warps active: more bytes in flight would help");
  KernelProfile unknown = Kernel();
  unknown.stalls = {{"some_new_reason", 50}};
  EXPECT_THAT(Found(unknown), HasSubstr("wait for some_new_reason (50%"));
}

// A cause that is plain from the code comes before what counters see of it, but not before a unit
// that is busy all the same.
TEST(ProfileFinding, TakesItsTurnAmongWhatTheCodeSays) {
  KernelProfile kernel = Kernel();
  Verdict verdict = Of(kernel);
  KernelRecord compiled{"softmax<256>", 255, 512, 0};
  verdict.kernels = {compiled};
  EXPECT_THAT(BottleneckOf(verdict, 132), HasSubstr("local memory"));
  verdict.profile->kernels[0].dram_percent = 91;
  EXPECT_THAT(BottleneckOf(verdict, 132), StartsWith("memory-bound"));
}

TEST(ProfileFinding, HasFourNumbersAtMost) {
  KernelProfile kernel = Kernel();
  kernel.name = "softmax";
  kernel.cycles_share = 0.62;
  EXPECT_THAT(Found(kernel), HasSubstr("softmax (62% of the call's cycles)"));
  EXPECT_EQ(NumbersIn(Found(kernel)), 4);
  kernel.dram_percent = kernel.memory_percent = 80;
  kernel.dram_bytes = 3e9;
  Verdict verdict = Of(kernel);
  verdict.work = Work{};
  verdict.work->bytes = 1e9;
  EXPECT_LE(NumbersIn(BottleneckOf(verdict, 132)), 4);
}

TEST(ProfileFinding, AProfileThatFailedSaysNothing) {
  Verdict verdict;
  verdict.profile = ProfileRecord{{}, "ncu wrote no report"};
  EXPECT_EQ(BottleneckOf(verdict, 132), "");
}

}  // namespace
}  // namespace assay
