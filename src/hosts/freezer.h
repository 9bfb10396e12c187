// Puts a host to sleep and proves that it slept: SIGSTOP, every thread seen stopped, and the same
// CPU time of the whole process when it is woken. No process can run through SIGSTOP. If something
// wakes it again (a timer that sends SIGCONT), its CPU time shows it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

namespace assay {

// Returns the CPU time of all threads of the process so far, with exited ones [ns]; nullopt if the
// process is gone.
std::optional<int64_t> ProcessCpuNs(pid_t pid);

// For each thread, the time so far that it was ready to run but waited for a core [ns]: the cost of
// other processes. Sleep is not such a wait.
using ThreadWaits = std::map<pid_t, int64_t>;
ThreadWaits ReadThreadWaits(pid_t pid);
// Returns the longest wait of one thread between two readings [ns]: threads that work together wait
// for the last.
int64_t LongestWaitNs(const ThreadWaits& before, const ThreadWaits& after);
// Returns the part of that wait which others can have caused: threads that use up the time of their
// process's cores wait for each other. `cores_ns`: that time; `used_ns`: the CPU time of all [ns].
int64_t WaitForOthersNs(int64_t longest_ns, int64_t cores_ns, int64_t used_ns);
// Returns the wait of the process's first thread so far [ns].
int64_t MainThreadWaitNs(pid_t pid);
// Returns the calling thread's own wait so far [ns].
int64_t OwnWaitNs();

// The page faults of the process so far; 0 if it is gone. A program asks the kernel for memory
// until its allocator has enough.
struct PageFaults {
  int64_t minor = 0, major = 0;  // major ones waited for a disk
};
PageFaults ReadPageFaults(pid_t pid);
// Returns all of them.
int64_t ProcessPageFaults(pid_t pid);

class Freezer {
 public:
  // `stops` false: the process is never stopped, and its sleep is not proven.
  explicit Freezer(pid_t pid, bool stops = true) : pid_(pid), stops_(stops) {}

  // Stops the process and waits until each of its threads is stopped. Returns false if it is gone,
  // or does not stop within ten seconds.
  bool Freeze();
  // Returns true if the process used no CPU time since Freeze() returned. If it did, counts from
  // now on; values that the judge filled in meanwhile are void and must be filled again.
  bool SleptSinceFreeze();
  // Returns the CPU time that the process used since Freeze(), thawed or not [ns].
  int64_t CpuSinceFreezeNs() const;
  void Thaw();
  bool frozen() const { return frozen_; }
  // CPU time of the process at its last stop [ns].
  int64_t cpu_ns() const { return cpu_ns_; }

 private:
  pid_t pid_;
  bool stops_;
  bool frozen_ = false;
  int64_t cpu_ns_ = 0;
};

}  // namespace assay
