#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <initializer_list>

#include "breakout.h"

namespace assay::breakout {
namespace {

// The first process of the namespace is a keeper, and so is confine. Where a nursery forked this
// process its parent is outside, and confine and graft are the processes that were here before it.
bool IsKeeper(pid_t pid) {
  constexpr pid_t kConfine = 2, kGraft = 3;
  const bool forked = getppid() == 0;
  return pid == 1 || (forked ? pid == kConfine || pid == kGraft : pid == getppid());
}

void ForEachKeeper(void (*act)(pid_t keeper, Successes& successes), Successes& successes) {
  for (pid_t pid = 1; pid < getpid(); ++pid)
    if (IsKeeper(pid)) act(pid, successes);
}

void OtherProcesses(const Given&, Successes& successes) {
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    const pid_t pid = isdigit(entry->d_name[0]) ? atoi(entry->d_name) : 0;
    if (pid > 0 && pid != getpid() && !IsKeeper(pid)) {
      successes.Add("process");
      successes.Add(entry->d_name);
      break;
    }
  }
  closedir(folder);
}

void JudgeSignal(const Given& given, Successes& successes) {
  // In a namespace of its own, where numbers begin anew, a small one may be of a process in here.
  constexpr pid_t kSmall = 64;
  if (getpid() < kSmall && given.judge < kSmall) return;
  if (kill(given.judge, 0) == 0 || errno != ESRCH) successes.Add("kill");
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, given.judge, 0u));
  if (pidfd < 0) return;
  successes.Add("pidfd_open");
  close(pidfd);
}

void KeeperSignals(const Given&, Successes& successes) {
  ForEachKeeper(
      [](pid_t keeper, Successes& found) {
        if (kill(keeper, 0) == 0) found.Add("kill");
      },
      successes);
}

void TryKeeperFiles(pid_t keeper, Successes& successes) {
  char path[64], target[64];
  for (const char* name : {"mem", "environ", "maps", "syscall"}) {
    snprintf(path, sizeof path, "/proc/%d/%s", keeper, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    // Some files open for everyone and refuse to be read.
    if (read(fd, target, 1) >= 0) successes.Add(path);
    close(fd);
  }
  snprintf(path, sizeof path, "/proc/%d/mem", keeper);
  if (const int fd = open(path, O_WRONLY | O_CLOEXEC); fd >= 0) {
    successes.Add(path);
    close(fd);
  }
  for (const char* name : {"exe", "cwd", "root", "fd/0"}) {
    snprintf(path, sizeof path, "/proc/%d/%s", keeper, name);
    if (readlink(path, target, sizeof target) >= 0) successes.Add(path);
  }
}

void KeeperMemory(const Given&, Successes& successes) { ForEachKeeper(TryKeeperFiles, successes); }

bool Refused() { return errno == EPERM || errno == EACCES || errno == ENOSYS; }

void TraceKeeper(pid_t keeper, Successes& successes) {
  char byte;
  const iovec ours{&byte, 1}, theirs{reinterpret_cast<void*>(uintptr_t{4096}), 1};
  if (ptrace(PTRACE_SEIZE, keeper, nullptr, nullptr) == 0 || !Refused()) successes.Add("ptrace");
  if (process_vm_readv(keeper, &ours, 1, &theirs, 1, 0) >= 0 || !Refused())
    successes.Add("process_vm_readv");
  if (process_vm_writev(keeper, &ours, 1, &theirs, 1, 0) >= 0 || !Refused())
    successes.Add("process_vm_writev");
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, keeper, 0u));
  if (pidfd < 0) return;
  const int taken = static_cast<int>(syscall(SYS_pidfd_getfd, pidfd, 0, 0u));
  if (taken >= 0 || !Refused()) successes.Add("pidfd_getfd");
  if (taken >= 0) close(taken);
  close(pidfd);
}

void Tracing(const Given&, Successes& successes) {
  ForEachKeeper(TraceKeeper, successes);
  TryCall("kcmp", SYS_kcmp, successes);
}

void Sockets(const Given&, Successes& successes) {
  for (int family = 0; family < 46; ++family)
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW}) {
      if (family == AF_UNIX) continue;
      const int fd = socket(family, type | SOCK_CLOEXEC, 0);
      if (fd < 0) continue;
      char name[32];
      snprintf(name, sizeof name, "family %d", family);
      successes.Add(name);
      close(fd);
      break;
    }
}

void AbstractSocket(const Given& given, Successes& successes) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t size = strnlen(given.socket, sizeof address.sun_path - 1);
  memcpy(address.sun_path + 1, given.socket, size);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0)
    successes.Add("connected");
  close(fd);
}

void Interfaces(const Given&, Successes& successes) {
  FILE* file = fopen("/proc/self/net/dev", "re");
  if (file == nullptr) return;
  char line[512];
  while (fgets(line, sizeof line, file) != nullptr) {
    char name[32];
    if (sscanf(line, " %31[^:|]:", name) == 1 && strchr(line, ':') != nullptr &&
        strcmp(name, "lo") != 0)
      successes.Add(name);
  }
  fclose(file);
}

void Descriptors(const Given&, Successes& successes) {
  char target[64] = "";
  if (readlink("/proc/self/fd/0", target, sizeof target - 1) < 0 ||
      strcmp(target, "/dev/null") != 0)
    successes.Add("standard input");
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) {
    successes.Add("they cannot be listed");
    return;
  }
  while (const dirent* entry = readdir(folder))
    if (isdigit(entry->d_name[0]) && atoi(entry->d_name) > kGivenFdMax &&
        atoi(entry->d_name) != dirfd(folder))
      successes.Add(entry->d_name);
  closedir(folder);
}

void Environment(const Given&, Successes& successes) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, "PWD=", 4) == 0) continue;  // bubblewrap's
    char name[64];
    snprintf(name, sizeof name, "%.*s", static_cast<int>(strcspn(*entry, "=")), *entry);
    successes.Add(name);
  }
}

constexpr Attempt kAttempts[] = {
    {"other-processes", "see processes of the host", Place::kBoth, 0, OtherProcesses},
    {"judge-signal", "name the judge's process, to send it a signal", Place::kBoth, 0, JudgeSignal},
    {"keeper-memory", "reach memory, environment or files of confine or bubblewrap in `/proc`",
     Place::kBoth, 0, KeeperMemory},
    {"tracing", "trace confine or bubblewrap, or take their descriptors", Place::kBoth, 0, Tracing},
    {"keeper-signals", "send signals to confine or bubblewrap", Place::kBoth, 6, KeeperSignals},
    {"sockets", "open a network socket of any family", Place::kBoth, 0, Sockets},
    {"abstract-socket", "connect to a socket that the judge listens on", Place::kBoth, 0,
     AbstractSocket},
    {"interfaces", "see a network interface other than its own loopback", Place::kBoth, 0,
     Interfaces},
    {"descriptors", "find descriptors that it was not given", Place::kBoth, 0, Descriptors},
    {"environment", "find environment variables that it was not given", Place::kBoth, 0,
     Environment},
};

}  // namespace

Attempts ProcessAttempts() { return {kAttempts, sizeof kAttempts / sizeof kAttempts[0]}; }

}  // namespace assay::breakout
