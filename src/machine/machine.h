// Facts of this machine that judging needs, and binding to its cores.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/verdict.h"

namespace assay {

uint64_t TotalMemoryBytes();
uint64_t AvailableMemoryBytes();  // MemAvailable
// Returns the memory of this process and all its descendants that no others share [bytes]: the
// anonymous pages of each, and this process's shared ones.
uint64_t ProcessTreeBytes();
// CPUs that this process may use, ascending; read at the first call, which must come before any
// thread is bound.
const std::vector<int>& UsableCpus();
// CPUs on which pairs of hosts are measured: all usable ones, unless some are set apart for it,
// before any thread starts. Those need not be usable for anything else.
const std::vector<int>& MeasuringCpus();
void SetMeasuringCpus(std::vector<int> cpus);
// CPUs on which hosts start that are measured on `pair_cpus` later.
const std::vector<int>& StartingCpus(const std::vector<int>& pair_cpus);

// Threads for each side if the user names none: all cores but one, which is left to the judge and
// the system. At least one; at most two if the work is on a device.
int DefaultThreads(bool on_device = false);
// Threads of a candidate in the correctness gate: those that it is timed with, but at least two, so
// that a race between threads can show.
int ThreadsOfCorrectness(int threads);

// The cores of a pair's hosts, and the judge's. They rotate from pair to pair, so that no core's
// bias stays.
struct CorePlan {
  std::vector<int> hosts;
  std::vector<int> judge;  // disjoint from `hosts` if there are enough cores, else the same
  bool judge_has_own_core = false;
};
CorePlan PlanCores(const std::vector<int>& usable, int threads, int pair_index);

// Binds the calling thread. Failure is ignored: it costs noise, never truth.
void BindThisThread(const std::vector<int>& cpus);
// Binds every thread of a process; threads that it starts later inherit it. Returns false if one
// could not be bound.
bool BindProcess(pid_t pid, const std::vector<int>& cpus);
// Binds the process's first thread alone. Returns false if it could not be bound.
bool BindFirstThread(pid_t pid, int cpu);

// Fills in processor name, cores and kernel; the caller sets threads and isolation.
Machine DescribeMachine();

// Binds the calling thread; on destruction the thread may use every usable core again.
class BoundThread {
 public:
  explicit BoundThread(const std::vector<int>& cpus) { BindThisThread(cpus); }
  BoundThread(const BoundThread&) = delete;
  BoundThread& operator=(const BoundThread&) = delete;
  ~BoundThread() { BindThisThread(UsableCpus()); }
};

}  // namespace assay
