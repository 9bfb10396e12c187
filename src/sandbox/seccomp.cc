// Theory of operation. Each program is a list of refusals on top of "allow". Names that this
// libseccomp or this architecture does not know are passed over: system calls newer than
// kReviewedMax get ENOSYS as a whole, so a call that nobody looked at is never allowed by default.
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

#include "base/check.h"
#include "base/unique_fd.h"
#include "sandbox/sandbox.h"

namespace assay {
namespace {

// The highest system call number that the lists below were written against: futex_requeue,
// Linux 6.7. Numbers from 424 on are the same on every architecture.
constexpr uint32_t kReviewedMax = 456;
constexpr uint32_t kX32Bit = 0x40000000;

constexpr uint32_t kRefuse = SCMP_ACT_ERRNO(EPERM);
constexpr uint32_t kAbsent = SCMP_ACT_ERRNO(ENOSYS);

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
// a stopped process.
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
                                          "mq_open",
                                          "mq_notify",
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

class Program {
 public:
  Program() : context_(::seccomp_init(SCMP_ACT_ALLOW)) {
    Check(context_ == nullptr ? -ENOMEM : 0);
    if (context_ == nullptr) return;
    Check(::seccomp_attr_set(context_, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
    Check(::seccomp_attr_set(context_, SCMP_FLTATR_CTL_OPTIMIZE, 2));
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { ::seccomp_release(context_); }

  void Refuse(const char* name, uint32_t action = kRefuse) {
    if (const int number = Number(name); number >= 0)
      Check(::seccomp_rule_add(context_, action, number, 0));
  }
  void RefuseIf(const char* name, scmp_arg_cmp condition, uint32_t action = kRefuse) {
    if (const int number = Number(name); number >= 0)
      Check(::seccomp_rule_add(context_, action, number, 1, condition));
  }
  Result<std::string> Compile();

 private:
  // Negative: not known here.
  int Number(const char* name) const {
    return error_ != 0 ? -1 : ::seccomp_syscall_resolve_name(name);
  }
  void Check(int result) {
    if (result != 0 && error_ == 0) error_ = -result;
  }

  scmp_filter_ctx context_;
  int error_ = 0;
};

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

Result<std::string> Program::Compile() {
  const auto failed = [](int error) {
    return EnvironmentError(
        fmt::format("libseccomp could not compile the sandbox's filter: {}", strerror(error)));
  };
  if (error_ != 0) return failed(error_);
  const UniqueFd fd(::memfd_create("assay-filter", MFD_CLOEXEC));
  if (!fd) return failed(errno);
  if (const int result = ::seccomp_export_bpf(context_, fd.get()); result != 0)
    return failed(-result);
  const off_t size_bytes = ::lseek(fd.get(), 0, SEEK_END);
  if (size_bytes <= 0) return failed(errno);
  std::string program(static_cast<size_t>(size_bytes), '\0');
  if (::pread(fd.get(), program.data(), program.size(), 0) != size_bytes) return failed(errno);
  return RefuseUnreviewed(program);
}

// A clone that starts a process rather than a thread. clone3's flags lie in memory, out of a
// filter's sight, so it is absent: every C library then falls back to clone.
void RefuseProcesses(Program& program, uint32_t action) {
  program.Refuse("fork", action);
  program.Refuse("vfork", action);
  program.RefuseIf("clone", SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0), action);
  program.Refuse("clone3", kAbsent);
}

}  // namespace

Result<std::string> BaseProgram() {
  Program program;
  for (const char* name : kRefusedNames) program.Refuse(name);
  for (const uint64_t flag : kNamespaceFlags)
    program.RefuseIf("clone", SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
  program.Refuse("clone3", kAbsent);
  program.RefuseIf("socket", SCMP_A0_32(SCMP_CMP_NE, AF_UNIX));
  program.RefuseIf("socketpair", SCMP_A0_32(SCMP_CMP_NE, AF_UNIX));
  for (const uint64_t request : {kTiocsti, kTioclinux})
    program.RefuseIf("ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, kLow32, request));
  program.RefuseIf("personality", SCMP_A0_32(SCMP_CMP_NE, 0xffffffff));  // 0xffffffff asks
  program.RefuseIf("setpriority", SCMP_A0_32(SCMP_CMP_NE, 0));           // 0: a process
  program.RefuseIf("setpriority", SCMP_A1_32(SCMP_CMP_NE, 0));           // 0: itself
  return program.Compile();
}

Result<std::string> NoProcessProgram() {
  Program program;
  RefuseProcesses(program, kRefuse);
  return program.Compile();
}

std::string LockdownProgram(bool kill) {
  Program program;
  const uint32_t start = kill ? uint32_t{SCMP_ACT_KILL_PROCESS} : kRefuse;
  RefuseProcesses(program, start);
  program.Refuse("execve", start);
  program.Refuse("execveat", start);
  for (const char* name : kLockdownNames) program.Refuse(name);
  for (const uint32_t command : {uint32_t{F_SETSIG}, uint32_t{F_SETOWN}, uint32_t{F_SETOWN_EX}})
    program.RefuseIf("fcntl", SCMP_A1_32(SCMP_CMP_EQ, command));
  program.RefuseIf("prctl", SCMP_A0_32(SCMP_CMP_EQ, PR_SET_PDEATHSIG));
  // SIGCONT is the judge's to send.
  for (const char* name : {"kill", "tkill", "rt_sigqueueinfo", "pidfd_send_signal"})
    program.RefuseIf(name, SCMP_A1_32(SCMP_CMP_EQ, SIGCONT));
  for (const char* name : {"tgkill", "rt_tgsigqueueinfo"})
    program.RefuseIf(name, SCMP_A2_32(SCMP_CMP_EQ, SIGCONT));
  auto compiled = program.Compile();
  ASSAY_CHECK(compiled.has_value());
  return *std::move(compiled);
}

}  // namespace assay
