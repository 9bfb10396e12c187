// Theory of operation. Three processes stand between the judge and the command: bubblewrap outside
// (the judge's child), bubblewrap as the first process of the pid namespace, and confine inside.
// The judge holds a pidfd of the first two. When the second has ended, the kernel has ended every
// process of the namespace: here "all gone" means this, not the end of the child.
// confine's lines on the report pipe say how the command itself ended.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/clock.h"
#include "base/trace.h"
#include "sandbox/cgroup.h"
#include "sandbox/launch.h"
#include "sandbox/sandbox.h"
#include "sandbox/support.h"

namespace assay {
namespace {

constexpr double kStartTimeoutSeconds = 30;
constexpr double kEndTimeoutSeconds = 10;
constexpr size_t kReportBytesMax = 4096;

// Appends what can be read now; of what exceeds the bound drops the middle. False at the end of the
// stream.
bool Drain(int fd, size_t bytes_max, std::string* text) {
  char buffer[16 * 1024];
  while (true) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    if (count == 0) return false;
    text->append(buffer, static_cast<size_t>(count));
    if (text->size() > bytes_max) text->erase(bytes_max / 2, text->size() - bytes_max);
  }
}

void KillByPidfd(const UniqueFd& pidfd) {
  if (pidfd) ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0u);
}

bool AwaitReadable(int fd, Deadline deadline) {
  pollfd watched{fd, POLLIN, 0};
  while (true) {
    const int ready = ::poll(&watched, 1, std::min(deadline.RemainingMs(), 60'000));
    if (ready > 0) return true;
    if (ready == 0 && deadline.Expired()) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// The line of a report that starts with `word`, without it.
std::optional<std::string> ReportLine(const std::string& report, std::string_view word) {
  size_t begin = 0;
  for (size_t end; (end = report.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string_view line(report.data() + begin, end - begin);
    if (line == word) return "";
    if (line.starts_with(word) && line[word.size()] == ' ')
      return std::string(line.substr(word.size() + 1));
  }
  return std::nullopt;
}

// bubblewrap's --info-fd: a JSON object of fixed form that starts with the pid of the namespace's
// first process, as this process sees it.
std::optional<pid_t> ParseChildPid(const std::string& info) {
  constexpr std::string_view kKey = "\"child-pid\":";
  const size_t key = info.find(kKey);
  int pid = 0, length = 0;
  if (key == std::string::npos ||
      std::sscanf(info.c_str() + key + kKey.size(), " %d%n", &pid, &length) != 1)
    return std::nullopt;
  const bool is_whole = key + kKey.size() + static_cast<size_t>(length) < info.size();
  return is_whole && pid > 0 ? std::optional(pid) : std::nullopt;
}

}  // namespace

struct Sandbox::State {
  ~State() { KillAndReap(); }

  Result<void> AwaitReady();
  Error StartFailure();
  void Kill();
  bool Reap();         // after the end of the child, or a kill: until every process is gone
  void KillAndReap();  // idempotent
  SandboxExit Conclude(int wait_status);

  Launched process;
  std::string command_name;
  Deadline start_deadline = Deadline::AfterSeconds(kStartTimeoutSeconds);
  bool ready = false;
  UniqueFd info;
  UniqueFd init;  // pidfd of the namespace's first process
  UniqueFd output, report, artifact;
  std::string output_text, report_text;
  ControlGroups groups;
  std::optional<UidLease> uid;
  uint64_t memory_bytes = 0, artifact_bytes_max = 0;
  double live_cpu_seconds = 0;  // at the kill
  int wait_status = 0;
  bool reaped = false, killed = false, past_deadline = false, timed_out = false;
  std::optional<SandboxExit> exit;
};

Sandbox::Sandbox(std::unique_ptr<State> state) : state_(std::move(state)) {}
Sandbox::Sandbox(Sandbox&&) noexcept = default;
Sandbox& Sandbox::operator=(Sandbox&&) noexcept = default;
Sandbox::~Sandbox() = default;

void Sandbox::State::Kill() {
  if (killed || reaped) return;
  killed = true;
  live_cpu_seconds = groups.LiveCpuSeconds();
  KillByPidfd(init);
  KillByPidfd(process.pidfd);
}

bool Sandbox::State::Reap() {
  if (reaped) return true;
  const Deadline deadline = Deadline::AfterSeconds(kEndTimeoutSeconds);
  if (!AwaitReadable(process.pidfd.get(), deadline)) return false;
  // The child ended first: it kills the namespace by its death, and this makes sure.
  KillByPidfd(init);
  if (init && !AwaitReadable(init.get(), deadline)) return false;
  while (::waitpid(process.pid, &wait_status, 0) < 0 && errno == EINTR) {
  }
  reaped = true;
  return true;
}

void Sandbox::State::KillAndReap() {
  if (process.pid <= 0) return;
  // bubblewrap's two processes tie their lives together as they start, and not at once.
  if (!ready && !reaped) [[maybe_unused]]
    const auto started = AwaitReady();
  Kill();
  Reap();
  groups.Remove();
  uid.reset();
}

Error Sandbox::State::StartFailure() {
  Kill();
  Reap();
  Drain(output.get(), kOutputBytesMax, &output_text);
  Drain(report.get(), kReportBytesMax, &report_text);
  char stage[16] = "";
  int error = 0;
  if (const auto failed = ReportLine(report_text, "failed");
      failed && std::sscanf(failed->c_str(), "%15s %d", stage, &error) == 2) {
    if (std::string_view(stage) == "exec")
      return Error{ErrorKind::kEnvironment, fmt::format("{} cannot be run in the sandbox: {}",
                                                        command_name, strerror(error))};
    return Error{ErrorKind::kEnvironment,
                 fmt::format("the sandbox cannot set up its {}: {}", stage, strerror(error))};
  }
  std::string said = output_text.substr(0, 1000);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  if (said.empty())
    said = past_deadline
               ? fmt::format("nothing within {:.0f} s", kStartTimeoutSeconds)
               : "it ended before it was ready, and printed nothing: assay doctor tests the "
                 "sandbox";
  if (uid && said.find("Permission denied") != std::string::npos)
    said +=
        " (started by root, a sandbox has a user id of its own, which may not look below private "
        "folders)";
  return Error{ErrorKind::kEnvironment, "the sandbox does not start: " + said};
}

Result<void> Sandbox::State::AwaitReady() {
  if (ready) return {};
  const Deadline deadline = start_deadline;
  std::string info_text;
  pollfd watched[] = {
      {info.get(), POLLIN, 0}, {report.get(), POLLIN, 0}, {process.pidfd.get(), POLLIN, 0}};
  while (true) {
    const int count = ::poll(watched, 3, deadline.RemainingMs());
    if (count < 0 && errno != EINTR) break;
    if (count == 0 && deadline.Expired()) {
      past_deadline = true;
      break;
    }
    if (watched[0].revents != 0 && !Drain(info.get(), kReportBytesMax, &info_text))
      watched[0].fd = -1;
    if (watched[1].revents != 0 && !Drain(report.get(), kReportBytesMax, &report_text))
      watched[1].fd = -1;
    if (const auto pid = ParseChildPid(info_text); pid && !init) {
      init = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0u)));
      // ESRCH: it has ended already, and with it the namespace.
      if (!init && errno != ESRCH) break;
    }
    if (ReportLine(report_text, "ready") && ParseChildPid(info_text)) {
      ready = true;
      info = UniqueFd();
      return {};
    }
    if (ReportLine(report_text, "failed") || (watched[2].revents & POLLIN) != 0) break;
  }
  return std::unexpected(StartFailure());
}

Result<Sandbox> Sandbox::BeginWith(const SandboxTools& tools, const SandboxRequest& request,
                                   const std::string& artifact_path) {
  auto state = std::make_unique<State>();
  state->memory_bytes = request.limits.memory_bytes;
  state->artifact_bytes_max = request.limits.file_bytes;
  if (tools.own_uid) {
    state->uid = UidLease::Take();
    if (!state->uid) return EnvironmentError("too many sandboxes at once: at most 64");
  }
  // bubblewrap's two processes and confine are in the group too.
  ASSAY_ASSIGN_OR_RETURN(state->groups,
                         ControlGroups::Create(tools.groups, request.limits.memory_bytes,
                                               request.limits.processes + 3));
  ASSAY_ASSIGN_OR_RETURN(SandboxCommand command,
                         MakeCommand(tools.bubblewrap, tools.confine, tools.filters, request,
                                     state->groups.has_memory(), artifact_path));
  state->command_name = request.arguments[0];
  state->start_deadline = Deadline::AfterSeconds(kStartTimeoutSeconds);
  ASSAY_ASSIGN_OR_RETURN(state->process,
                         Launch(command, state->groups.entries(), request.cpus, state->uid));
  state->output = std::move(command.output);
  state->report = std::move(command.report);
  state->artifact = std::move(command.artifact);
  state->info = std::move(command.info);
  return Sandbox(std::move(state));
}

Result<Sandbox> Sandbox::StartWith(const SandboxTools& tools, const SandboxRequest& request,
                                   const std::string& artifact_path) {
  ASSAY_ASSIGN_OR_RETURN(Sandbox sandbox, BeginWith(tools, request, artifact_path));
  ASSAY_RETURN_IF_ERROR(sandbox.AwaitStarted());
  return sandbox;
}

Result<Sandbox> Sandbox::Begin(const SandboxRequest& request, const std::string& artifact_path) {
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  return BeginWith(ProbedSandboxTools(), request, artifact_path);
}

Result<void> Sandbox::AwaitStarted() { return state_->AwaitReady(); }

Result<Sandbox> Sandbox::Start(const SandboxRequest& request) {
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  return StartWith(ProbedSandboxTools(), request, "");
}

SandboxExit Sandbox::State::Conclude(int status) {
  SandboxExit result;
  long long cpu_us = 0;
  long peak_kib = 0;
  const auto ended = ReportLine(report_text, "ended");
  int command_status = 0;
  if (ended &&
      std::sscanf(ended->c_str(), "%d %lld %ld", &command_status, &cpu_us, &peak_kib) == 3) {
    result.exited = WIFEXITED(command_status);
    result.status = result.exited ? WEXITSTATUS(command_status) : WTERMSIG(command_status);
    result.cpu_seconds = static_cast<double>(cpu_us) / 1e6;
    result.peak_memory_bytes = static_cast<uint64_t>(peak_kib) * 1024;
  } else if (killed || WIFSIGNALED(status)) {
    result.status = killed ? SIGKILL : WTERMSIG(status);
    result.cpu_seconds = live_cpu_seconds;
    timed_out = past_deadline;
  } else {
    // confine itself was killed: bubblewrap tells a signal as 128 + its number.
    result.status = WEXITSTATUS(status) > 128 ? WEXITSTATUS(status) - 128 : SIGKILL;
  }
  result.peak_memory_bytes = groups.PeakMemoryBytes().value_or(result.peak_memory_bytes);
  const bool good = result.exited && result.status == 0;
  result.out_of_memory = groups.has_memory()
                             ? groups.OutOfMemory()
                             : !good && result.peak_memory_bytes >= memory_bytes / 10 * 9;
  return result;
}

Result<SandboxExit> Sandbox::Wait(Deadline deadline, StopToken stop) {
  State& state = *state_;
  constexpr int kLookMs = 100;
  bool interrupted = false;
  if (state.exit) return *state.exit;
  pollfd watched[] = {{state.process.pidfd.get(), POLLIN, 0}, {state.output.get(), POLLIN, 0}};
  while ((watched[0].revents & POLLIN) == 0) {
    const int count = ::poll(watched, 2, std::min(deadline.RemainingMs(), kLookMs));
    if (count < 0 && errno != EINTR)
      return EnvironmentError(fmt::format("poll failed: {}", strerror(errno)));
    if (watched[1].revents != 0 && !Drain(state.output.get(), kOutputBytesMax, &state.output_text))
      watched[1].fd = -1;
    interrupted = stop.stopped();
    if ((watched[0].revents & POLLIN) == 0 && interrupted) {
      state.Kill();
      break;
    }
    if ((watched[0].revents & POLLIN) == 0 && deadline.Expired()) {
      state.past_deadline = true;
      state.Kill();
      break;
    }
  }
  if (!state.Reap()) {
    return EnvironmentError(
        fmt::format("process {} of the sandbox does not end within {:.0f} s of being killed; its "
                    "kernel calls hang",
                    state.process.pid, kEndTimeoutSeconds));
  }
  Drain(state.output.get(), kOutputBytesMax, &state.output_text);
  Drain(state.report.get(), kReportBytesMax, &state.report_text);
  state.exit = state.Conclude(state.wait_status);
  state.groups.Remove();
  state.uid.reset();
  if (interrupted) return Fail(ErrorKind::kInterrupted, "interrupted");
  return *state.exit;
}

void Sandbox::Kill() { state_->Kill(); }
bool Sandbox::timed_out() const { return state_->timed_out; }
int Sandbox::pidfd() const { return state_->process.pidfd.get(); }

std::string Sandbox::Output() {
  Drain(state_->output.get(), kOutputBytesMax, &state_->output_text);
  return state_->output_text;
}

// ---- tools

namespace {

Result<std::string> ReadArtifact(int fd, uint64_t bytes_max) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || static_cast<uint64_t>(status.st_size) > bytes_max)
    return EnvironmentError("the sandbox's product cannot be read");
  std::string content(static_cast<size_t>(status.st_size), '\0');
  for (size_t done = 0; done < content.size();) {
    const ssize_t count =
        ::pread(fd, content.data() + done, content.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return EnvironmentError("the sandbox's product cannot be read");
    done += static_cast<size_t>(count);
  }
  return content;
}

}  // namespace

Result<std::string> Sandbox::Artifact() {
  State& state = *state_;
  ASSAY_CHECK(state.exit.has_value());
  if (!state.artifact || !state.exit->exited || state.exit->status != 0) return std::string();
  const auto trouble = ReportLine(state.report_text, "artifact");
  if (!trouble) return ReadArtifact(state.artifact.get(), state.artifact_bytes_max);
  if (*trouble == "unwritable")
    return EnvironmentError("the sandbox's product cannot be copied: no memory left");
  if (*trouble == "large")
    state.output_text += fmt::format("\nthe product is larger than the limit of {} bytes\n",
                                     state.artifact_bytes_max);
  if (*trouble == "irregular") state.output_text += "\nthe product is not a regular file\n";
  return std::string();
}

Result<ToolRun> RunToolInSandbox(SandboxRequest request, const std::string& artifact_path,
                                 Deadline deadline, StopToken stop) {
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  return RunToolWith(ProbedSandboxTools(), request, artifact_path, deadline, stop);
}

Result<ToolRun> RunToolWith(const SandboxTools& tools, const SandboxRequest& request,
                            const std::string& artifact_path, Deadline deadline, StopToken stop) {
  const int64_t begin_ns = MonotonicNs();
  ASSAY_ASSIGN_OR_RETURN(Sandbox sandbox, Sandbox::StartWith(tools, request, artifact_path));
  AddSpan("a tool's sandbox starts", begin_ns, MonotonicNs());
  const Span span("a tool runs");
  ToolRun run;
  ASSAY_ASSIGN_OR_RETURN(run.exit, sandbox.Wait(deadline, stop));
  run.timed_out = sandbox.timed_out();
  ASSAY_ASSIGN_OR_RETURN(run.artifact, sandbox.Artifact());
  run.output = sandbox.Output();
  return run;
}

}  // namespace assay
