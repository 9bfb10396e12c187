#include "machine/machine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

namespace assay {
namespace {

std::vector<int> CpusOf(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(thread, sizeof set, &set);
  std::vector<int> cpus;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(static_cast<int>(cpu));
  return cpus;
}

TEST(ThreadsOfCorrectness, AreTwoAtLeast) {
  EXPECT_EQ(ThreadsOfCorrectness(1), 2);
  EXPECT_EQ(ThreadsOfCorrectness(5), 5);
}

TEST(PlanCores, TheJudgeAndTheHostsShareNoCoreWhereThereAreEnough) {
  for (int pair = 0; pair < 9; ++pair) {
    const CorePlan plan = PlanCores({2, 3, 5, 7}, 3, pair);
    ASSERT_EQ(plan.hosts.size(), 3U);
    ASSERT_EQ(plan.judge.size(), 1U);
    EXPECT_TRUE(plan.judge_has_own_core);
    for (const int cpu : plan.hosts) EXPECT_NE(cpu, plan.judge[0]);
  }
  EXPECT_NE(PlanCores({0, 1}, 1, 0).hosts, PlanCores({0, 1}, 1, 1).hosts) << "cores are swapped";
  EXPECT_FALSE(PlanCores({4}, 1, 0).judge_has_own_core);
}

// A reference host that an earlier candidate's pair 15 had started was used for pair 6, whose judge
// spins on the core that host was bound to: it took four times as long, and the candidate looked
// four times as fast. So the hosts of a pair are bound anew, all their threads.
TEST(BindProcess, EveryThreadOfTheProcessMoves) {
  const std::vector<int>& usable = UsableCpus();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread other([] { ::pause(); });
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  for (const std::vector<int>& cpus : {std::vector<int>{usable.back()}, usable}) {
    EXPECT_TRUE(BindProcess(child, cpus));
    int threads = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(child) + "/task")) {
      EXPECT_EQ(CpusOf(std::stoi(entry.path().filename().string())), cpus);
      ++threads;
    }
    EXPECT_GE(threads, 2);  // a sanitizer adds its own
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(BindProcess(child, usable)) << "it is gone";
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace assay
