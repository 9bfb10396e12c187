#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "breakout.h"

namespace assay::breakout {

void TryCall(const char* name, long number, Successes& successes) {
  errno = 0;
  const long result = syscall(number, -1L, -1L, -1L, -1L, -1L, -1L);
  if (result >= 0 || (errno != EPERM && errno != EACCES && errno != ENOSYS)) successes.Add(name);
}

namespace {

struct Call {
  const char* name;
  long number;
};

template <size_t kCount>
void TryAll(const Call (&calls)[kCount], Successes& successes) {
  for (const Call& call : calls) TryCall(call.name, call.number, successes);
}

void Keys(const Given&, Successes& successes) {
  constexpr Call kCalls[] = {
      {"keyctl", SYS_keyctl}, {"add_key", SYS_add_key}, {"request_key", SYS_request_key}};
  TryAll(kCalls, successes);
}

void KernelPrograms(const Given&, Successes& successes) {
  constexpr Call kCalls[] = {{"bpf", SYS_bpf},
                             {"perf_event_open", SYS_perf_event_open},
                             {"userfaultfd", SYS_userfaultfd},
                             {"io_uring_setup", SYS_io_uring_setup},
                             {"io_uring_enter", SYS_io_uring_enter},
                             {"io_uring_register", SYS_io_uring_register},
                             {"fanotify_init", SYS_fanotify_init}};
  TryAll(kCalls, successes);
}

void Mounts(const Given&, Successes& successes) {
  constexpr Call kCalls[] = {{"mount", SYS_mount},
                             {"umount2", SYS_umount2},
                             {"pivot_root", SYS_pivot_root},
                             {"chroot", SYS_chroot},
                             {"fsopen", SYS_fsopen},
                             {"fsmount", SYS_fsmount},
                             {"open_tree", SYS_open_tree},
                             {"move_mount", SYS_move_mount},
                             {"open_by_handle_at", SYS_open_by_handle_at},
                             {"name_to_handle_at", SYS_name_to_handle_at}};
  TryAll(kCalls, successes);
}

void Namespaces(const Given&, Successes& successes) {
  constexpr Call kCalls[] = {
      {"unshare", SYS_unshare}, {"setns", SYS_setns}, {"clone3", SYS_clone3}};
  TryAll(kCalls, successes);
  constexpr Call kFlags[] = {{"clone of a user namespace", CLONE_NEWUSER},
                             {"clone of a mount namespace", CLONE_NEWNS},
                             {"clone of a pid namespace", CLONE_NEWPID},
                             {"clone of a network namespace", CLONE_NEWNET}};
  for (const Call& flag : kFlags) {
    const long pid = syscall(SYS_clone, flag.number | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    if (pid < 0) continue;
    successes.Add(flag.name);
    waitpid(static_cast<pid_t>(pid), nullptr, 0);
  }
}

void TheMachine(const Given&, Successes& successes) {
  constexpr Call kCalls[] = {{"reboot", SYS_reboot},
                             {"kexec_load", SYS_kexec_load},
                             {"init_module", SYS_init_module},
                             {"finit_module", SYS_finit_module},
                             {"delete_module", SYS_delete_module},
                             {"swapon", SYS_swapon},
                             {"settimeofday", SYS_settimeofday},
                             {"clock_settime", SYS_clock_settime},
                             {"adjtimex", SYS_adjtimex},
                             {"acct", SYS_acct},
                             {"syslog", SYS_syslog},
                             {"sethostname", SYS_sethostname},
                             {"quotactl", SYS_quotactl}};
  TryAll(kCalls, successes);
}

void Scheduling(const Given&, Successes& successes) {
  constexpr Call kCalls[] = {{"sched_setaffinity", SYS_sched_setaffinity},
                             {"sched_setscheduler", SYS_sched_setscheduler},
                             {"sched_setparam", SYS_sched_setparam},
                             {"sched_setattr", SYS_sched_setattr},
                             {"ioprio_set", SYS_ioprio_set}};
  TryAll(kCalls, successes);
}

void MemoryPolicy(const Given&, Successes& successes) {
  constexpr Call kCalls[] = {{"mlockall", SYS_mlockall},
                             {"mbind", SYS_mbind},
                             {"set_mempolicy", SYS_set_mempolicy},
                             {"migrate_pages", SYS_migrate_pages},
                             {"move_pages", SYS_move_pages}};
  TryAll(kCalls, successes);
}

void MemoryFiles(const Given&, Successes& successes) {
  TryCall("memfd_create", SYS_memfd_create, successes);
#if defined(SYS_memfd_secret)
  TryCall("memfd_secret", SYS_memfd_secret, successes);
#endif
}

void Personality(const Given&, Successes& successes) {
  if (personality(ADDR_NO_RANDOMIZE) >= 0) successes.Add("personality");
}

void NewCalls(const Given&, Successes& successes) {
  for (long number = 457; number < 480; ++number) {
    if (syscall(number, -1L, -1L, -1L, -1L, -1L, -1L) < 0 && errno == ENOSYS) continue;
    char name[24];
    snprintf(name, sizeof name, "call %ld", number);
    successes.Add(name);
  }
}

// In a child: such a call ends its process. Harmless where it works: it asks for the process id.
void ForeignCalls(const Given&, Successes& successes) {
#if defined(__x86_64__)
  for (const bool is_32_bit : {true, false}) {
    const pid_t pid = fork();
    if (pid == 0) {
      long result = 20;  // getpid, of the 32-bit table
      if (is_32_bit)
        asm volatile("int $0x80" : "+a"(result) : : "memory");
      else
        result = syscall(0x40000000 + SYS_getpid);
      _exit(result > 0 ? 1 : 0);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid ||
        (WIFEXITED(status) && WEXITSTATUS(status) != 0))
      successes.Add(is_32_bit ? "32-bit" : "x32");
  }
#else
  (void)successes;
#endif
}

void NewProcesses(const Given&, Successes& successes) {
  for (const bool by_fork : {true, false}) {
    // Not vfork: where it worked, the child would share this function's frame.
    const long pid = by_fork ? fork() : syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    if (pid < 0) continue;
    successes.Add(by_fork ? "fork" : "clone");
    waitpid(static_cast<pid_t>(pid), nullptr, 0);
  }
}

// What the kernel says of this process.
void CheckStatus(Successes& successes) {
  FILE* file = fopen("/proc/self/status", "re");
  if (file == nullptr) {
    successes.Add("its status cannot be read");
    return;
  }
  char line[256], name[32];
  unsigned long long value = 0;
  int found = 0;
  while (fgets(line, sizeof line, file) != nullptr) {
    if (sscanf(line, "%31[^:]: %llx", name, &value) != 2) continue;
    const bool capabilities = strncmp(name, "Cap", 3) == 0;
    const bool no_new = strcmp(name, "NoNewPrivs") == 0, filter = strcmp(name, "Seccomp") == 0;
    found += capabilities || no_new || filter;
    if (capabilities && value != 0) successes.Add(name);
    if (no_new && value != 1) successes.Add("new privileges");
    if (filter && value != 2) successes.Add("no seccomp filter");
  }
  fclose(file);
  if (found < 7) successes.Add("its status is incomplete");  // five sets of capabilities
}

void Identity(const Given&, Successes& successes) {
  uid_t uids[3];
  gid_t gids[3];
  if (getresuid(&uids[0], &uids[1], &uids[2]) != 0 || getresgid(&gids[0], &gids[1], &gids[2]) != 0)
    successes.Add("its ids cannot be read");
  for (int i = 0; i < 3; ++i)
    if (uids[i] == 0 || gids[i] == 0 || uids[i] != uids[0] || gids[i] != gids[0]) {
      successes.Add("user or group id");
      break;
    }
  CheckStatus(successes);
}

void BecomeRoot(const Given&, Successes& successes) {
  if (setresuid(0, 0, 0) == 0) successes.Add("setresuid");
  if (setresgid(0, 0, 0) == 0) successes.Add("setresgid");
  const gid_t group = 0;
  if (syscall(SYS_setgroups, 1, &group) == 0) successes.Add("setgroups");
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct sets[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};
  if (syscall(SYS_capset, &header, sets) == 0) successes.Add("capset");
}

void Limits(const Given&, Successes& successes) {
  const struct {
    const char* name;
    __rlimit_resource_t resource;
    bool none;
  } limits[] = {{"address space", RLIMIT_AS, false},
                {"file size", RLIMIT_FSIZE, false},
                {"processes", RLIMIT_NPROC, false},
                {"processor time", RLIMIT_CPU, false},
                {"stack", RLIMIT_STACK, false},
                {"open files", RLIMIT_NOFILE, false},
                {"core files", RLIMIT_CORE, true},
                {"message queues", RLIMIT_MSGQUEUE, true},
                {"real-time priority", RLIMIT_RTPRIO, true}};
  for (const auto& limit : limits) {
    rlimit now{};
    if (getrlimit(limit.resource, &now) != 0 || now.rlim_max == RLIM_INFINITY ||
        (limit.none && now.rlim_max != 0)) {
      successes.Add(limit.name);
      continue;
    }
    const rlimit more{now.rlim_max + 1, now.rlim_max + 1};
    if (setrlimit(limit.resource, &more) == 0) successes.Add(limit.name);
  }
}

constexpr Attempt kAttempts[] = {
    {"keys", "use the keys of a user's session", Place::kBoth, 0, Keys},
    {"kernel-programs", "reach bpf, perf, userfaultfd, io_uring or fanotify", Place::kBoth, 0,
     KernelPrograms},
    {"mounts", "change mounts or the root folder, or open files by handle", Place::kBoth, 0,
     Mounts},
    {"namespaces", "make or enter a namespace", Place::kBoth, 0, Namespaces},
    {"machine", "change modules, clocks, names or the state of the machine", Place::kBoth, 0,
     TheMachine},
    {"scheduling", "change its processors or its scheduling", Place::kBoth, 0, Scheduling},
    {"memory-policy", "lock memory or place it", Place::kBoth, 0, MemoryPolicy},
    {"memory-files", "make files of memory, which no limit bounds", Place::kBoth, 0, MemoryFiles},
    {"personality", "change its personality", Place::kBoth, 0, Personality},
    {"new-calls", "make system calls that nobody reviewed", Place::kBoth, 0, NewCalls},
    {"foreign-calls", "make 32-bit or x32 system calls", Place::kTools, 0, ForeignCalls},
    {"new-processes", "start a process where none may be started", Place::kNative, 0, NewProcesses},
    {"identity", "hold root's id, a capability or new privileges, or run without a filter",
     Place::kBoth, 0, Identity},
    {"become-root", "take root's id, a group or a capability", Place::kBoth, 0, BecomeRoot},
    {"limits", "run without a limit, or raise one", Place::kBoth, 0, Limits},
};

}  // namespace

Attempts CallAttempts() { return {kAttempts, sizeof kAttempts / sizeof kAttempts[0]}; }

}  // namespace assay::breakout
