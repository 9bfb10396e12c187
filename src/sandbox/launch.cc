// Theory of operation. The judge may have threads, so between fork and exec only async-signal-safe
// calls are made, on strings and arrays prepared before the fork. setresuid and its like are called
// raw: the C library's would first signal threads that this child does not have.
#include "sandbox/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "base/files.h"

namespace assay {
namespace {

// 2^28 uids: 2^22 process ids times 64 sandboxes.
constexpr uint32_t kUidBase = 0x70000000;
constexpr int kUidSlots = 64;

std::atomic<uint64_t>& UidSlotsInUse() {
  static std::atomic<uint64_t> in_use{0};
  return in_use;
}

struct ChildPlan {
  char* const* arguments;
  const int* group_entries;
  size_t group_entry_count;
  const std::pair<int, int>* moved;
  size_t moved_count;
  const int* kept;
  size_t kept_count;
  int output_fd;
  bool takes_uid;
  uid_t uid;
  const cpu_set_t* cpus;  // null: all
  pid_t parent;
};

[[noreturn]] void FailChild(const char* what) {
  char line[160] = "the sandbox cannot be started: ";
  size_t size = strlen(line);
  const auto append = [&](const char* text) {
    while (*text != '\0' && size < sizeof line - 1) line[size++] = *text++;
  };
  const char* reason = strerrordesc_np(errno);
  append(what);
  append(": ");
  append(reason != nullptr ? reason : "unknown error");
  append("\n");
  // Standard error may not stand yet where it should; then there is nobody to tell.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, size);
  ::_exit(127);
}

void ResetSignals() {
  for (int number = 1; number < 65; ++number) {
    struct sigaction plain {};
    plain.sa_handler = SIG_DFL;
    ::sigaction(number, &plain, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void PlaceDescriptors(const ChildPlan& plan) {
  if (::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) != 0) FailChild("close_range");
  for (size_t i = 0; i < plan.moved_count; ++i)
    if (::dup2(plan.moved[i].first, plan.moved[i].second) < 0) FailChild("dup2");
  for (size_t i = 0; i < plan.kept_count; ++i)
    if (::fcntl(plan.kept[i], F_SETFD, 0) != 0) FailChild("fcntl");
}

[[noreturn]] void RunChild(const ChildPlan& plan) {
  ResetSignals();
  // First of all, so that every later failure can be told.
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (::dup2(plan.output_fd, 1) < 0 || ::dup2(plan.output_fd, 2) < 0 || null < 0 ||
      ::dup2(null, 0) < 0)
    FailChild("standard descriptors");
  if (null == 0) ::fcntl(0, F_SETFD, 0);
  for (size_t i = 0; i < plan.group_entry_count; ++i)
    if (::write(plan.group_entries[i], "0", 1) != 1) FailChild("entering its control group");
  // When the whole machine runs out of memory, a candidate goes before anything else.
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) [[maybe_unused]]
    const ssize_t written = ::write(score, "500", 3);
  if (plan.cpus != nullptr && ::sched_setaffinity(0, sizeof *plan.cpus, plan.cpus) != 0)
    FailChild("processor affinity");
  ::umask(022);
  PlaceDescriptors(plan);
  if (plan.takes_uid) {
    if (::syscall(SYS_setgroups, 0, nullptr) != 0 ||
        ::syscall(SYS_setresgid, plan.uid, plan.uid, plan.uid) != 0 ||
        ::syscall(SYS_setresuid, plan.uid, plan.uid, plan.uid) != 0)
      FailChild("taking a user id of its own");
  }
  // From here on the judge's death is this process's; a change of uid would have cleared it.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) FailChild("prctl");
  if (::getppid() != plan.parent) ::_exit(127);
  char* const environment[] = {nullptr};
  ::execve(plan.arguments[0], plan.arguments, environment);
  FailChild("bubblewrap");
}

}  // namespace

bool UidLease::Needed() {
  if (::geteuid() != 0) return false;
  // In a user namespace of its own, root is somebody's ordinary user and the range is not mapped.
  const auto map = ReadFile("/proc/self/uid_map", 4096);
  unsigned inside = 1, outside = 0, count = 0;
  return map && std::sscanf(map->c_str(), "%u %u %u", &inside, &outside, &count) == 3 &&
         inside == 0 && count > kUidBase + (1u << 28) - 1;
}

std::optional<UidLease> UidLease::Take() {
  uint64_t in_use = UidSlotsInUse().load();
  while (in_use != ~uint64_t{0}) {
    const int slot = __builtin_ctzll(~in_use);
    if (UidSlotsInUse().compare_exchange_weak(in_use, in_use | (uint64_t{1} << slot)))
      return UidLease(slot);
  }
  return std::nullopt;
}

UidLease::~UidLease() {
  if (slot_ >= 0) UidSlotsInUse().fetch_and(~(uint64_t{1} << slot_));
}

uid_t UidLease::uid() const {
  return kUidBase + (static_cast<uint32_t>(::getpid()) * kUidSlots + static_cast<uint32_t>(slot_)) %
                        (1u << 28);
}

Result<Launched> Launch(const SandboxCommand& command, const std::vector<int>& group_entries,
                        const std::vector<int>& cpus, const std::optional<UidLease>& uid) {
  std::vector<char*> arguments;
  for (const std::string& argument : command.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    ASSAY_CHECK(cpu >= 0 && cpu < CPU_SETSIZE);
    CPU_SET(static_cast<size_t>(cpu), &set);
  }
  const ChildPlan plan{arguments.data(),     group_entries.data(),          group_entries.size(),
                       command.moved.data(), command.moved.size(),          command.kept.data(),
                       command.kept.size(),  command.output_write,          uid.has_value(),
                       uid ? uid->uid() : 0, cpus.empty() ? nullptr : &set, ::getpid()};
  // No handler of the judge's may run in the child.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) RunChild(plan);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return EnvironmentError(fmt::format("cannot start a process: {}", strerror(error)));
  Launched launched{pid, UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0u)))};
  if (!launched.pidfd) {
    const int reason = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return EnvironmentError(
        fmt::format("cannot watch a process (pidfd_open): {}", strerror(reason)));
  }
  return launched;
}

}  // namespace assay
