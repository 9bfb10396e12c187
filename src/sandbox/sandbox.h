// One sandbox for everything that runs foreign code: bubblewrap with its own namespaces, a
// read-only root, a seccomp filter, Landlock, rlimits, a cgroup where one is writable, no inherited
// descriptors or environment, and when started by root a uid of its own. Killed as a group.
// docs/sandbox.md lists the measures and what was measured.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/stop_token.h"
#include "base/unique_fd.h"

namespace assay {

// A file that appears read-only inside, with the given content (it is copied in: no path of the
// host's leaks).
struct SandboxFile {
  std::string target;  // absolute path inside, without "..", outside of /tmp, /proc and /dev
  std::string content;
  bool executable = false;
};

// A folder or file of the host's that appears read-only inside.
struct SandboxBind {
  std::string source;
  std::string target;
};

struct SandboxLimits {
  uint64_t memory_bytes = uint64_t{4} << 30;     // cgroup where there is one; RLIMIT_AS always
  uint64_t address_space_bytes = 0;              // RLIMIT_AS; 0: memory_bytes + 16 GiB
  uint64_t file_bytes = uint64_t{256} << 20;     // RLIMIT_FSIZE
  uint64_t scratch_bytes = uint64_t{256} << 20;  // size of the writable tmpfs on /tmp
  uint32_t processes = 64;                       // threads count too; cgroup pids, RLIMIT_NPROC
  double cpu_seconds = 600;                      // RLIMIT_CPU, a backstop
};

struct SandboxRequest {
  std::vector<std::string> arguments;  // argv inside; arguments[0] is an absolute path inside
  std::map<std::string, std::string> environment;
  std::vector<SandboxFile> files;
  std::vector<SandboxBind>
      binds;  // besides the system's own folders (/usr, /lib*, /bin, parts of /etc)
  std::vector<std::string> devices;  // nodes below /dev that it may open, write and control
  std::vector<std::pair<int, int>> descriptors;  // (ours, number inside); numbers from 3 to 59
  std::vector<int> cpus;                         // affinity; empty: all
  SandboxLimits limits;
  bool may_start_processes = false;  // builders, and python hosts until they lock down
  // Internet sockets in its own network namespace, which has a loopback and nothing else: for tools
  // whose parts talk so to each other.
  bool may_use_loopback = false;
};

// How a sandboxed command ended.
struct SandboxExit {
  bool exited = false;         // false: killed by a signal, or still running when killed by us
  int status = 0;              // exit status, or the signal
  bool out_of_memory = false;  // as the cgroup counted it, or the peak stood at the limit
  double cpu_seconds =
      0;  // of the command and what it waited for; killed by us: of what ran then, with a cgroup
  uint64_t peak_memory_bytes = 0;
};

// What became of the attempts to break out of the sandbox that are made before it is trusted.
struct SelfTestReport {
  struct Breach {
    std::string attempt;  // "kernel-settings"
    std::string detail;   // what it could do; empty where the name says it
  };
  int tried = 0;
  std::vector<std::string> skipped;  // attempts that this kernel has nothing against
  std::vector<Breach> breaches;
};
// "kernel-settings (/proc/sys/kernel/core_pattern), sockets (family 2)"
std::string DescribeBreaches(const SelfTestReport& report);

// What isolation this machine allows. Probed once a process.
struct SandboxSupport {
  bool available = false;
  // When not available: one line saying what is missing and the command that mends it.
  std::string missing;
  // "bubblewrap 0.8.0, own uid, seccomp, landlock 7, cgroup v1 (memory, pids)"; begins with
  // "WEAK: " and what broke out where the self-test did.
  std::string isolation;
  SelfTestReport self_test;
  bool own_uid = false;
  int landlock_abi = 0;
  std::string memory_cgroup;  // folder under which groups can be made; empty: none
  std::string pids_cgroup;
};
const SandboxSupport& ProbeSandbox();

// What stands before anything foreign is run. Errors (kEnvironment): there is no sandbox here, or
// its self-test broke out of it and AllowWeakSandbox was not called.
Result<void> RequireSandbox();
// The user's --allow-weak-sandbox, for this process and for good.
void AllowWeakSandbox();

struct SandboxTools;
struct ToolRun;

// A running sandbox. Destroying it kills everything inside and removes its cgroup. Use from one
// thread at a time; the thread that starts it must outlive it (the kernel ties --die-with-parent to
// the thread).
class Sandbox {
 public:
  // Returns once the command was executed inside, so that what keeps it from starting is an Error
  // (kEnvironment) and never a finding about the command.
  static Result<Sandbox> Start(const SandboxRequest& request);
  // The same in two steps, so that several start at a time: mounting takes some 10 ms of each. All
  // else waits for AwaitStarted(), but that it may be destroyed before.
  // `artifact_path`: a file below /tmp that the command writes, for Artifact(); may be empty.
  static Result<Sandbox> Begin(const SandboxRequest& request,
                               const std::string& artifact_path = "");
  Result<void> AwaitStarted();
  Sandbox(Sandbox&&) noexcept;
  Sandbox& operator=(Sandbox&&) noexcept;
  ~Sandbox();

  // Waits for the end; nullopt-like Result error only on a system failure. Kills at the deadline:
  // then exited is false and `timed_out` below is true. Kills as well when `stop` says so:
  // Error kInterrupted.
  Result<SandboxExit> Wait(Deadline deadline, StopToken stop = {});
  void Kill();  // everything inside, at once; idempotent
  bool timed_out() const;
  int pidfd() const;  // readable once the sandbox ended
  // After Wait(): the content of the file; empty where it was not written, which Output() then
  // tells, or the command did not exit with 0.
  Result<std::string> Artifact();
  // What it printed so far on stdout and stderr together, at most 64 KiB; the rest is discarded
  // without blocking it.
  std::string Output();

 private:
  friend Result<ToolRun> RunToolWith(const SandboxTools& tools, const SandboxRequest& request,
                                     const std::string& artifact_path, Deadline deadline,
                                     StopToken stop);  // support.h
  static Result<Sandbox> BeginWith(const SandboxTools& tools, const SandboxRequest& request,
                                   const std::string& artifact_path);
  static Result<Sandbox> StartWith(const SandboxTools& tools, const SandboxRequest& request,
                                   const std::string& artifact_path);
  struct State;
  explicit Sandbox(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A command run to its end whose product is one file.
struct ToolRun {
  SandboxExit exit;
  bool timed_out = false;
  std::string output;    // stdout and stderr, capped
  std::string artifact;  // content of `artifact_path`, empty when it was not written
};
// Runs the request's command under `confine --artifact`; artifact_path lies in /tmp inside.
// artifact_path may be empty. Error kInterrupted when `stop` stopped it.
Result<ToolRun> RunToolInSandbox(SandboxRequest request, const std::string& artifact_path,
                                 Deadline deadline, StopToken stop = {});

// The BPF program (an array of struct sock_filter) that a host installs on itself, on all its
// threads, before it runs foreign code in blocks: no new processes, no exec, no memfd, no sockets,
// no ptrace, no affinity or priority changes, no timers that send signals. `kill` true: starting a
// process ends the host with SIGSYS; false: it gets EPERM.
std::string LockdownProgram(bool kill);

// The folder that holds Assay's own helpers (confine, native_host, breakout, libassay_host.so,
// python/): beside the running binary (lib/assay) or in the installation (../lib/assay);
// $ASSAY_SUPPORT overrides it.
Result<std::string> SupportFolder();

}  // namespace assay
