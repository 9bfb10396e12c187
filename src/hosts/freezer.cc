#include "hosts/freezer.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/defences.h"
#include "base/files.h"
#include "base/unique_fd.h"

namespace assay {
namespace {

enum class ThreadsState { kStopped, kRunning, kGone };

// State letter of one thread: the field after the name, which stands in parentheses and may hold
// any character.
char ThreadState(int task_folder_fd, const char* thread) {
  char path[300];
  std::snprintf(path, sizeof path, "%s/stat", thread);
  UniqueFd fd(::openat(task_folder_fd, path, O_RDONLY | O_CLOEXEC));
  if (!fd) return 'X';  // the thread ended meanwhile
  char text[512];
  const ssize_t count = ::read(fd.get(), text, sizeof text - 1);
  if (count <= 0) return 'X';
  text[count] = '\0';
  const char* name_end = std::strrchr(text, ')');
  return name_end != nullptr && name_end[1] == ' ' ? name_end[2] : 'X';
}

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

Folder OpenThreads(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task", static_cast<int>(pid));
  return Folder(::opendir(path), &::closedir);
}

// Run-queue wait of one thread: the second number of its schedstat, 0 where the kernel keeps none.
int64_t ThreadWaitNs(int task_folder_fd, const char* thread) {
  char path[300];
  std::snprintf(path, sizeof path, "%s/schedstat", thread);
  UniqueFd fd(::openat(task_folder_fd, path, O_RDONLY | O_CLOEXEC));
  char text[128];
  const ssize_t count = fd ? ::read(fd.get(), text, sizeof text - 1) : 0;
  if (count <= 0) return 0;
  text[count] = '\0';
  long long run_ns = 0, wait_ns = 0;
  return std::sscanf(text, "%lld %lld", &run_ns, &wait_ns) == 2 ? wait_ns : 0;
}

ThreadsState AllThreads(pid_t pid) {
  const Folder folder = OpenThreads(pid);
  if (!folder) return ThreadsState::kGone;
  int stopped = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    switch (ThreadState(::dirfd(folder.get()), entry->d_name)) {
      case 'T':
        ++stopped;
        break;
      case 'X':
      case 'Z':
        break;
      default:
        return ThreadsState::kRunning;
    }
  }
  return stopped > 0 ? ThreadsState::kStopped : ThreadsState::kGone;
}

}  // namespace

std::optional<int64_t> ProcessCpuNs(pid_t pid) {
  clockid_t clock;
  timespec time;
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

namespace {

// A thread shows as stopped a moment before it leaves its core and its CPU time is final. The
// kernel waits for that before it tells a stopped thread's system call. False: it does not tell.
bool HaveLeftTheirCores(pid_t pid) {
  const Folder folder = OpenThreads(pid);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    if (entry->d_name[0] == '.') continue;
    char path[300], text[256];
    std::snprintf(path, sizeof path, "%s/syscall", entry->d_name);
    const UniqueFd fd(::openat(::dirfd(folder.get()), path, O_RDONLY | O_CLOEXEC));
    const ssize_t count = fd ? ::read(fd.get(), text, sizeof text) : 0;
    if (count <= 0 || std::string_view(text, static_cast<size_t>(count)).starts_with("running"))
      return false;
  }
  return folder != nullptr;
}

constexpr int64_t kSettleNs = 20'000;

// The CPU time once it is final. Where the kernel does not say so, two looks must agree; on a
// virtual machine that lost the core between them, it may still go on.
std::optional<int64_t> SettledCpuNs(pid_t pid, const Deadline& deadline) {
  if (HaveLeftTheirCores(pid)) return ProcessCpuNs(pid);
  auto before = ProcessCpuNs(pid);
  while (!deadline.Expired()) {
    const int64_t begin_ns = MonotonicNs();
    while (MonotonicNs() - begin_ns < kSettleNs) {
    }
    const auto after = ProcessCpuNs(pid);
    if (after == before) return after;
    before = after;
  }
  return before;
}

}  // namespace

bool Freezer::Freeze() {
  if (!stops_ || !Stands(Defence::kFreeze)) {
    frozen_ = true;
    cpu_ns_ = ProcessCpuNs(pid_).value_or(0);
    return true;
  }
  if (::kill(pid_, SIGSTOP) != 0) return false;
  // A stop takes microseconds; on a machine that has no core to spare, longer.
  const Deadline deadline = Deadline::AfterSeconds(10);
  ThreadsState state;
  do {
    state = AllThreads(pid_);
  } while (state == ThreadsState::kRunning && !deadline.Expired());
  const auto cpu_ns = SettledCpuNs(pid_, deadline);
  if (state != ThreadsState::kStopped || !cpu_ns) return false;
  cpu_ns_ = *cpu_ns;
  frozen_ = true;
  return true;
}

ThreadWaits ReadThreadWaits(pid_t pid) {
  ThreadWaits waits;
  const Folder folder = OpenThreads(pid);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr)
    if (entry->d_name[0] != '.')
      waits[std::atoi(entry->d_name)] = ThreadWaitNs(::dirfd(folder.get()), entry->d_name);
  return waits;
}

int64_t LongestWaitNs(const ThreadWaits& before, const ThreadWaits& after) {
  int64_t longest_ns = 0;
  for (const auto& [thread, wait_ns] : after) {
    const auto found = before.find(thread);
    longest_ns = std::max(longest_ns, wait_ns - (found == before.end() ? 0 : found->second));
  }
  return longest_ns;
}

int64_t WaitForOthersNs(int64_t longest_ns, int64_t cores_ns, int64_t used_ns) {
  return std::clamp<int64_t>(cores_ns - used_ns, 0, longest_ns);
}

int64_t MainThreadWaitNs(pid_t pid) {
  return ThreadWaitNs(AT_FDCWD, fmt::format("/proc/{}/task/{}", pid, pid).c_str());
}

int64_t OwnWaitNs() { return ThreadWaitNs(AT_FDCWD, "/proc/thread-self"); }

PageFaults ReadPageFaults(pid_t pid) {
  const auto text = ReadFile(fmt::format("/proc/{}/stat", pid), 4096);
  const size_t name_end = text ? text->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return {};
  long long minor = 0, major = 0;
  // state ppid pgrp session tty tpgid flags minflt cminflt majflt
  const int found = std::sscanf(text->c_str() + name_end + 1,
                                " %*c %*d %*d %*d %*d %*d %*u %lld %*d %lld", &minor, &major);
  return found == 2 ? PageFaults{minor, major} : PageFaults{};
}

int64_t ProcessPageFaults(pid_t pid) {
  const PageFaults faults = ReadPageFaults(pid);
  return faults.minor + faults.major;
}

bool Freezer::SleptSinceFreeze() {
  const auto cpu_ns = ProcessCpuNs(pid_);
  if (!frozen_ || !cpu_ns) return false;
  const bool slept = !stops_ || *cpu_ns == cpu_ns_ || !Stands(Defence::kSleepProof);
  cpu_ns_ = *cpu_ns;
  return slept;
}

int64_t Freezer::CpuSinceFreezeNs() const { return ProcessCpuNs(pid_).value_or(cpu_ns_) - cpu_ns_; }

void Freezer::Thaw() {
  frozen_ = false;
  if (stops_) ::kill(pid_, SIGCONT);
}

}  // namespace assay
