// One sandbox for everything that runs foreign code: bubblewrap with its own namespaces, a
// read-only root, a seccomp filter, Landlock, rlimits, a cgroup if one is writable, no inherited
// descriptors or environment, and a uid of its own if root starts it. Killed as a group.
// docs/sandbox.md lists the measures and their tests.
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

// A file that appears read-only inside with the given content. It is a copy, so no path of the
// host's leaks.
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
  uint64_t memory_bytes = uint64_t{4} << 30;     // by the cgroup, if there is one
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
  std::vector<std::pair<int, int>> descriptors;  // (ours, number inside); numbers 3 to 59
  std::vector<int> cpus;                         // affinity; empty: all
  SandboxLimits limits;
  bool may_start_processes = false;  // builders, and python hosts until they lock down
  // Allows internet sockets in its own network namespace, which has only a loopback: for tools
  // whose parts talk over it.
  bool may_use_loopback = false;
};

// The end of a sandboxed command.
struct SandboxExit {
  bool exited = false;         // false: killed by a signal, the judge's or another
  int status = 0;              // exit status, or the signal
  bool out_of_memory = false;  // by the cgroup's count; without a cgroup, by the peak
  double cpu_seconds =
      0;  // of it and awaited children; if the judge killed it: of what ran then (by the cgroup)
  uint64_t peak_memory_bytes = 0;
};

// The results of the attempts to break out of the sandbox that are made before it is trusted.
struct SelfTestReport {
  struct Breach {
    std::string attempt;  // "kernel-settings"
    std::string detail;   // the effect; empty if the name tells it
  };
  int tried = 0;
  std::vector<std::string> skipped;  // attempts against which this kernel has no defence
  std::vector<Breach> breaches;
};
// Returns "kernel-settings (/proc/sys/kernel/core_pattern), sockets (family 2)".
std::string DescribeBreaches(const SelfTestReport& report);

// The isolation that this machine allows. Probed once a process.
struct SandboxSupport {
  bool available = false;
  // If not available: one line that names the missing part and the command that mends it.
  std::string missing;
  bool lacks_bubblewrap = false;  // that part is bubblewrap, which is not installed
  // "bubblewrap 0.8.0, own uid, seccomp, landlock 7, cgroup v1 (memory, pids)". If the self-test
  // broke out, it begins with "WEAK: " and the breaches.
  std::string isolation;
  SelfTestReport self_test;
  bool own_uid = false;
  int landlock_abi = 0;
  std::string memory_cgroup;  // folder under which groups can be made; empty: none
  std::string pids_cgroup;
};
const SandboxSupport& ProbeSandbox();

// Must succeed before anything foreign runs. Errors (kEnvironment): this machine has no sandbox, or
// the self-test broke out of it and AllowWeakSandbox was not called.
Result<void> RequireSandbox();
// The user's --allow-weak-sandbox, for the rest of this process.
void AllowWeakSandbox();

struct SandboxTools;
struct ToolRun;

// A running sandbox. Destroying it kills everything inside and removes its cgroup. Use from one
// thread at a time; the thread that starts it must outlive it (the kernel ties --die-with-parent to
// the thread).
class Sandbox {
 public:
  // Returns once the command is executed inside. A failure before that is an Error (kEnvironment),
  // never a finding about the command.
  static Result<Sandbox> Start(const SandboxRequest& request);
  // The same in two steps, so that several sandboxes start side by side. Between them the only
  // call allowed is destruction.
  // `artifact_path`: a file below /tmp that the command writes, for Artifact(); may be empty.
  static Result<Sandbox> Begin(const SandboxRequest& request,
                               const std::string& artifact_path = "");
  Result<void> AwaitStarted();
  Sandbox(Sandbox&&) noexcept;
  Sandbox& operator=(Sandbox&&) noexcept;
  ~Sandbox();

  // Waits for the end. At the deadline it kills: then `exited` is false and timed_out() is true.
  // Errors: kInterrupted when `stop` is stopped (it kills, too); kEnvironment on a system failure.
  Result<SandboxExit> Wait(Deadline deadline, StopToken stop = {});
  void Kill();  // everything inside, at once; idempotent
  bool timed_out() const;
  int pidfd() const;  // readable once the sandbox has ended
  // After Wait(): returns the content of the file; empty if the command did not exit with 0 or did
  // not write it. Output() says so if the file is too large or not regular.
  Result<std::string> Artifact();
  // Returns its output so far, stdout and stderr together, at most 64 KiB: the middle is
  // discarded, without blocking it.
  std::string Output();

 private:
  friend Result<ToolRun> RunToolWith(const SandboxTools& tools, const SandboxRequest& request,
                                     const std::string& artifact_path, Deadline deadline,
                                     StopToken stop);  // support.h
  static Result<Sandbox> BeginWith(const SandboxTools& tools, const SandboxRequest& request,
                                   const std::string& artifact_path);
  static Result<Sandbox> StartWith(const SandboxTools& tools, const SandboxRequest& request,
                                   const std::string& artifact_path);
  friend class SelfTestTrial;
  struct State;
  explicit Sandbox(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The result of a command that runs to its end and produces one file.
struct ToolRun {
  SandboxExit exit;
  bool timed_out = false;
  std::string output;    // stdout and stderr, capped
  std::string artifact;  // as from Sandbox::Artifact()
};
// Runs the request's command to its end. `artifact_path`: as for Sandbox::Begin(). Errors:
// kInterrupted when `stop` is stopped; kEnvironment.
Result<ToolRun> RunToolInSandbox(SandboxRequest request, const std::string& artifact_path,
                                 Deadline deadline, StopToken stop = {});

// Returns the BPF program (an array of struct sock_filter) that a host installs on all its threads
// before it runs foreign code in blocks: no new processes, no exec, no memfd, no sockets, no
// ptrace, no affinity or priority changes, no timers that send signals. `kill` true: starting a
// process ends the host with SIGSYS; false: it gets EPERM.
std::string LockdownProgram(bool kill);

// Finds the folder of Assay's own helpers (confine, native_host, breakout, libassay_host.so,
// python/): beside the running binary (lib/assay) or in the installation (../lib/assay);
// $ASSAY_SUPPORT overrides it. Errors (kEnvironment): not there.
Result<std::string> SupportFolder();

}  // namespace assay
