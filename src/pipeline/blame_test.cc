#include "pipeline/blame.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Verdict Blamed(wire::Failure failure, const char* message) {
  HostTrouble trouble;
  trouble.kind = HostTrouble::Kind::kFailed;
  trouble.failure = failure;
  trouble.message = message;
  Verdict verdict;
  EXPECT_TRUE(Blame(trouble, "loading", nullptr, &verdict).has_value());
  return verdict;
}

TEST(Blame, MemoryThatWasNotToBeHadAtLoadingIsNoFailedBuild) {
  const auto outcome = [](const char* message) {
    return Blamed(wire::Failure::kCandidateLoad, message).outcome;
  };
  EXPECT_EQ(outcome("scratch buffer 1 of 40 bytes: CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
            Outcome::kOutOfMemory);
  EXPECT_EQ(outcome("line 4: OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB."),
            Outcome::kOutOfMemory);
  EXPECT_EQ(outcome("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED"), Outcome::kOutOfMemory);
  EXPECT_EQ(outcome("line 3: NameError: name 'memory' is not defined"), Outcome::kBuildFailed);
}

}  // namespace
}  // namespace assay
