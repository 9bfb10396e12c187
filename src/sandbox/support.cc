#include "sandbox/support.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <sstream>

#include "base/clock.h"
#include "base/files.h"
#include "sandbox/launch.h"
#include "sandbox/seccomp.h"
#include "sandbox/self_test.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

struct Probe {
  SandboxTools tools;
  SandboxSupport support;
};

// What `path argument` prints on stdout, at most 64 KiB and 10 s; nullopt when it does not run or
// fails.
std::optional<std::string> Capture(const std::string& path, const char* argument) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), 1);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  const char* arguments[] = {path.c_str(), argument, nullptr};
  char* environment[] = {nullptr};
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, path.c_str(), &actions, nullptr,
                                  const_cast<char**>(arguments), environment);
  ::posix_spawn_file_actions_destroy(&actions);
  write_end.Close();
  if (error != 0) return std::nullopt;
  const Deadline deadline = Deadline::AfterSeconds(10);
  std::string text;
  char buffer[4096];
  pollfd watched{read_end.get(), POLLIN, 0};
  while (text.size() < 64 * 1024 && !deadline.Expired()) {
    if (::poll(&watched, 1, deadline.RemainingMs()) <= 0) continue;  // a signal, or too late
    const ssize_t count = ::read(read_end.get(), buffer, sizeof buffer);
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  if (deadline.Expired()) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

std::string FindBubblewrap() {
  if (const char* chosen = ::getenv("ASSAY_BWRAP"); chosen != nullptr && *chosen != '\0')
    return ::access(chosen, X_OK) == 0 ? chosen : "";
  const char* variable = ::getenv("PATH");
  std::istringstream folders(std::string(variable != nullptr ? variable : "") +
                             ":/usr/bin:/usr/local/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (folder.starts_with('/') && ::access((folder + "/bwrap").c_str(), X_OK) == 0)
      return folder + "/bwrap";
  // A bundle brings its own.
  const auto support = SupportFolder();
  const std::string own = support ? *support + "/bwrap" : std::string();
  return !own.empty() && ::access(own.c_str(), X_OK) == 0 ? own : "";
}

bool KernelSetting(const char* path, std::string_view value) {
  const auto text = ReadFile(path, 64);
  return text && std::string_view(*text).substr(0, text->find('\n')) == value;
}

// The settings that are known to keep bubblewrap from making user namespaces, each with the command
// that mends it.
std::string HowToMend() {
  if (KernelSetting("/proc/sys/user/max_user_namespaces", "0"))
    return "user namespaces are switched off: run 'sysctl -w user.max_user_namespaces=15000' as "
           "root";
  if (KernelSetting("/proc/sys/kernel/unprivileged_userns_clone", "0"))
    return "user namespaces are switched off: run 'sysctl -w kernel.unprivileged_userns_clone=1' "
           "as root";
  if (KernelSetting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
    return "AppArmor refuses user namespaces to bubblewrap: run 'sysctl -w "
           "kernel.apparmor_restrict_unprivileged_userns=0' as root, or install an AppArmor "
           "profile for it";
  return "in a container, allow it user namespaces (Docker: --security-opt seccomp=unconfined "
         "--security-opt systempaths=unconfined)";
}

std::string DescribeGroups(const GroupFolders& groups) {
  if (groups.version == 0) return "no cgroup";
  const bool both = !groups.memory.empty() && !groups.pids.empty();
  return fmt::format("cgroup v{} ({})", groups.version,
                     both                    ? "memory, pids"
                     : groups.memory.empty() ? "pids"
                                             : "memory");
}

int LandlockAbi() {
  constexpr unsigned kVersion = 1;  // LANDLOCK_CREATE_RULESET_VERSION
  return std::max(
      0, static_cast<int>(::syscall(SYS_landlock_create_ruleset, nullptr, size_t{0}, kVersion)));
}

// Fills in the tools; returns what is missing, or an empty text.
std::string FindTools(SandboxTools* tools) {
  Bubblewrap& bubblewrap = tools->bubblewrap;
  bubblewrap.path = FindBubblewrap();
  if (bubblewrap.path.empty())
    return "bubblewrap (bwrap), which makes the sandbox, was not found; install it (Debian: "
           "apt-get install bubblewrap)";
  const auto version = Capture(bubblewrap.path, "--version");
  const auto help = Capture(bubblewrap.path, "--help");
  if (!version || !help || !version->starts_with("bubblewrap "))
    return fmt::format(
        "{} does not run; reinstall bubblewrap (Debian: apt-get install --reinstall bubblewrap)",
        bubblewrap.path);
  bubblewrap.version = version->substr(0, version->find('\n')).substr(sizeof "bubblewrap " - 1);
  if (help->find("--disable-userns") == std::string::npos)
    return fmt::format("bubblewrap {} is too old: 0.8 or newer is needed", bubblewrap.version);
  auto folder = SupportFolder();
  if (!folder) return folder.error().message;
  auto confine = ReadFile(*folder + "/confine", 16 << 20);
  if (!confine) return confine.error().message;
  tools->confine = std::move(*confine);
  auto breakout = ReadFile(*folder + "/breakout", 16 << 20);
  if (!breakout) return breakout.error().message;
  tools->breakout = std::move(*breakout);
  auto base = BaseProgram(), no_processes = NoProcessProgram();
  auto loopback = BaseProgram(SocketFamilies::kUnixAndInternet);
  for (const auto* program : {&base, &no_processes, &loopback})
    if (!*program) return program->error().message;
  tools->filters = {std::move(*base), std::move(*no_processes), std::move(*loopback)};
  tools->own_uid = UidLease::Needed();
  tools->groups = FindGroupFolders();
  return {};
}

Probe RunProbe() {
  Probe probe;
  SandboxTools& tools = probe.tools;
  SandboxSupport& support = probe.support;
  support.missing = FindTools(&tools);
  support.lacks_bubblewrap = tools.bubblewrap.path.empty();
  if (!support.missing.empty()) return probe;
  auto self_test = RunSelfTest(tools);
  if (!self_test && tools.groups.version != 0) {
    // A group can be made but not entered: the sandbox works without.
    SandboxTools without = tools;
    without.groups = {};
    if (auto again = RunSelfTest(without); again) {
      tools = without;
      self_test = std::move(again);
    }
  }
  if (!self_test) {
    support.missing = fmt::format("{} ({})", self_test.error().message, HowToMend());
    return probe;
  }
  support.available = true;
  support.self_test = std::move(*self_test);
  support.own_uid = tools.own_uid;
  support.landlock_abi = LandlockAbi();
  support.memory_cgroup = tools.groups.memory;
  support.pids_cgroup = tools.groups.pids;
  support.isolation = fmt::format(
      "bubblewrap {}, {}, seccomp, {}, {}", tools.bubblewrap.version,
      tools.own_uid ? "own uid" : "the judge's uid",
      support.landlock_abi > 0 ? fmt::format("landlock {}", support.landlock_abi) : "no landlock",
      DescribeGroups(tools.groups));
  if (!support.self_test.breaches.empty())
    support.isolation =
        fmt::format("WEAK: {}; {}", DescribeBreaches(support.self_test), support.isolation);
  return probe;
}

const Probe& ProbeOnce() {
  static const Probe probe = RunProbe();
  return probe;
}

std::atomic<bool> weak_sandbox_allowed{false};

}  // namespace

const SandboxSupport& ProbeSandbox() { return ProbeOnce().support; }
const SandboxTools& ProbedSandboxTools() { return ProbeOnce().tools; }

void AllowWeakSandbox() { weak_sandbox_allowed = true; }

Result<void> RequireSandbox() {
  const SandboxSupport& support = ProbeSandbox();
  if (!support.available) return EnvironmentError(support.missing);
  if (support.self_test.breaches.empty() || weak_sandbox_allowed) return {};
  return EnvironmentError(fmt::format(
      "the sandbox does not hold on this machine, so nothing foreign is run. Its self-test could "
      "break out by: {}. Use your distribution's own bubblewrap and kernel, or a virtual machine; "
      "--allow-weak-sandbox goes on all the same, and is for candidates that you trust",
      DescribeBreaches(support.self_test)));
}

Result<std::string> SupportFolder() {
  if (const char* chosen = ::getenv("ASSAY_SUPPORT"); chosen != nullptr && *chosen != '\0') {
    if (::access((fs::path(chosen) / "confine").c_str(), X_OK) == 0) return std::string(chosen);
    return EnvironmentError(
        fmt::format("ASSAY_SUPPORT names {}, where Assay's helpers are not", chosen));
  }
  std::error_code code;
  const fs::path binary = fs::read_symlink("/proc/self/exe", code);
  const fs::path folder = binary.parent_path();
  for (const fs::path& choice :
       {folder, folder / "lib" / "assay", folder.parent_path() / "lib" / "assay"})
    if (::access((choice / "confine").c_str(), X_OK) == 0) return choice.string();
  return EnvironmentError(
      fmt::format("Assay's helpers are neither in {0}/lib/assay nor in {1}/lib/assay; rebuild or "
                  "reinstall it, or set ASSAY_SUPPORT",
                  folder.string(), folder.parent_path().string()));
}

}  // namespace assay
