// confine: the first program inside of every sandbox, and the command's only parent there.
//
//   confine --report FD [--filter FD]... [--limit NAME VALUE]... [--device PATH]... [--loopback]
//           [--output BYTES] [--artifact PATH FD BYTES]
//           -- COMMAND [ARGUMENT]...
//
// Theory of operation. bubblewrap has set up the namespaces and mounts. confine starts COMMAND in a
// child that first limits itself: rlimits, no_new_privs, Landlock, the seccomp filters. confine
// stays outside of these rules, is not dumpable, and runs no foreign code, so the command can
// neither read nor trace it, nor, where Landlock scopes signals, signal it. It reads what the
// command prints to the end, so that a flood never blocks the command; it passes on the first
// --output bytes. When the command ends with status 0, the file PATH is copied to descriptor FD, up
// to BYTES.
//
// To the judge, on the report descriptor, one line each:
//   ready                           the command was executed
//   failed STAGE ERRNO              it could not be; STAGE is limits, privileges, landlock,
//                                   seccomp, output or exec
//   artifact missing|irregular|large|unwritable
//                                   there is no product, and why
//   ended STATUS CPU_US PEAK_KIB    wait status, CPU time and peak memory of the command and of
//                                   its waited-for children
// Exits with the command's status, or 128 + its signal; 127 when it could not be executed. libc
// only.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "landlock.h"

namespace {

constexpr int kFiltersMax = 4;
constexpr int kLimitsMax = 16;
constexpr int kDevicesMax = 32;
constexpr int kExitUsage = 125;
constexpr int kExitNotExecuted = 127;

struct Limit {
  __rlimit_resource_t resource;
  uint64_t value;
};

struct Options {
  int report_fd = -1;
  int filter_fds[kFiltersMax];
  int filter_count = 0;
  Limit limits[kLimitsMax];
  int limit_count = 0;
  const char* devices[kDevicesMax + 1] = {};  // ends with a null
  int device_count = 0;
  bool loopback = false;
  uint64_t output_bytes = 64 * 1024;
  const char* artifact_path = nullptr;
  int artifact_fd = -1;
  uint64_t artifact_bytes = 0;
  char** command = nullptr;
};

[[noreturn]] void Usage() {
  fputs("confine: bad arguments; this program is started by assay\n", stderr);
  exit(kExitUsage);
}

uint64_t Number(const char* text) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0') Usage();
  return value;
}

int Descriptor(const char* text) {
  const int fd = static_cast<int>(Number(text));
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) Usage();
  return fd;
}

__rlimit_resource_t Resource(const char* name) {
  const struct {
    const char* name;
    __rlimit_resource_t resource;
  } kResources[] = {
      {"as", RLIMIT_AS},         {"core", RLIMIT_CORE},     {"cpu", RLIMIT_CPU},
      {"data", RLIMIT_DATA},     {"fsize", RLIMIT_FSIZE},   {"memlock", RLIMIT_MEMLOCK},
      {"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC},   {"stack", RLIMIT_STACK},
      {"nice", RLIMIT_NICE},     {"rtprio", RLIMIT_RTPRIO}, {"msgqueue", RLIMIT_MSGQUEUE}};
  for (const auto& known : kResources)
    if (strcmp(known.name, name) == 0) return known.resource;
  Usage();
}

Options ParseArguments(int count, char** arguments) {
  Options options;
  int i = 1;
  const auto next = [&] { return ++i < count ? arguments[i] : (Usage(), nullptr); };
  for (; i < count && strcmp(arguments[i], "--") != 0; ++i) {
    const char* name = arguments[i];
    if (strcmp(name, "--report") == 0) {
      options.report_fd = Descriptor(next());
    } else if (strcmp(name, "--filter") == 0 && options.filter_count < kFiltersMax) {
      options.filter_fds[options.filter_count++] = Descriptor(next());
    } else if (strcmp(name, "--limit") == 0 && options.limit_count < kLimitsMax) {
      const auto resource = Resource(next());
      options.limits[options.limit_count++] = {resource, Number(next())};
    } else if (strcmp(name, "--device") == 0 && options.device_count < kDevicesMax) {
      options.devices[options.device_count++] = next();
    } else if (strcmp(name, "--loopback") == 0) {
      options.loopback = true;
    } else if (strcmp(name, "--output") == 0) {
      options.output_bytes = Number(next());
    } else if (strcmp(name, "--artifact") == 0) {
      options.artifact_path = next();
      options.artifact_fd = Descriptor(next());
      options.artifact_bytes = Number(next());
    } else {
      Usage();
    }
  }
  if (i + 1 >= count || options.report_fd < 0) Usage();
  options.command = arguments + i + 1;
  return options;
}

// ---- in the child

// Why the child could not execute the command; it travels to the parent through a pipe that closes
// on exec.
struct Failure {
  char stage[12];
  int error;
};

[[noreturn]] void FailChild(int fd, const char* stage, int error) {
  Failure failure{};
  strncpy(failure.stage, stage, sizeof failure.stage - 1);
  failure.error = error;
  const ssize_t written = write(fd, &failure, sizeof failure);
  _exit(written == sizeof failure ? kExitNotExecuted : kExitUsage);
}

// Lowers a limit; one that is already lower stays.
int SetLimit(const Limit& limit) {
  rlimit current{};
  if (getrlimit(limit.resource, &current) != 0) return errno;
  const rlim_t value = limit.value < current.rlim_max ? limit.value : current.rlim_max;
  rlimit lowered{value, value};
  // CPU time: the soft limit ends the process with SIGXCPU, which tells more than the hard limit's
  // SIGKILL.
  if (limit.resource == RLIMIT_CPU && value + 5 <= current.rlim_max) lowered.rlim_max = value + 5;
  return setrlimit(limit.resource, &lowered) == 0 ? 0 : errno;
}

int InstallFilter(int fd) {
  static sock_filter program[BPF_MAXINSNS];
  const ssize_t size = pread(fd, program, sizeof program, 0);
  if (size <= 0 || static_cast<size_t>(size) % sizeof(sock_filter) != 0) return EINVAL;
  const sock_fprog filter{
      static_cast<unsigned short>(static_cast<size_t>(size) / sizeof(sock_filter)), program};
  // SPEC_ALLOW: kernels before 5.16 would else switch on mitigations that slow the whole process.
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter) == 0)
    return 0;
  return errno;
}

[[noreturn]] void RunCommand(const Options& options, int failure_fd, int output_fd) {
  signal(SIGPIPE, SIG_DFL);
  for (int i = 0; i < options.limit_count; ++i)
    if (const int error = SetLimit(options.limits[i]); error != 0)
      FailChild(failure_fd, "limits", error);
  if (dup2(output_fd, 1) < 0 || dup2(output_fd, 2) < 0) FailChild(failure_fd, "output", errno);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) FailChild(failure_fd, "privileges", errno);
  if (const int error = ApplyLandlock(options.devices, options.loopback); error != 0)
    FailChild(failure_fd, "landlock", error);
  for (int i = 0; i < options.filter_count; ++i)
    if (const int error = InstallFilter(options.filter_fds[i]); error != 0)
      FailChild(failure_fd, "seccomp", error);
  execve(options.command[0], options.command, environ);
  FailChild(failure_fd, "exec", errno);
}

// ---- in the parent

void Report(const Options& options, const char* line) {
  const size_t size = strlen(line);
  if (write(options.report_fd, line, size) != static_cast<ssize_t>(size)) exit(kExitUsage);
}

// Passes on what fits and discards the rest. The judge's pipe never blocks.
class Forwarder {
 public:
  explicit Forwarder(uint64_t bytes_max) : left_(bytes_max) {}
  enum class Input { kSome, kNoneNow, kEnd };
  Input ReadOnce(int fd) {
    static char buffer[64 * 1024];
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return Input::kNoneNow;
    if (count <= 0) return Input::kEnd;
    const size_t passed = static_cast<size_t>(count) < left_ ? static_cast<size_t>(count) : left_;
    size_t sent = 0;
    while (sent < passed) {
      const ssize_t written = write(STDOUT_FILENO, buffer + sent, passed - sent);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) break;
      sent += static_cast<size_t>(written);
    }
    left_ -= sent;
    return Input::kSome;
  }

 private:
  size_t left_;
};

// Reads the command's output until the command ends, then what is left of it. Processes that it
// leaves behind and that keep printing are not waited for.
void AwaitEnd(int pidfd, int output_fd, Forwarder& forwarder) {
  pollfd watched[] = {{pidfd, POLLIN, 0}, {output_fd, POLLIN, 0}};
  while (true) {
    if (poll(watched, 2, -1) < 0 && errno != EINTR) return;
    if ((watched[1].revents & (POLLIN | POLLHUP)) != 0 &&
        forwarder.ReadOnce(output_fd) == Forwarder::Input::kEnd)
      watched[1].fd = -1;  // poll passes over it
    if ((watched[0].revents & POLLIN) != 0) break;
  }
  for (int reads = 0; reads < 32 && forwarder.ReadOnce(output_fd) == Forwarder::Input::kSome;)
    ++reads;
}

// Null when the file was copied, else why not.
const char* CopyArtifact(const Options& options) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const int source =
      static_cast<int>(syscall(SYS_openat2, AT_FDCWD, options.artifact_path, &how, sizeof how));
  if (source < 0) return errno == ENOENT ? "missing" : "irregular";
  struct stat status {};
  if (fstat(source, &status) != 0 || !S_ISREG(status.st_mode)) return "irregular";
  static char buffer[256 * 1024];
  uint64_t copied = 0;
  while (true) {
    const ssize_t count = read(source, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return "irregular";
    if (count == 0) return nullptr;
    copied += static_cast<uint64_t>(count);
    const bool large = copied > options.artifact_bytes;
    if (large || write(options.artifact_fd, buffer, static_cast<size_t>(count)) != count) {
      if (ftruncate(options.artifact_fd, 0) != 0) exit(kExitUsage);
      return large ? "large" : "unwritable";
    }
  }
}

int Supervise(const Options& options, pid_t child, int failure_fd, int output_fd) {
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, child, 0u));
  Failure failure{};
  ssize_t count;
  while ((count = read(failure_fd, &failure, sizeof failure)) < 0 && errno == EINTR) {
  }
  char line[128];
  if (pidfd < 0 || count != 0) {
    if (count == 0) kill(child, SIGKILL);
    failure.stage[sizeof failure.stage - 1] = '\0';
    snprintf(line, sizeof line, "failed %s %d\n", count > 0 ? failure.stage : "output",
             failure.error);
    Report(options, line);
    waitpid(child, nullptr, 0);
    return kExitNotExecuted;
  }
  Report(options, "ready\n");
  Forwarder forwarder(options.output_bytes);
  AwaitEnd(pidfd, output_fd, forwarder);
  int status = 0;
  rusage usage{};
  while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  if (options.artifact_path != nullptr && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    if (const char* trouble = CopyArtifact(options); trouble != nullptr) {
      snprintf(line, sizeof line, "artifact %s\n", trouble);
      Report(options, line);
    }
  }
  const long long cpu_us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000LL +
                           usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  snprintf(line, sizeof line, "ended %d %lld %ld\n", status, cpu_us, usage.ru_maxrss);
  Report(options, line);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = ParseArguments(count, arguments);
  int failure_pipe[2], output_pipe[2];
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || pipe2(failure_pipe, O_CLOEXEC) != 0 ||
      pipe2(output_pipe, O_CLOEXEC) != 0)
    return kExitUsage;
  fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    char line[64];
    snprintf(line, sizeof line, "failed exec %d\n", errno);
    Report(options, line);
    return kExitNotExecuted;
  }
  if (child == 0) RunCommand(options, failure_pipe[1], output_pipe[1]);
  // The judge's other descriptors are the command's alone: when it ends, the judge sees them
  // closed.
  for (int fd = STDERR_FILENO + 1; fd <= output_pipe[1] || fd < 64; ++fd)
    if (fd != options.report_fd && fd != options.artifact_fd && fd != failure_pipe[0] &&
        fd != output_pipe[0])
      close(fd);
  signal(SIGPIPE, SIG_IGN);
  fcntl(output_pipe[0], F_SETFL, O_NONBLOCK);
  return Supervise(options, child, failure_pipe[0], output_pipe[0]);
}
