// Reads machine code that the real compiler makes, in the real sandbox.
#include "builders/native_code.h"

#include <gmock/gmock.h>
#include <unistd.h>

namespace assay {
namespace {

NativeCode CodeOf(const std::string& source) {
  const auto candidate = CandidateFromText("mine.cpp", source);
  EXPECT_TRUE(candidate) << candidate.error().message;
  auto code = ReadNativeCode(*candidate, {}, {});
  EXPECT_TRUE(code) << code.error().message;
  return code.value_or(NativeCode());
}

class NativeCodeTest : public testing::Test {
 protected:
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "other processors have no such listing";
#endif
    if (::access("/usr/bin/objdump", X_OK) != 0) GTEST_SKIP() << "needs objdump";
  }
};

TEST_F(NativeCodeTest, FindsTheLoopOfAVectorisedKernel) {
  const NativeCode code = CodeOf(R"(#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const float, 1> x, assay::Tensor<float, 1> y) {
  const float* from = x.data();
  float* to = y.data();
  const int64_t count = x.size(0);
#pragma omp parallel for simd
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] * from[i] + 1.0f;
}
)");
  ASSERT_TRUE(code.loop);
  EXPECT_THAT(code.loop->first_line, testing::AnyOf(6, 7));  // the pragma, or the loop
  EXPECT_EQ(code.loop->last_line, 7);
  EXPECT_GE(code.loop->vector_bits, 128);
  EXPECT_TRUE(code.starts_threads);
  EXPECT_GE(code.machine_vector_bits, 128);
}

TEST_F(NativeCodeTest, FindsCallsInAnOrderedSum) {
  const NativeCode code = CodeOf(R"(#include <assay/kernel.h>
#include <math.h>
ASSAY_KERNEL(assay::Tensor<const float, 1> x, assay::Tensor<float, 1> y) {
  float sum = 0;
  for (int64_t i = 0; i < x.size(0); ++i)
    sum += expf(x(i));
  y(0) = sum;
}
)");
  ASSERT_TRUE(code.loop);
  EXPECT_EQ(code.loop->last_line, 6);
  EXPECT_THAT(code.loop->calls, testing::ElementsAre("expf"));
  EXPECT_FALSE(code.starts_threads);
}

TEST_F(NativeCodeTest, IsEmptyForWhatDoesNotBuild) {
  EXPECT_FALSE(CodeOf("#include <assay/kernel.h>\nASSAY_KERNEL(").loop);
}

}  // namespace
}  // namespace assay
