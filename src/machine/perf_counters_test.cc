#include "machine/perf_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <thread>

#include "base/clock.h"

namespace assay {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

void Work(int64_t ns) {
  for (const int64_t end_ns = MonotonicNs() + ns; MonotonicNs() < end_ns;) {
  }
}

// The kernel's own clock of a task is there where the processor's counters are not.
TEST(PerfCounters, CountsAllThreadsFromThenOn) {
  const auto counters =
      PerfCounters::Open(::getpid(), {{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK}});
  if (!counters) GTEST_SKIP() << counters.error().message;
  Work(2'000'000);
  const double before = counters->Read().at(0);
  EXPECT_GT(before, 0);
  std::thread other([] { Work(2'000'000); });
  other.join();
  EXPECT_GT(counters->Read().at(0), before);
}

TEST(PerfCounters, SaysWhyTheProcessorsAreNotThere) {
  const auto counters = PerfCounters::Open(::getpid(), ProcessorEvents());
  if (counters) {
    EXPECT_EQ(counters->Read().size(), 3u);
    return;
  }
  EXPECT_THAT(counters.error().message,
              AnyOf(HasSubstr("shows no counters"), HasSubstr("not allowed here"),
                    HasSubstr("perf_event_open")));
}

TEST(PerfCounters, AProcessThatIsGoneHasNone) {
  EXPECT_FALSE(PerfCounters::Open(1 << 30, ProcessorEvents()));
}

}  // namespace
}  // namespace assay
