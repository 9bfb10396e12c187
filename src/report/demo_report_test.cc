#include "report/demo_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/sample_verdicts.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(DemoReport, TheGapNamesBothShares) {
  const std::string text = RenderGap(SampleVerdict(Outcome::kFaster), {});
  EXPECT_THAT(text, HasSubstr("80% of the peak"));
  EXPECT_THAT(text, HasSubstr("31.9% of the peak"));
  EXPECT_THAT(text, HasSubstr("92 GFLOP/s of avx512f, 2 threads"));
  EXPECT_THAT(text, HasSubstr("this machine"));
}

TEST(DemoReport, TheGapOnAGpuIsThatGpus) {
  const std::string text = RenderGap(SampleGpuVerdict(), {.width = 100});
  EXPECT_THAT(text, HasSubstr("this GPU"));
  EXPECT_THAT(text, HasSubstr("of avx512f, NVIDIA H200"));
  EXPECT_THAT(text, Not(HasSubstr("threads")));
}

TEST(DemoReport, FirstCallsShowBothSpeedups) {
  FirstCalls calls;
  calls.reference_ns.assign(30, 4e6);
  calls.candidate_ns.assign(30, 1e6);
  calls.candidate_ns[0] = 8e6;
  calls.candidate = "one_read.cu";
  const std::string text = RenderFirstCalls(calls, {});
  EXPECT_THAT(text, HasSubstr("one_read.cu"));
  EXPECT_THAT(text, HasSubstr("0.500x"));
  EXPECT_THAT(text, HasSubstr("4.00x"));
}

TEST(DemoReport, OnlineSoftmaxAgrees) {
  const std::string text = RenderOnlineSoftmax({{1, 3}, {2, 5}}, {});
  EXPECT_THAT(text, HasSubstr("maximum 3, sum 1.135335"));
  EXPECT_THAT(text, HasSubstr("maximum 5, sum 1.203438"));
  EXPECT_THAT(text, HasSubstr("they agree"));
}

}  // namespace
}  // namespace assay
