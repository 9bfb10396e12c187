#include "hosts/blame.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "hosts/python_runtime.h"

namespace assay {

using Kind = HostTrouble::Kind;

namespace {

constexpr size_t kExceptionBytesMax = 400;

// The problem's file, or the candidate, needs what this machine lacks.
bool IsNotHere(const HostTrouble& trouble) {
  return trouble.kind == Kind::kFailed && (trouble.failure == wire::Failure::kProblemNotHere ||
                                           trouble.failure == wire::Failure::kCandidateNotHere);
}

}  // namespace

Error TroubleAsError(const HostTrouble& trouble, std::string_view what) {
  if (trouble.kind == Kind::kInterrupted) return {ErrorKind::kInterrupted, "interrupted"};
  const bool not_here = IsNotHere(trouble);
  const bool problem =
      trouble.kind == Kind::kFailed && trouble.failure < wire::Failure::kCandidateLoad && !not_here;
  std::string message = fmt::format("{}: {}", what, trouble.message);
  if (!problem && !trouble.output.empty()) message += "\n" + trouble.output;
  return {problem ? ErrorKind::kUsage : ErrorKind::kEnvironment, message, CodeOf(trouble)};
}

bool SaysOutOfMemory(std::string_view text) {
  constexpr std::string_view kWords[] = {"out of memory", "OUT_OF_MEMORY", "allocate memory",
                                         "ALLOC_FAILED", "ALLOCATION_FAILED"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view words) { return text.contains(words); });
}

ErrorCode CodeOfText(std::string_view text) {
  if (SaysOutOfMemory(text))
    return text.contains("CUDA") ? ErrorCode::kDeviceMemory : ErrorCode::kMemory;
  return text.contains("busy or unavailable") ? ErrorCode::kDeviceBusy : ErrorCode::kNone;
}

bool MayLackMemory(ErrorCode code) {
  return code == ErrorCode::kMemory || code == ErrorCode::kDeviceMemory ||
         code == ErrorCode::kDeviceBusy;
}

bool BuilderMayLackMemory(std::string_view text) {
  return MayLackMemory(CodeOfText(text)) || text.contains("NOT_INITIALIZED");
}

ErrorCode CodeOf(const HostTrouble& trouble) {
  return IsNotHere(trouble) ? ErrorCode::kNotHere : CodeOfText(trouble.message);
}

std::string UncaughtException(std::string_view output) {
  constexpr std::string_view kThrew = "terminate called after throwing an instance of '";
  constexpr std::string_view kSays = "what():  ";
  const size_t at = output.find(kThrew);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = output.substr(at + kThrew.size());
  std::string text(rest.substr(0, rest.find('\'')));
  if (const size_t says = rest.find(kSays); says != std::string_view::npos) {
    const std::string_view what = rest.substr(says + kSays.size());
    text += fmt::format(": {}", what.substr(0, std::min(what.find('\n'), kExceptionBytesMax)));
  }
  return text;
}

void AddPrinted(std::string_view output, Verdict* verdict) {
  constexpr size_t kBytesMax = 16 * 1024;
  if (output.empty()) return;
  std::string& log = verdict->log;
  if (!log.empty() && !log.ends_with('\n')) log += '\n';
  log += kPrintedHeading;
  if (output.size() <= kBytesMax) {
    log += output;
    return;
  }
  output.remove_prefix(output.size() - kBytesMax);
  log += "[cut]";
  log += output.substr(std::min(output.find('\n'), size_t{200}));
}

void FailToBuild(std::string message, int line, Verdict* verdict) {
  verdict->outcome = Outcome::kBuildFailed;
  verdict->cause = MayLackMemory(CodeOfText(message)) ? Cause::kScarceMemory : Cause::kNone;
  verdict->line = line;
  verdict->message = std::move(message);
}

Result<void> Blame(const HostTrouble& trouble, std::string_view where, StopToken stop,
                   Verdict* verdict) {
  // Ctrl-C may end a host that had not yet got around to ignoring it: never the candidate's doing.
  if (stop.stopped()) return Fail(ErrorKind::kInterrupted, "interrupted");
  verdict->message = trouble.message;
  verdict->cause = Cause::kNone;
  AddPrinted(trouble.output, verdict);
  verdict->speed.reset();
  switch (trouble.kind) {
    case Kind::kVoid:
    case Kind::kEnvironment:
      return Fail(ErrorKind::kEnvironment, trouble.message, CodeOf(trouble));
    case Kind::kInterrupted:
      return Fail(ErrorKind::kInterrupted, "interrupted");
    case Kind::kFoul:
      verdict->outcome = Outcome::kFoul;
      verdict->foul = Foul{trouble.rule, trouble.message};
      return {};
    case Kind::kOutOfMemory:
      verdict->outcome = Outcome::kOutOfMemory;
      if (trouble.at_limit) verdict->cause = Cause::kMemoryLimit;
      return {};
    case Kind::kTimedOut:
      verdict->outcome = Outcome::kTimedOut;
      return {};
    case Kind::kDied:
      verdict->outcome = Outcome::kCrashed;
      verdict->message = fmt::format("{} ({})", trouble.message, where);
      if (const std::string threw = UncaughtException(trouble.output); !threw.empty())
        verdict->message += "; it threw " + threw;
      return {};
    case Kind::kFailed:
      if (trouble.failure == wire::Failure::kEnvironment ||
          trouble.failure == wire::Failure::kProblemNotHere)
        return Fail(ErrorKind::kEnvironment, trouble.message, CodeOf(trouble));
      if (trouble.failure < wire::Failure::kCandidateLoad) return UsageError(trouble.message);
      if (IsNotHere(trouble)) return Fail(ErrorKind::kUnjudged, trouble.message);
      FailToBuild(trouble.message, LineOfCandidate(trouble.message), verdict);
      return {};
  }
  return {};
}

}  // namespace assay
