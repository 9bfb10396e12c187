#include "report/probe_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/sample_verdicts.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Probes : public ::testing::Test {
 protected:
  Probes() {
    verdict_.probe.emplace().threads = 4;
    verdict_.probe->time_ns = 1000;
    verdict_.probe->no_counts = "not allowed here: /proc/sys/kernel/perf_event_paranoid is 4";
  }
  std::string At(double share, double time_ns) {
    verdict_.probe->smaller = SmallerProbe{"ROWS = 32", 100, share, time_ns};
    return ProbeText(verdict_);
  }
  std::string OnOneThread(double time_ns) {
    verdict_.probe->one_thread_ns = time_ns;
    return ProbeText(verdict_);
  }
  std::string Counted(double cycles, double instructions, double misses) {
    verdict_.probe->counts = CallCounts{cycles, instructions, misses};
    return ProbeText(verdict_);
  }
  Verdict verdict_ = SampleVerdict(Outcome::kFaster);
};

TEST_F(Probes, HalfTheSizeTellsOverheadFromWork) {
  EXPECT_THAT(At(0.5, 980),
              HasSubstr("50% of the data (ROWS = 32) take 98% of the time: overhead"));
  EXPECT_THAT(At(0.5, 700), HasSubstr("70% of the time: about 40% of the time does not depend"));
  EXPECT_THAT(At(0.5, 510), HasSubstr("goes with the work"));
  EXPECT_THAT(At(0.25, 240), HasSubstr("25% of the data"));
  EXPECT_THAT(At(0.5, 250), HasSubstr("the time grows faster than the data"));
  EXPECT_THAT(At(0.5, 5000), Not(HasSubstr("of the data")));
}

TEST_F(Probes, OneThreadTellsWhatThreadsAreWorth) {
  EXPECT_THAT(OnOneThread(3800),
              HasSubstr("One thread takes 3.8 times as long as 4: threads share"));
  EXPECT_THAT(OnOneThread(2200), HasSubstr("threads help in part"));
  EXPECT_THAT(OnOneThread(1020), HasSubstr("threads gain next to nothing"));
}

TEST_F(Probes, FaultsAndCounters) {
  EXPECT_THAT(ProbeText(verdict_), AllOf(HasSubstr("a warm call: none"),
                                         HasSubstr("Counters of the processor: not allowed here"),
                                         Not(HasSubstr("of the data"))));
  verdict_.probe->minor_faults = 512;
  EXPECT_THAT(ProbeText(verdict_), HasSubstr("512 (0 of them wait for a disk)"));
  EXPECT_THAT(Counted(1000, 3000, 1), HasSubstr("3 instructions a cycle, 0.33 misses"));
  EXPECT_THAT(Counted(1000, 300, 30), HasSubstr("it waits for memory"));
  EXPECT_THAT(Counted(1000, 300, 0), HasSubstr("it waits, and not for memory"));
}

TEST_F(Probes, WhatFailedIsLeftOut) {
  verdict_.probe->failure = "its host died";
  EXPECT_EQ(ProbeText(verdict_), "");
  verdict_.probe.reset();
  EXPECT_EQ(ProbeText(verdict_), "");
}

}  // namespace
}  // namespace assay
