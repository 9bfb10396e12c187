#include "cli/local_runners.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/options.h"

namespace assay {
namespace {

constexpr int64_t kFirstPauseMs = 1000, kPauseMaxMs = 60'000, kSoundAfterMs = 60'000;

}  // namespace

LocalRunners::LocalRunners(std::string program, std::string server, std::string token_file,
                           const std::vector<std::string>& devices,
                           std::vector<std::string> more_arguments)
    : program_(std::move(program)),
      server_(std::move(server)),
      token_file_(std::move(token_file)),
      more_arguments_(std::move(more_arguments)) {
  for (const std::string& device : devices) runners_.push_back({device});
}

LocalRunners::~LocalRunners() {
  for (const Runner& runner : runners_) {
    if (runner.pid == 0) continue;
    ::kill(runner.pid, SIGKILL);
    ::waitpid(runner.pid, nullptr, 0);
  }
}

void LocalRunners::Start(Runner* runner, int64_t now_ms) {
  std::vector<std::string> words{
      program_,    "worker",   "--server",     server_,  "--token-file",
      token_file_, "--device", runner->device, "--name", "local " + runner->device};
  words.insert(words.end(), more_arguments_.begin(), more_arguments_.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid == 0) {
    ::setpgid(0, 0);  // Ctrl-C is the server's to hear
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(127);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  runner->started_ms = now_ms;
  if (pid > 0) {
    runner->pid = pid;
    return;
  }
  Notice(fmt::format("cannot start a runner: {}", std::strerror(errno)));
  runner->start_at_ms = now_ms + kPauseMaxMs;
}

void LocalRunners::Reap(Runner* runner, int64_t now_ms) {
  int status = 0;
  if (runner->pid == 0 || ::waitpid(runner->pid, &status, WNOHANG) != runner->pid) return;
  runner->pid = 0;
  if (ending_) return;
  const bool was_sound = now_ms - runner->started_ms >= kSoundAfterMs;
  runner->pause_ms = was_sound || runner->pause_ms == 0
                         ? kFirstPauseMs
                         : std::min(2 * runner->pause_ms, kPauseMaxMs);
  runner->start_at_ms = now_ms + runner->pause_ms;
  const std::string how = WIFSIGNALED(status)
                              ? fmt::format("was killed by signal {}", WTERMSIG(status))
                              : fmt::format("ended with exit code {}", WEXITSTATUS(status));
  Notice(fmt::format("the runner for {} {}; it is started again in {} s", runner->device, how,
                     runner->pause_ms / 1000));
}

void LocalRunners::Tend(int64_t now_ms) {
  for (Runner& runner : runners_) {
    Reap(&runner, now_ms);
    if (!ending_ && runner.pid == 0 && now_ms >= runner.start_at_ms) Start(&runner, now_ms);
  }
}

void LocalRunners::Interrupt() {
  ending_ = true;
  for (const Runner& runner : runners_)
    if (runner.pid != 0) ::kill(runner.pid, SIGINT);
}

bool LocalRunners::AllEnded() {
  for (Runner& runner : runners_) Reap(&runner, 0);
  return std::ranges::all_of(runners_, [](const Runner& runner) { return runner.pid == 0; });
}

}  // namespace assay
