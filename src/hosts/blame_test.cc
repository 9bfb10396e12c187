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
  EXPECT_EQ(CodeOfText("CUDA error: CUDA-capable device(s) is/are busy or unavailable"),
            ErrorCode::kDeviceBusy);
  EXPECT_EQ(CodeOfText("CUDA error: out of memory"), ErrorCode::kDeviceMemory);
  EXPECT_EQ(CodeOfText("DefaultCPUAllocator: can't allocate memory"), ErrorCode::kMemory);
  EXPECT_EQ(CodeOfText("no CUDA"), ErrorCode::kNone);
  EXPECT_FALSE(MayLackMemory(ErrorCode::kNone));
  EXPECT_FALSE(MayLackMemory(ErrorCode::kTooLarge));
  for (const ErrorCode code :
       {ErrorCode::kMemory, ErrorCode::kDeviceMemory, ErrorCode::kDeviceBusy})
    EXPECT_TRUE(MayLackMemory(code));
  EXPECT_TRUE(BuilderMayLackMemory("CUDNN_STATUS_NOT_INITIALIZED"));
  EXPECT_FALSE(SaysOutOfMemory("line 3: NameError: name 'memory' is not defined"));
}

TEST(Blame, ACandidateThatNeedsWhatIsNotHereGetsNoVerdict) {
  HostTrouble trouble;
  trouble.kind = HostTrouble::Kind::kFailed;
  trouble.failure = wire::Failure::kCandidateNotHere;
  trouble.message = "in whatever words";
  Verdict verdict;
  const auto blamed = Blame(trouble, "loading", {}, &verdict);
  ASSERT_FALSE(blamed);
  EXPECT_EQ(blamed.error().kind, ErrorKind::kUnjudged);
  trouble.failure = wire::Failure::kCandidateLoad;
  trouble.message = "candidate.py line 3: it needs CUDA, which is not here (so it says)";
  EXPECT_TRUE(Blame(trouble, "loading", {}, &verdict));
  EXPECT_EQ(verdict.outcome, Outcome::kBuildFailed);
  EXPECT_EQ(verdict.line, 3);
  // A problem file that needs it is not wrong either.
  trouble.failure = wire::Failure::kProblemLoad;
  EXPECT_EQ(TroubleAsError(trouble, "p").kind, ErrorKind::kUsage);
  trouble.failure = wire::Failure::kProblemNotHere;
  trouble.message = "in whatever words";
  EXPECT_EQ(TroubleAsError(trouble, "p").kind, ErrorKind::kEnvironment);
  EXPECT_EQ(TroubleAsError(trouble, "p").code, ErrorCode::kNotHere);
}

TEST(Blame, AMemoryLimitIsToldFromADevicesMemoryByItsCode) {
  HostTrouble trouble;
  trouble.kind = HostTrouble::Kind::kOutOfMemory;
  trouble.message = "its memory limit, by its words alone";
  Verdict verdict;
  ASSERT_TRUE(Blame(trouble, "gate 1", {}, &verdict));
  EXPECT_EQ(verdict.outcome, Outcome::kOutOfMemory);
  EXPECT_EQ(verdict.cause, Cause::kNone);
  trouble.at_limit = true;
  trouble.message = "in other words";
  ASSERT_TRUE(Blame(trouble, "gate 1", {}, &verdict));
  EXPECT_EQ(verdict.cause, Cause::kMemoryLimit);
}

TEST(Blame, ABuildThatMayHaveLackedMemoryHasThatForItsCause) {
  Verdict verdict;
  FailToBuild("CUDA error: out of memory", 7, &verdict);
  EXPECT_EQ(verdict.outcome, Outcome::kBuildFailed);
  EXPECT_EQ(verdict.cause, Cause::kScarceMemory);
  EXPECT_EQ(verdict.line, 7);
  FailToBuild("'exqf' was not declared in this scope", 0, &verdict);
  EXPECT_EQ(verdict.cause, Cause::kNone);
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
