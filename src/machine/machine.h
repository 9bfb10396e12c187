// Facts of this machine that judging needs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/verdict.h"

namespace assay {

uint64_t TotalMemoryBytes();
uint64_t AvailableMemoryBytes();
// Memory of this process and of all below it that nobody else has: anonymous pages of each, and
// this one's shared ones [bytes].
uint64_t ProcessTreeBytes();       // MemAvailable, and the cgroup's limit where that is lower
const std::vector<int>& UsableCpus();  // that this process could use when it started, ascending

// Threads for each side when the user names none: one core stays for the judge and the system where
// there are two. Where the work is on a device, two.
int DefaultThreads(bool on_device = false);

// Which cores a pair's hosts run on, rotated from pair to pair so that no core's bias stays, and
// which the judge keeps.
struct CorePlan {
  std::vector<int> hosts;
  std::vector<int> judge;  // disjoint from hosts where there are cores enough, else all
  bool judge_has_own_core = false;
};
CorePlan PlanCores(const std::vector<int>& usable, int threads, int pair_index);

// Binds the calling thread. Failure is ignored: it costs noise, never truth.
void BindThisThread(const std::vector<int>& cpus);
// Binds every thread that a process has; threads it starts later inherit it. False when one could
// not be bound.
bool BindProcess(pid_t pid, const std::vector<int>& cpus);

// Processor name, cores, kernel; threads and isolation are the caller's to set.
Machine DescribeMachine();

// Binds this thread as long as it lives; then it may use every core again.
class BoundThread {
 public:
  explicit BoundThread(const std::vector<int>& cpus) { BindThisThread(cpus); }
  BoundThread(const BoundThread&) = delete;
  BoundThread& operator=(const BoundThread&) = delete;
  ~BoundThread() { BindThisThread(UsableCpus()); }
};

}  // namespace assay
