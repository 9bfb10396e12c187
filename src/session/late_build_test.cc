#include "session/late_build.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

BuiltCandidate Built(CandidateForm form, const char* failure, const char* log) {
  BuiltCandidate built;
  built.source.form = form;
  if (*failure != '\0') built.failure = failure;
  built.log = log;
  return built;
}

// A candidate that took the device's memory in its builder made the builds beside it fail.
TEST(LateBuild, WhatFailsForWantOfMemoryIsTriedAgain) {
  constexpr auto kPython = CandidateForm::kPython;
  EXPECT_TRUE(MayHaveLackedMemory(
      Built(kPython, "PyTorch 2.11 cannot use the CUDA device: CUDA error: out of memory", "")));
  // So one builder was answered as another one took the memory; the same file was `crashed`, as it
  // should be, in all later runs.
  EXPECT_TRUE(MayHaveLackedMemory(
      Built(kPython,
            "PyTorch 2.11 cannot use the CUDA device: AcceleratorError: CUDA error: CUDA-capable "
            "device(s) is/are busy or unavailable",
            "")));
  EXPECT_TRUE(MayHaveLackedMemory(
      Built(kPython, "", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB")));
  EXPECT_TRUE(MayHaveLackedMemory(
      Built(kPython, "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED", "")));
  EXPECT_FALSE(MayHaveLackedMemory(Built(kPython, "line 3: SyntaxError", "")));
  EXPECT_FALSE(MayHaveLackedMemory(Built(kPython, "", "")));
  EXPECT_FALSE(MayHaveLackedMemory(Built(CandidateForm::kNative, "out of memory", "")));
}

}  // namespace
}  // namespace assay
