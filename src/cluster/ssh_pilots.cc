#include "cluster/ssh_pilots.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/pipe.h"
#include "cluster/pilot_script.h"

namespace assay {
namespace {

constexpr int kGoodbyeLooks = 50, kGoodbyeLookMs = 100;

// In the child, up to the exec: only calls that are safe there.
[[noreturn]] void BecomeSsh(pid_t parent, int input, int log, char* const* arguments) {
  ::setpgid(0, 0);  // Ctrl-C is the controller's to hear
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(input, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execvp(arguments[0], arguments);
  ::_exit(127);
}

}  // namespace

SshPilots::SshPilots(SshPilotTerms terms, std::function<int64_t()> now_ns)
    : terms_(std::move(terms)), now_ns_(std::move(now_ns)) {
  for (const std::string& name : terms_.hosts) hosts_.push_back({name});
}

SshPilots::~SshPilots() { End(); }

Result<void> SshPilots::Start(Host* host) {
  ASSAY_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  host->input = std::move(pipe.write);
  const std::string path = (std::filesystem::path(terms_.logs) / (host->name + ".log")).string();
  const UniqueFd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log) return EnvironmentError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  std::vector<std::string> words{"ssh",
                                 "-o",
                                 "BatchMode=yes",
                                 "-o",
                                 "ConnectTimeout=10",
                                 "--",
                                 host->name,
                                 "bash -c " + ShellWord(terms_.script)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) return EnvironmentError(fmt::format("cannot start ssh: {}", std::strerror(errno)));
  if (pid == 0) BecomeSsh(parent, pipe.read.get(), log.get(), arguments.data());
  host->pid = pid;
  host->started_s = Now();
  return {};
}

std::string SshPilots::Reap(Host* host) {
  int status = 0;
  if (host->pid == 0 || ::waitpid(host->pid, &status, WNOHANG) != host->pid) return "";
  host->pid = 0;
  host->input = UniqueFd();
  const bool was_sound = Now() - host->started_s >= terms_.sound_s;
  host->failures = was_sound ? 1 : host->failures + 1;
  host->pause_s = was_sound || !(host->pause_s > 0)
                      ? terms_.first_pause_s
                      : std::min(2 * host->pause_s, terms_.pause_max_s);
  host->start_at_s = Now() + host->pause_s;
  return fmt::format(
      "the worker on {} {}; {}/{}.log says why; {}", host->name,
      WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                          : fmt::format("ended with exit code {}", WEXITSTATUS(status)),
      terms_.logs, host->name,
      IsGivenUp(*host) ? std::string("the host is given up")
                       : fmt::format("it is started again in {:.0f} s", host->pause_s));
}

Result<std::vector<std::string>> SshPilots::Tend(const PilotDemand& demand,
                                                 std::span<const KnownWorker>) {
  std::vector<std::string> lines;
  for (Host& host : hosts_) {
    if (std::string line = Reap(&host); !line.empty()) lines.push_back(std::move(line));
    if (host.pid == 0 && demand.works_left > 0 && !IsGivenUp(host) && Now() >= host.start_at_s)
      ASSAY_RETURN_IF_ERROR(Start(&host));
  }
  if (std::ranges::all_of(hosts_, [&](const Host& host) { return IsGivenUp(host); }))
    return UsageError(
        fmt::format("no worker stays on any host: {} has a log of each", terms_.logs));
  return lines;
}

void SshPilots::Forgive() {
  for (Host& host : hosts_) host.failures = 0;
}

void SshPilots::End() {
  for (Host& host : hosts_) host.input = UniqueFd();
  for (int look = 0; look < kGoodbyeLooks; ++look) {
    bool any = false;
    for (Host& host : hosts_) {
      if (host.pid != 0 && ::waitpid(host.pid, nullptr, WNOHANG) == host.pid) host.pid = 0;
      any = any || host.pid != 0;
    }
    if (!any) return;
    ::poll(nullptr, 0, kGoodbyeLookMs);
  }
  for (Host& host : hosts_) {
    if (host.pid == 0) continue;
    ::kill(-host.pid, SIGKILL);
    ::kill(host.pid, SIGKILL);
    while (::waitpid(host.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    host.pid = 0;
  }
}

}  // namespace assay
