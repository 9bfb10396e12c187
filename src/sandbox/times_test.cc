// What a sandbox costs. Prints, asserts nothing about time, and runs only when asked:
//   sandbox_test --gtest_also_run_disabled_tests --gtest_filter='SandboxTimes*'
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "base/clock.h"
#include "sandbox/sandbox_testing.h"
#include "sandbox/self_test.h"

namespace assay {
namespace {

void PrintTimes(const char* what, std::vector<double> times_ms) {
  std::sort(times_ms.begin(), times_ms.end());
  std::printf("%-44s median %6.2f ms   worst %6.2f ms   of %zu\n", what,
              times_ms[times_ms.size() / 2], times_ms.back(), times_ms.size());
}

double Milliseconds(int64_t begin_ns) {
  return static_cast<double>(MonotonicNs() - begin_ns) / 1e6;
}

TEST(SandboxTimes, DISABLED_OfOneSandbox) {
  int64_t begin_ns = MonotonicNs();
  ASSERT_TRUE(ProbeSandbox().available) << ProbeSandbox().missing;
  std::printf("%s\nprobe, once a process %31.2f ms\n", ProbeSandbox().isolation.c_str(),
              Milliseconds(begin_ns));
  std::vector<double> self_tests;
  for (int i = 0; i < 50; ++i) {
    begin_ns = MonotonicNs();
    ASSERT_TRUE(RunSelfTest(ProbedSandboxTools()));
    self_tests.push_back(Milliseconds(begin_ns));
  }
  PrintTimes("self-test, most of the probe", self_tests);
  for (const int pause_ms : {0, 100}) {
    std::vector<double> starts, waits, ends;
    for (int i = 0; i < 50; ++i) {
      ::poll(nullptr, 0, pause_ms);
      SandboxRequest request;
      request.arguments = {"/bin/true"};
      begin_ns = MonotonicNs();
      auto sandbox = Sandbox::Start(request);
      starts.push_back(Milliseconds(begin_ns));
      ASSERT_TRUE(sandbox);
      begin_ns = MonotonicNs();
      pollfd ended{sandbox->pidfd(), POLLIN, 0};
      ::poll(&ended, 1, 10'000);
      waits.push_back(Milliseconds(begin_ns));
      begin_ns = MonotonicNs();
      ASSERT_TRUE(sandbox->Wait(Deadline::AfterSeconds(10)));
      ends.push_back(Milliseconds(begin_ns));
    }
    std::printf("with a pause of %d ms before each:\n", pause_ms);
    PrintTimes("  start: request to command executed", starts);
    PrintTimes("  command: executed to bubblewrap ended", waits);
    PrintTimes("  end: to every process gone, groups removed", ends);
  }
}

TEST(SandboxTimes, DISABLED_OfKillingFiftyDaemons) {
  const std::string marker = "assay-test-marker-" + std::to_string(::getpid());
  std::vector<double> times;
  for (int round = 0; round < 20; ++round) {
    SandboxRequest request = ProbeRequest({"daemonise_and_hang", "50", marker});
    request.may_start_processes = true;
    request.limits.cpu_seconds = 20;
    auto sandbox = Sandbox::Start(request);
    ASSERT_TRUE(sandbox);
    ASSERT_TRUE(AwaitOutput(*sandbox, "all started"));
    ASSERT_GE(ProcessesWith(marker).size(), 51u);
    const int64_t begin_ns = MonotonicNs();
    sandbox->Kill();
    ASSERT_TRUE(sandbox->Wait(Deadline::AfterSeconds(10)));
    times.push_back(Milliseconds(begin_ns));
    EXPECT_THAT(ProcessesWith(marker), ::testing::IsEmpty());
  }
  PrintTimes("kill of 50 daemonised spinners", times);
}

}  // namespace
}  // namespace assay
