#include "wire/doorbell.h"

#include <gtest/gtest.h>

#include <thread>

#include "wire/block_loop.h"

namespace assay::wire {
namespace {

// Runs the host's half in a thread against a judge's half written out here, in both waiting modes.
void RunBlocks(bool spin) {
  static Control control;
  static Report report;
  control = Control{};
  report = Report{};
  control.spin = spin;
  uint32_t calls_run = 0;
  std::thread host([&] {
    BlockLoop loop{&control, &report, 0, 0, nullptr};
    while (AwaitArmed(loop)) {
      AwaitGo(loop);
      for (uint32_t i = 0; i < loop.call_count; ++i) calls_run += loop.order[i];
      SayDone(loop, 5);
    }
  });
  for (uint32_t block = 1; block <= 20; ++block) {
    __atomic_store_n(&control.call_count, 0, __ATOMIC_RELEASE);
    Ring(control.armed, block, true);
    AwaitValue(report.ready, block, 0);
    control.call_count = 2;
    control.order[0] = 1;
    control.order[1] = 10;
    Ring(control.go, block, true);
    AwaitValue(report.done, block, 0);
    EXPECT_EQ(report.settle_ns, 5u);
  }
  __atomic_store_n(&control.call_count, kLeaveBlocks, __ATOMIC_RELEASE);
  Ring(control.armed, 21, true);
  host.join();
  EXPECT_EQ(calls_run, 20u * 11);
}

TEST(BlockLoop, RunsTheNamedSlotsOnFutexes) { RunBlocks(false); }
TEST(BlockLoop, RunsTheNamedSlotsSpinning) { RunBlocks(true); }

}  // namespace
}  // namespace assay::wire
