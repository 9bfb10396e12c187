// One death test a rule: system calls, files, and a host that has locked itself down.
#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "sandbox/sandbox_testing.h"

namespace assay {
namespace {

struct Rule {
  const char* call;
  int result;  // 0 allowed, errno refused, -signal killed
};
void PrintTo(const Rule& rule, std::ostream* stream) { *stream << rule.call; }
std::string NameOf(const ::testing::TestParamInfo<Rule>& info) { return info.param.call; }

// What the same call gives outside: a refusal that stands there too would prove nothing.
int OutsideResult(const std::string& call) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execl(ProbePath().c_str(), "probe", "call", call.c_str(), nullptr);
    ::_exit(97);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

class BaseRule : public ::testing::TestWithParam<Rule> {};
TEST_P(BaseRule, Holds) {
  SandboxRequest request = ProbeRequest({"call", GetParam().call});
  request.may_start_processes = true;
  EXPECT_EQ(ProbeResult(request), GetParam().result);
}
INSTANTIATE_TEST_SUITE_P(
    Calls, BaseRule,
    ::testing::Values(
        Rule{"ptrace", EPERM}, Rule{"process_vm_readv", EPERM}, Rule{"keyctl", EPERM},
        Rule{"bpf", EPERM}, Rule{"perf_event_open", EPERM}, Rule{"userfaultfd", EPERM},
        Rule{"io_uring_setup", EPERM}, Rule{"mount", EPERM}, Rule{"chroot", EPERM},
        Rule{"unshare", EPERM}, Rule{"setns", EPERM}, Rule{"clone_newuser", EPERM},
        Rule{"clone3", ENOSYS}, Rule{"too_new", ENOSYS}, Rule{"socket_inet", EPERM},
        Rule{"socket_netlink", EPERM}, Rule{"socket_unix", 0}, Rule{"socketpair", 0},
        Rule{"tiocsti", EPERM}, Rule{"sched_setaffinity", EPERM}, Rule{"sched_setscheduler", EPERM},
        Rule{"setpriority_self", 0}, Rule{"setpriority_user", EPERM}, Rule{"mlockall", EPERM},
        Rule{"memfd_create", EPERM}, Rule{"personality_query", 0}, Rule{"personality_set", EPERM},
        Rule{"name_to_handle_at", EPERM}, Rule{"reboot", EPERM}, Rule{"clock_settime", EPERM},
        Rule{"fork", 0}, Rule{"vfork", 0}, Rule{"thread", 0}, Rule{"exec", 0}),
    NameOf);

// Of a tool's sandbox, whose parts talk over it; nothing else is loosened.
TEST(Refusals, TheLoopbackIsForCommandsThatMayUseIt) {
  const auto result = [](const char* call, bool may_use_loopback) {
    SandboxRequest request = ProbeRequest({"call", call});
    request.may_use_loopback = may_use_loopback;
    return ProbeResult(request);
  };
  EXPECT_EQ(result("loopback", true), 0);
  EXPECT_EQ(result("loopback", false), EPERM);
  EXPECT_EQ(result("connect_outside", true), ENETUNREACH);
  EXPECT_EQ(result("connect_outside", false), EPERM);
  for (const char* call : {"socket_netlink", "ptrace", "memfd_create", "perf_event_open", "mount",
                           "sched_setaffinity", "fork"})
    EXPECT_EQ(result(call, true), EPERM) << call;
}

class ForeignArchitecture : public ::testing::TestWithParam<Rule> {};
TEST_P(ForeignArchitecture, Kills) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "this architecture has no second one";
#endif
  // Some kernels have no such calls, as in guests whose memory is encrypted: who makes one ends by
  // it anywhere, before any filter is asked.
  const int outside = OutsideResult(GetParam().call);
  const int expected = outside == -SIGSEGV ? -SIGSEGV : GetParam().result;
  EXPECT_EQ(ProbeResult(ProbeRequest({"call", GetParam().call})), expected);
}
INSTANTIATE_TEST_SUITE_P(Calls, ForeignArchitecture,
                         ::testing::Values(Rule{"call_32_bit", -SIGSYS}, Rule{"call_x32", -SIGSYS}),
                         NameOf);

TEST(Refusals, AreTheSandboxsOwn) {
  for (const char* call :
       {"ptrace", "process_vm_readv", "socket_inet", "sched_setaffinity", "sched_setscheduler",
        "memfd_create", "personality_set", "timer_create", "fcntl_setsig", "kill_sigcont", "fork"})
    EXPECT_EQ(OutsideResult(call), 0) << call;
}

TEST(Refusals, ACommandThatMayNotStartProcessesCannot) {
  EXPECT_EQ(ProbeResult(ProbeRequest({"call", "fork"})), EPERM);
  EXPECT_EQ(ProbeResult(ProbeRequest({"call", "vfork"})), EPERM);
  EXPECT_EQ(ProbeResult(ProbeRequest({"call", "thread"})), 0);
}

// A host installs the program that the judge sends it. `may_start` as for a python and a native
// host.
int LockedResult(const char* call, bool kill, bool may_start) {
  const std::string program = LockdownProgram(kill);
  const UniqueFd fd(::memfd_create("program", MFD_CLOEXEC));
  EXPECT_EQ(::pwrite(fd.get(), program.data(), program.size(), 0),
            static_cast<ssize_t>(program.size()));
  SandboxRequest request = ProbeRequest({"locked_call", "4", call});
  request.descriptors = {{fd.get(), 4}};
  request.may_start_processes = may_start;
  return ProbeResult(request);
}

class LockdownRule : public ::testing::TestWithParam<Rule> {};
TEST_P(LockdownRule, Holds) {
  EXPECT_EQ(LockedResult(GetParam().call, false, true), GetParam().result);
}
INSTANTIATE_TEST_SUITE_P(
    Calls, LockdownRule,
    ::testing::Values(Rule{"fork", EPERM}, Rule{"vfork", EPERM}, Rule{"exec", EPERM},
                      Rule{"thread", 0}, Rule{"clone3", ENOSYS}, Rule{"memfd_create", EPERM},
                      Rule{"socket_unix", EPERM}, Rule{"socketpair", EPERM}, Rule{"ptrace", EPERM},
                      Rule{"timer_create", EPERM}, Rule{"fcntl_setsig", EPERM},
                      Rule{"pdeathsig", EPERM}, Rule{"undumpable", EPERM},
                      Rule{"sched_core", EPERM}, Rule{"inotify", EPERM},
                      Rule{"fcntl_notify", EPERM}, Rule{"kill_sigcont", EPERM},
                      Rule{"tgkill_sigcont", EPERM}, Rule{"sched_setaffinity", EPERM},
                      Rule{"setpriority_self", EPERM}),
    NameOf);

class KillingLockdownRule : public ::testing::TestWithParam<Rule> {};
TEST_P(KillingLockdownRule, Holds) {
  EXPECT_EQ(LockedResult(GetParam().call, true, false), GetParam().result);
}
INSTANTIATE_TEST_SUITE_P(Calls, KillingLockdownRule,
                         ::testing::Values(Rule{"fork", -SIGSYS}, Rule{"vfork", -SIGSYS},
                                           Rule{"exec", -SIGSYS}, Rule{"thread", 0},
                                           Rule{"memfd_create", EPERM},
                                           Rule{"timer_create", EPERM}),
                         NameOf);

TEST(Files, CanBeWrittenOnlyInTheScratchFolder) {
  EXPECT_EQ(ProbeResult(ProbeRequest({"create", "/tmp/file"})), 0);
  EXPECT_EQ(ProbeResult(ProbeRequest({"write", "/dev/null"})), 0);
  for (const char* path : {"/file", "/usr/file", "/etc/file", "/dev/file", "/dev/shm/file",
                           "/assay/file", "/proc/file", "/sys/file", "/run/file", "/var/tmp/file"})
    EXPECT_NE(ProbeResult(ProbeRequest({"create", path})), 0) << path;
}

// bubblewrap started by root leaves these writable; a sandbox with a uid of its own must not.
TEST(Files, KernelSettingsCannotBeWritten) {
  for (const char* path :
       {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches",
        "/proc/sysrq-trigger", "/sys/devices/system/cpu/cpu1/online"})
    EXPECT_NE(ProbeResult(ProbeRequest({"write", path})), 0) << path;
}

TEST(Files, OfTheHostAreOutOfSight) {
  for (const char* path : {"/etc/shadow", "/etc/hostname", "/root", "/home", "/var/log", "/run",
                           ASSAY_SOURCE_DIRECTORY})
    EXPECT_EQ(ProbeResult(ProbeRequest({"read", path})), ENOENT) << path;
}

// These files lie on a writable mount and belong to the process: only Landlock refuses them.
TEST(Landlock, RefusesToWriteToProc) {
  if (ProbeSandbox().landlock_abi < 1) GTEST_SKIP() << "this kernel has no Landlock";
  for (const char* path : {"/proc/self/comm", "/proc/self/oom_score_adj", "/proc/self/mem"})
    EXPECT_EQ(ProbeResult(ProbeRequest({"write", path})), EACCES) << path;
}

TEST(Landlock, KeepsSignalsWithin) {
  if (ProbeSandbox().landlock_abi < 6)
    GTEST_SKIP() << "this kernel's Landlock does not scope signals";
  EXPECT_EQ(ProbeResult(ProbeRequest({"call", "kill_parent"})), EPERM);
}

}  // namespace
}  // namespace assay
