// Theory of operation. Each program is a list of refusals on top of "allow". Names that this
// libseccomp or this architecture does not know are skipped. System calls newer than kReviewedMax
// get ENOSYS as a whole, so a call that nobody reviewed is never allowed by default.
// The kernel caches the answer for calls whose arguments do not matter, so an allowed call costs
// almost nothing.
#include "sandbox/seccomp.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>

#include "base/check.h"
#include "base/unique_fd.h"
#include "sandbox/sandbox.h"

namespace assay {
namespace {

// The highest system call number that the lists below were written against: futex_requeue,
// Linux 6.7. Numbers from 424 on are the same on every architecture.
constexpr uint32_t kReviewedMax = 456;
constexpr uint32_t kX32Bit = 0x40000000;

std::unexpected<Error> Failed(int error) {
  return EnvironmentError(
      fmt::format("libseccomp could not compile the sandbox's filter: {}", strerror(error)));
}

// Calls refused outright.
constexpr const char* kRefusedNames[] = {
    // other processes' memory and state
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
    // keys of the user's session
    "keyctl", "add_key", "request_key",
    // large and rarely needed parts of the kernel
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "fanotify_init", "fanotify_mark", "lookup_dcookie", "uselib", "vm86",
    "vm86old", "modify_ldt",
    // mounts, roots and namespaces
    "mount", "umount", "umount2", "mount_setattr", "move_mount", "open_tree", "fsopen", "fsconfig",
    "fsmount", "fspick", "pivot_root", "chroot", "unshare", "setns", "open_by_handle_at",
    "name_to_handle_at",
    // the machine
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
    "create_module", "query_module", "reboot", "swapon", "swapoff", "settimeofday", "stime",
    "clock_settime", "clock_settime64", "clock_adjtime", "clock_adjtime64", "adjtimex", "quotactl",
    "quotactl_fd", "acct", "syslog", "vhangup", "nfsservctl", "iopl", "ioperm", "sethostname",
    "setdomainname",
    // where and when it runs
    "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr", "ioprio_set",
    "mlockall", "mbind", "migrate_pages", "move_pages", "set_mempolicy", "set_mempolicy_home_node",
    // memory that no file limit bounds, and that outlives its mappings
    "memfd_create", "memfd_secret"};

// Refused once a host has locked itself down. Signals that come from a timer or a queue could wake
// a stopped process; timers and requests that the kernel works off while it is stopped would take
// the core from others, unseen in its own CPU time; what tells of the page cache, or changes it,
// and what tells of files being opened, tells one process about another.
constexpr const char* kLockdownNames[] = {"memfd_create",
                                          "memfd_secret",
                                          "socket",
                                          "socketpair",
                                          "connect",
                                          "bind",
                                          "listen",
                                          "accept",
                                          "accept4",
                                          "ptrace",
                                          "process_vm_readv",
                                          "process_vm_writev",
                                          "timer_create",
                                          "timerfd_create",
                                          "timerfd_settime",
                                          "setitimer",
                                          "alarm",
                                          "io_setup",
                                          "io_submit",
                                          "fadvise64",
                                          "readahead",
                                          "mincore",
                                          "cachestat",
                                          "preadv2",
                                          "pwritev2",
                                          "mq_open",
                                          "mq_notify",
                                          "inotify_init",
                                          "inotify_init1",
                                          "inotify_add_watch",
                                          "sched_setaffinity",
                                          "sched_setscheduler",
                                          "sched_setparam",
                                          "sched_setattr",
                                          "setpriority",
                                          "ioprio_set",
                                          "unshare",
                                          "setns"};

constexpr uint64_t kNamespaceFlags[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                        CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

// ioctl requests that type into a terminal.
constexpr uint64_t kTiocsti = 0x5412;
constexpr uint64_t kTioclinux = 0x541C;
constexpr uint64_t kLow32 = 0xffffffff;

// In front of libseccomp's program, whose jumps are relative: an unknown newer system call is
// absent.
std::string RefuseUnreviewed(const std::string& program) {
  const sock_filter head[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 2, 0),  // x32: libseccomp's part kills it
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kReviewedMax, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (ENOSYS & SECCOMP_RET_DATA)),
  };
  return std::string(reinterpret_cast<const char*>(head), sizeof head) + program;
}

scmp_arg_cmp Comparison(const SeccompCondition& condition) {
  switch (condition.kind) {
    case SeccompCondition::kIs:
      // The kernel takes such an argument for an int: what stands in the upper half of the register
      // must not hide the lower.
      return SCMP_CMP64(condition.argument, SCMP_CMP_MASKED_EQ, kLow32, condition.value);
    case SeccompCondition::kIsNot:
      return SCMP_CMP64(condition.argument, SCMP_CMP_NE, condition.value);
    case SeccompCondition::kHas:
      return SCMP_CMP64(condition.argument, SCMP_CMP_MASKED_EQ, condition.value, condition.value);
    case SeccompCondition::kHasNot:
      return SCMP_CMP64(condition.argument, SCMP_CMP_MASKED_EQ, condition.value, 0);
    case SeccompCondition::kAbove:
      return SCMP_CMP64(condition.argument, SCMP_CMP_GT, condition.value);
  }
  return {};
}

uint32_t ActionOf(SeccompAnswer answer, int refusal) {
  switch (answer) {
    case SeccompAnswer::kRefuse:
      return SCMP_ACT_ERRNO(static_cast<uint32_t>(refusal));
    case SeccompAnswer::kAbsent:
      return SCMP_ACT_ERRNO(ENOSYS);
    case SeccompAnswer::kKill:
      return SCMP_ACT_KILL_PROCESS;
  }
  return SCMP_ACT_KILL_PROCESS;
}

// 0, or errno. A filter with the rules added.
int AddRules(scmp_filter_ctx context, const std::vector<SeccompRule>& rules, int refusal) {
  if (context == nullptr) return ENOMEM;
  int result = ::seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  if (result == 0) result = ::seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
  for (const SeccompRule& rule : rules) {
    const int number = SystemCallNumber(rule.call);
    if (number < 0 || result != 0) continue;
    const uint32_t action = ActionOf(rule.answer, refusal);
    result = rule.condition
                 ? ::seccomp_rule_add(context, action, number, 1, Comparison(*rule.condition))
                 : ::seccomp_rule_add(context, action, number, 0);
  }
  return -result;
}

Result<std::string> Export(scmp_filter_ctx context) {
  const UniqueFd fd(::memfd_create("assay-filter", MFD_CLOEXEC));
  if (!fd) return Failed(errno);
  if (const int result = ::seccomp_export_bpf(context, fd.get()); result != 0)
    return Failed(-result);
  const off_t size_bytes = ::lseek(fd.get(), 0, SEEK_END);
  if (size_bytes <= 0) return Failed(errno);
  std::string program(static_cast<size_t>(size_bytes), '\0');
  if (::pread(fd.get(), program.data(), program.size(), 0) != size_bytes) return Failed(errno);
  return RefuseUnreviewed(program);
}

// A clone that starts a process rather than a thread. clone3's flags lie in memory, out of a
// filter's sight, so it is absent: every C library then falls back to clone.
void RefuseProcesses(SeccompAnswer answer, std::vector<SeccompRule>* rules) {
  rules->push_back({"fork", answer, {}});
  rules->push_back({"vfork", answer, {}});
  rules->push_back({"clone", answer, {{0, SeccompCondition::kHasNot, CLONE_THREAD}}});
  rules->push_back({"clone3", SeccompAnswer::kAbsent, {}});
}

void RestrictSockets(SocketFamilies families, std::vector<SeccompRule>* rules) {
  using Condition = SeccompCondition;
  constexpr auto kRefuse = SeccompAnswer::kRefuse;
  rules->push_back({"socketpair", kRefuse, {{0, Condition::kIsNot, AF_UNIX}}});
  if (families == SocketFamilies::kUnix)
    return rules->push_back({"socket", kRefuse, {{0, Condition::kIsNot, AF_UNIX}}});
  // All others, 0 included; a rule compares an argument once.
  for (uint64_t family = 0; family < AF_INET6; ++family)
    if (family != AF_UNIX && family != AF_INET)
      rules->push_back({"socket", kRefuse, {{0, Condition::kIs, family}}});
  rules->push_back({"socket", kRefuse, {{0, Condition::kAbove, AF_INET6}}});
}

}  // namespace

int SystemCallNumber(const char* call) { return ::seccomp_syscall_resolve_name(call); }

std::vector<SeccompRule> BaseRules(SocketFamilies families) {
  using Condition = SeccompCondition;
  constexpr auto kRefuse = SeccompAnswer::kRefuse;
  std::vector<SeccompRule> rules;
  for (const char* name : kRefusedNames) rules.push_back({name, kRefuse, {}});
  for (const uint64_t flag : kNamespaceFlags)
    rules.push_back({"clone", kRefuse, {{0, Condition::kHas, flag}}});
  rules.push_back({"clone3", SeccompAnswer::kAbsent, {}});
  RestrictSockets(families, &rules);
  for (const uint64_t request : {kTiocsti, kTioclinux})
    rules.push_back({"ioctl", kRefuse, {{1, Condition::kIs, request}}});
  rules.push_back({"personality", kRefuse, {{0, Condition::kIsNot, 0xffffffff}}});  // which asks
  rules.push_back({"setpriority", kRefuse, {{0, Condition::kIsNot, 0}}});           // a process
  rules.push_back({"setpriority", kRefuse, {{1, Condition::kIsNot, 0}}});           // itself
  return rules;
}

std::vector<SeccompRule> NoProcessRules() {
  std::vector<SeccompRule> rules;
  RefuseProcesses(SeccompAnswer::kRefuse, &rules);
  return rules;
}

std::vector<SeccompRule> LockdownRules(bool kill) {
  using Condition = SeccompCondition;
  constexpr auto kRefuse = SeccompAnswer::kRefuse;
  const SeccompAnswer start = kill ? SeccompAnswer::kKill : kRefuse;
  std::vector<SeccompRule> rules;
  RefuseProcesses(start, &rules);
  for (const char* name : {"execve", "execveat"}) rules.push_back({name, start, {}});
  for (const char* name : kLockdownNames) rules.push_back({name, kRefuse, {}});
  for (const uint64_t command :
       {uint64_t{F_SETSIG}, uint64_t{F_SETOWN}, uint64_t{F_SETOWN_EX}, uint64_t{F_NOTIFY}})
    rules.push_back({"fcntl", kRefuse, {{1, Condition::kIs, command}}});
  // A process that cannot be dumped hides what it executes from a judge that is not root; core
  // scheduling keeps others off its core's other thread.
  for (const uint64_t option :
       {uint64_t{PR_SET_PDEATHSIG}, uint64_t{PR_SET_DUMPABLE}, uint64_t{PR_SCHED_CORE}})
    rules.push_back({"prctl", kRefuse, {{0, Condition::kIs, option}}});
  // SIGCONT is the judge's to send.
  for (const char* name : {"kill", "tkill", "rt_sigqueueinfo", "pidfd_send_signal"})
    rules.push_back({name, kRefuse, {{1, Condition::kIs, SIGCONT}}});
  for (const char* name : {"tgkill", "rt_tgsigqueueinfo"})
    rules.push_back({name, kRefuse, {{2, Condition::kIs, SIGCONT}}});
  return rules;
}

Result<std::string> CompileRules(const std::vector<SeccompRule>& rules, int refusal) {
  const std::unique_ptr<void, void (*)(void*)> context(::seccomp_init(SCMP_ACT_ALLOW),
                                                       ::seccomp_release);
  if (const int error = AddRules(context.get(), rules, refusal); error != 0) return Failed(error);
  return Export(context.get());
}

Result<std::string> BaseProgram(SocketFamilies families) {
  return CompileRules(BaseRules(families));
}
Result<std::string> NoProcessProgram() { return CompileRules(NoProcessRules()); }

std::string LockdownProgram(bool kill) {
  auto compiled = CompileRules(LockdownRules(kill));
  ASSAY_CHECK(compiled.has_value());
  return *std::move(compiled);
}

}  // namespace assay
