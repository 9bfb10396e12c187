#include "hosts/freezer.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

namespace assay {
namespace {

// A child that runs `function` for ever, killed at the end of the test.
class Child {
 public:
  explicit Child(void (*function)()) : pid_(::fork()) {
    if (pid_ == 0) {
      function();
      ::_exit(0);
    }
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

  // Waits until the child has used some CPU time.
  void AwaitRunning() const {
    const Deadline deadline = Deadline::AfterSeconds(10);
    while (ProcessCpuNs(pid_).value_or(0) < 20'000'000 && !deadline.Expired()) {
    }
  }

 private:
  pid_t pid_;
};

void Spin() {
  while (true) __asm__ volatile("");
}

void SpinInThreads() {
  pthread_t thread;
  for (int i = 0; i < 3; ++i)
    ::pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          Spin();
          return nullptr;
        },
        nullptr);
  Spin();
}

void BusyWait(double seconds) {
  const Deadline deadline = Deadline::AfterSeconds(seconds);
  while (!deadline.Expired()) {
  }
}

// Once, on a virtual machine, CPU time still went on when it had been looked at for a millisecond;
// the core may have been taken away just then. A judge fills the slots again and looks a second
// time; so does this.
TEST(Freezer, ASpinningProcessSleepsUntilItIsThawed) {
  const Child child(Spin);
  child.AwaitRunning();
  Freezer freezer(child.pid());
  int seen_late = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(freezer.Freeze());
    BusyWait(0.01);
    if (!freezer.SleptSinceFreeze()) {
      ++seen_late;
      BusyWait(0.01);
      EXPECT_TRUE(freezer.SleptSinceFreeze());
    }
    freezer.Thaw();
    BusyWait(0.002);
  }
  EXPECT_LE(seen_late, 5);
}

TEST(Freezer, AllThreadsSleep) {
  const Child child(SpinInThreads);
  child.AwaitRunning();
  Freezer freezer(child.pid());
  ASSERT_TRUE(freezer.Freeze());
  BusyWait(0.05);
  EXPECT_TRUE(freezer.SleptSinceFreeze() || (BusyWait(0.05), freezer.SleptSinceFreeze()));
}

TEST(Freezer, AProcessThatIsWokenBehindItsBackIsSeenOnce) {
  const Child child(Spin);
  child.AwaitRunning();
  Freezer freezer(child.pid());
  ASSERT_TRUE(freezer.Freeze());
  ::kill(child.pid(), SIGCONT);
  BusyWait(0.05);
  ::kill(child.pid(), SIGSTOP);
  BusyWait(0.05);
  EXPECT_FALSE(freezer.SleptSinceFreeze());
  EXPECT_TRUE(freezer.SleptSinceFreeze()) << "time is counted from the last look";
}

// Fifteen threads that each wait a little for their core were taken for a disturbed machine: their
// waits were added up, though they ran side by side.
TEST(ThreadWaits, TheLongestOfSeveralThreadsCounts) {
  const ThreadWaits before{{10, 100}, {11, 5'000}}, after{{10, 400}, {11, 5'100}, {12, 250}};
  EXPECT_EQ(LongestWaitNs(before, after), 300);
  EXPECT_EQ(LongestWaitNs(after, after), 0);
}

TEST(ThreadWaits, AThreadThatSharesItsCoreWaits) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(::sched_getcpu()), &one);
  cpu_set_t all;
  ::sched_getaffinity(0, sizeof all, &all);
  ::sched_setaffinity(0, sizeof one, &one);
  const Child first(Spin), second(Spin);
  ::sched_setaffinity(0, sizeof all, &all);
  first.AwaitRunning();
  const ThreadWaits before = ReadThreadWaits(first.pid());
  BusyWait(0.3);
  const ThreadWaits after = ReadThreadWaits(first.pid());
  ASSERT_TRUE(after.contains(first.pid()));  // a sanitizer may have a thread of its own beside it
  EXPECT_GT(LongestWaitNs(before, after), 50'000'000);
}

// Two threads of a candidate on one core were taken for a disturbed machine.
TEST(ThreadWaits, ThreadsOfOneProcessWaitForEachOther) {
  EXPECT_EQ(WaitForOthersNs(9'000, 20'000, 19'900), 100);
  EXPECT_EQ(WaitForOthersNs(9'000, 20'000, 20'100), 0);
  EXPECT_EQ(WaitForOthersNs(300, 20'000, 12'000), 300) << "it slept for the rest";
}

TEST(Freezer, AProcessThatIsGoneCannotBeFrozen) {
  pid_t pid;
  {
    const Child child(Spin);
    pid = child.pid();
  }
  EXPECT_FALSE(Freezer(pid).Freeze());
}

}  // namespace
}  // namespace assay
