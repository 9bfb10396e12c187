#include "hosts/blame.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Blame, TheTextOfAnUncaughtExceptionIsFound) {
  EXPECT_EQ(UncaughtException("terminate called after throwing an instance of "
                              "'std::runtime_error'\n  what():  no room\nmore"),
            "std::runtime_error: no room");
  EXPECT_EQ(UncaughtException("x\nterminate called after throwing an instance of 'int'\n"), "int");
  EXPECT_EQ(UncaughtException("what():  nothing"), "");
}

TEST(Blame, WantOfMemoryIsSaidByCudaPyTorchAndLibraries) {
  for (const char* text : {"line 4: OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.",
                           "CUDA_ERROR_OUT_OF_MEMORY", "DefaultCPUAllocator: can't allocate memory",
                           "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED",
                           "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"})
    EXPECT_TRUE(SaysOutOfMemory(text)) << text;
  EXPECT_FALSE(SaysOutOfMemory(""));
  EXPECT_FALSE(SaysOutOfMemory("CUDA error: CUDA-capable device(s) is/are busy or unavailable"));
  EXPECT_TRUE(MayLackMemory("CUDA error: CUDA-capable device(s) is/are busy or unavailable"));
  EXPECT_TRUE(MayLackMemory("CUDA error: out of memory"));
  EXPECT_FALSE(MayLackMemory(""));
  EXPECT_FALSE(SaysOutOfMemory("line 3: NameError: name 'memory' is not defined"));
}

TEST(Blame, ACandidateThatNeedsWhatIsNotHereGetsNoVerdict) {
  HostTrouble trouble;
  trouble.kind = HostTrouble::Kind::kFailed;
  trouble.failure = wire::Failure::kCandidateLoad;
  trouble.message = "line 3: it needs CUDA, which is not here (it imports triton): judge it there";
  Verdict verdict;
  const auto blamed = Blame(trouble, "loading", {}, &verdict);
  ASSERT_FALSE(blamed);
  EXPECT_EQ(blamed.error().kind, ErrorKind::kUnjudged);
  trouble.message = "line 3: NameError: name 'here' is not defined";
  EXPECT_TRUE(Blame(trouble, "loading", {}, &verdict));
  EXPECT_EQ(verdict.outcome, Outcome::kBuildFailed);
  // A problem file that needs it is not wrong either.
  trouble.failure = wire::Failure::kProblemLoad;
  EXPECT_EQ(TroubleAsError(trouble, "p").kind, ErrorKind::kUsage);
  trouble.message = "line 3: it needs CUDA, which is not here (it imports triton): judge it there";
  EXPECT_EQ(TroubleAsError(trouble, "p").kind, ErrorKind::kEnvironment);
}

TEST(Blame, TheLogKeepsTheEndOfWhatACandidatePrinted) {
  Verdict verdict;
  AddPrinted("", &verdict);
  EXPECT_EQ(verdict.log, "");
  verdict.log = "a warning";
  AddPrinted("hello\n", &verdict);
  EXPECT_EQ(verdict.log, "a warning\n" + std::string(kPrintedHeading) + "hello\n");
  AddPrinted(std::string(100'000, 'x') + "\nthe end\n", &verdict);
  EXPECT_LT(verdict.log.size(), 20'000u);
  EXPECT_TRUE(verdict.log.ends_with("x\nthe end\n"));
}

}  // namespace
}  // namespace assay
