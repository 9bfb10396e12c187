// Ends a host, by itself or by force, and describes its end.
#include <fmt/format.h>
#include <signal.h>

#include <cstring>

#include "base/clock.h"
#include "base/trace.h"
#include "hosts/blame.h"
#include "hosts/host.h"
#include "wire/channel.h"

namespace assay {

using wire::Frame;
using wire::FrameKind;
using Kind = HostTrouble::Kind;

namespace {

std::string SignalText(int signal) {
  const char* name = ::sigabbrev_np(signal);
  const char* description = ::sigdescr_np(signal);
  return fmt::format("SIG{} ({})", name != nullptr ? name : std::to_string(signal),
                     description != nullptr ? description : "unknown signal");
}

}  // namespace

HostResult<HostLegacy> Host::Quit(double timeout_s) {
  const Span span("quit");
  if (auto posted = Post(FrameKind::kQuit, {}); !posted) return std::unexpected(posted.error());
  const auto exit = sandbox_->Wait(Deadline::AfterSeconds(timeout_s), stop_);
  if (!exit && exit.error().kind == ErrorKind::kInterrupted)
    return HostFailed(Kind::kInterrupted, exit.error().message);
  if (!exit) return HostFailed(Kind::kEnvironment, exit.error().message);
  if (sandbox_->timed_out()) return std::unexpected(TimedOut("quitting", timeout_s));
  if (!exit->exited || exit->status != 0) return std::unexpected(Death("as it quit"));
  auto artifact = sandbox_->Artifact();
  if (!artifact) return HostFailed(Kind::kEnvironment, artifact.error().message);
  return HostLegacy{Output(), std::move(*artifact)};
}

HostTrouble Host::TimedOut(std::string_view doing, double timeout_s) {
  HostTrouble trouble;
  trouble.kind = Kind::kTimedOut;
  trouble.message = fmt::format("no answer within {:.1f} s while {}", timeout_s, doing);
  trouble.output = Output();
  sandbox_->Kill();
  return trouble;
}

HostTrouble Host::Forgery() {
  sandbox_->Kill();
  return {Kind::kFoul,
          {},
          "the host sent a malformed message to the judge",
          "forged-message",
          Output()};
}

HostResult<void> Host::LookForFrames(std::string_view doing) {
  Frame frame;
  switch (wire::ReceiveFrame(socket_.get(), &frame, 0)) {
    case wire::Receive::kTimeout:
      return {};
    case wire::Receive::kClosed:
      return std::unexpected(Death(fmt::format("while {}", doing)));
    case wire::Receive::kMalformed:
      return std::unexpected(Forgery());
    case wire::Receive::kFrame:
      break;
  }
  HostTrouble trouble;
  const std::string said = Message();
  // Whatever it answers is no word on the judge's machine or on the problem.
  trouble.kind = SaysOutOfMemory(said) ? Kind::kOutOfMemory : Kind::kDied;
  trouble.message = fmt::format("the host stopped {}{}{}", doing, said.empty() ? "" : ": ", said);
  trouble.output = Output();
  sandbox_->Kill();
  return std::unexpected(std::move(trouble));
}

HostTrouble Host::Death(std::string_view doing) {
  HostTrouble trouble;
  trouble.kind = Kind::kDied;
  auto exit = sandbox_->Wait(Deadline::AfterSeconds(end_timeout_s_));
  trouble.output = Output();
  if (!exit) {
    // Once it runs, whose code it runs is to blame, not the machine: others are judged all the
    // same.
    if (!freezer_) trouble.kind = Kind::kEnvironment;
    trouble.message = fmt::format("{} ({})", exit.error().message, doing);
    return trouble;
  }
  if (exit->out_of_memory) {
    trouble.kind = Kind::kOutOfMemory;
    trouble.at_limit = true;
    trouble.message = fmt::format("the process reached its memory limit {}", doing);
    return trouble;
  }
  if (sandbox_->timed_out()) {
    trouble.message = fmt::format("the process hung {} and was killed", doing);
    return trouble;
  }
  // One that ends before it has greeted the judge has no report yet.
  const wire::Report* const said = report_.as<wire::Report>();
  if (said != nullptr && said->fault == wire::Fault::kDevice) {
    trouble.message = fmt::format("{} {}", Message(), doing);
    return trouble;
  }
  const int signal = exit->exited ? 0 : exit->status;
  if (signal == SIGSYS) {
    trouble.kind = Kind::kFoul;
    trouble.rule = "process-creation";
    trouble.message = "it tried to start a process, which the sandbox refuses";
    return trouble;
  }
  if (signal != 0)
    trouble.message = fmt::format("the process was ended by {} {}", SignalText(signal), doing);
  else
    trouble.message =
        fmt::format("the process ended itself with exit code {} {}", exit->status, doing);
  return trouble;
}

std::string Host::Message() const {
  const wire::Report* report = report_.as<wire::Report>();
  if (report == nullptr) return {};
  std::string text(report->message, ::strnlen(report->message, wire::kMessageBytes));
  std::erase_if(text, [](unsigned char c) { return c < 32 && c != '\n' && c != '\t'; });
  return text;
}

std::optional<wire::Failure> Host::Failure() const {
  const wire::Report* report = report_.as<wire::Report>();
  if (report == nullptr || report->failure == 0) return std::nullopt;
  return static_cast<wire::Failure>(report->failure);
}

}  // namespace assay
