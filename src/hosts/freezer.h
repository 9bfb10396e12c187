// Puts a host to sleep and proves that it slept: SIGSTOP, every thread seen stopped, and the CPU
// time of the whole process exactly the same when it is woken. Nothing that a process can do keeps
// it running through SIGSTOP; what could wake it again (a timer that sends SIGCONT) shows in the
// CPU time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

namespace assay {

// CPU time that all threads of the process used so far, exited ones included [ns]; nullopt when it
// is gone.
std::optional<int64_t> ProcessCpuNs(pid_t pid);

// For each thread, the time so far that it was ready to run but waited for a core [ns]: what other
// processes cost it. A thread that sleeps does not wait in this sense.
using ThreadWaits = std::map<pid_t, int64_t>;
ThreadWaits ReadThreadWaits(pid_t pid);
// The longest that one thread waited between two readings: threads that work together wait for the
// last.
int64_t LongestWaitNs(const ThreadWaits& before, const ThreadWaits& after);
// Of its first thread alone.
int64_t MainThreadWaitNs(pid_t pid);
// The calling thread's own, so far.
int64_t OwnWaitNs();

// Page faults of the process so far: a program asks the kernel for memory until its allocator has
// found enough. 0 when it is gone.
int64_t ProcessPageFaults(pid_t pid);

class Freezer {
 public:
  // `stops` false: it is never stopped, and its sleep is taken on its word.
  explicit Freezer(pid_t pid, bool stops = true) : pid_(pid), stops_(stops) {}

  // Stops the process and waits until each of its threads is stopped. False: it is gone, or did not
  // stop within ten seconds.
  bool Freeze();
  // True when the process used no CPU time since Freeze() returned. Where it did, the time is
  // counted from now on: what was filled meanwhile is void and must be filled again.
  bool SleptSinceFreeze();
  // CPU time that the process used since Freeze(), thawed or not [ns].
  int64_t CpuSinceFreezeNs() const;
  void Thaw();
  bool frozen() const { return frozen_; }
  // CPU time of the process when it was stopped last [ns].
  int64_t cpu_ns() const { return cpu_ns_; }

 private:
  pid_t pid_;
  bool stops_;
  bool frozen_ = false;
  int64_t cpu_ns_ = 0;
};

}  // namespace assay
