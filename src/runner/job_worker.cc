#include "runner/job_worker.h"

#include <fmt/format.h>

#include <utility>

#include "runner/job.h"

namespace assay {
namespace {

using Kind = WorkerEvent::Kind;

constexpr int kWaitMs = 200;
constexpr int64_t kReadyNs = 120'000'000'000;

Error Interrupted() { return {ErrorKind::kInterrupted, "interrupted"}; }

}  // namespace

JobWorker::JobWorker(Fleet& fleet, std::function<int64_t()> now_ns)
    : client_(fleet, now_ns), now_ns_(std::move(now_ns)) {}

Result<void> JobWorker::Start(StopToken stop) {
  if (client_.runs(0)) return {};
  ASSAY_RETURN_IF_ERROR(client_.Start(0, 1));
  const int64_t end_ns = now_ns_() + kReadyNs;
  std::string trouble =
      fmt::format("the worker of {} is not ready after two minutes", client_.Name(0));
  while (now_ns_() < end_ns && !stop.stopped()) {
    const auto event = client_.Wait(kWaitMs);
    if (!event) continue;
    if (event->kind == Kind::kReady) return {};
    if (event->kind != Kind::kEnded) continue;
    trouble = event->error.message;
    break;
  }
  client_.Abort();
  if (stop.stopped()) return std::unexpected(Interrupted());
  return EnvironmentError(trouble + ": assay doctor says what is missing");
}

Result<std::string> JobWorker::Try(const std::string& line, int64_t end_ns,
                                   const std::function<bool(const std::string&)>& look,
                                   StopToken stop) {
  ASSAY_RETURN_IF_ERROR(Start(stop));
  client_.Ask(0, kJobRequestId, line, WorkerBatch{{0}});
  std::optional<std::string> answer;
  Error why;
  while (true) {
    const ClientEvent event = client_.Wait(kWaitMs).value_or(ClientEvent());
    if (event.kind == Kind::kUnjudged || event.IsFailure())
      why = event.error;
    else if (event.IsAnswer())
      answer = event.kind == Kind::kVerdict ? event.verdict : event.line;
    if (event.kind == Kind::kDone || event.IsFailure())
      return answer ? Result<std::string>(*answer) : std::unexpected(why);
    if (answer) continue;
    if (stop.stopped() || !look(event.kind == Kind::kProgress ? event.line : "")) {
      client_.Cancel(0);
      return std::unexpected(Interrupted());
    }
    if (now_ns_() < end_ns) continue;
    client_.Cancel(0);
    return Fail(ErrorKind::kEnvironment, "");
  }
}

Result<std::string> JobWorker::Judge(const std::string& line, double seconds_max,
                                     const std::function<bool(const std::string&)>& look,
                                     StopToken stop) {
  const int64_t end_ns = now_ns_() + static_cast<int64_t>(seconds_max * 1e9);
  auto judged = Try(line, end_ns, look, stop);
  const auto is_over = [&] { return now_ns_() >= end_ns; };
  if (!judged && judged.error().kind == ErrorKind::kEnvironment && !is_over())
    judged = Try(line, end_ns, look, stop);
  if (!judged && judged.error().kind == ErrorKind::kEnvironment && is_over())
    return EnvironmentError(
        fmt::format("the judgement took more than the {:.0f} s that it is given", seconds_max));
  return judged;
}

}  // namespace assay
