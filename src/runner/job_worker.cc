#include "runner/job_worker.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "runner/job.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWaitMs = 200;
constexpr int64_t kReadyNs = 120'000'000'000;
constexpr int64_t kCancelNs = 10'000'000'000;

std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Error Interrupted() { return {ErrorKind::kInterrupted, "interrupted"}; }

}  // namespace

JobWorker::JobWorker(Fleet& fleet, std::function<int64_t()> now_ns)
    : fleet_(fleet), now_ns_(std::move(now_ns)) {}

JobWorker::~JobWorker() { Stop(); }

void JobWorker::Stop() {
  if (std::exchange(runs_, false)) fleet_.Kill(0);
}

Result<void> JobWorker::Start(StopToken stop) {
  if (runs_) return {};
  ASSAY_RETURN_IF_ERROR(fleet_.Start(0, true));
  runs_ = true;
  const int64_t end_ns = now_ns_() + kReadyNs;
  std::string trouble = "is not ready after two minutes";
  while (now_ns_() < end_ns && !stop.stopped()) {
    const auto said = fleet_.Wait(kWaitMs);
    if (!said) continue;
    if (!said->line) {
      runs_ = false;
      trouble = said->end;
      break;
    }
    const Json event = Json::parse(*said->line, nullptr, false);
    if (event.is_object() && TextOf(event, "event") == "ready") return {};
  }
  if (std::exchange(runs_, false)) fleet_.Kill(0);
  if (stop.stopped()) return std::unexpected(Interrupted());
  return EnvironmentError(fmt::format("the worker of {} {}: assay doctor says what is missing",
                                      fleet_.Name(0), trouble));
}

void JobWorker::Hear(const std::string& line, Attempt* attempt, std::string* event) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || TextOf(json, "id") != kJobRequestId) return;
  const std::string kind = TextOf(json, "event");
  if (kind == "verdict" && json.contains("verdict")) {
    attempt->answer = json["verdict"].dump();
  } else if (kind == "description" || kind == "known") {
    attempt->answer = line;
  } else if (kind == "unjudged") {
    attempt->error = Error{ErrorKind::kUnjudged, TextOf(json, "message")};
  } else if (kind == "error") {
    attempt->ended = true;
    if (attempt->error) return;  // an `unjudged` before it says which
    attempt->error =
        Error{TextOf(json, "kind") == "usage" ? ErrorKind::kUsage : ErrorKind::kEnvironment,
              TextOf(json, "message")};
  } else if (kind == "done") {
    attempt->ended = true;
  } else {
    *event = line;
  }
}

void JobWorker::Cancel() {
  fleet_.Send(0, Json{{"request", "cancel"}, {"of", kJobRequestId}}.dump());
  const int64_t end_ns = now_ns_() + kCancelNs;
  Attempt attempt;
  std::string event;
  while (!attempt.ended && now_ns_() < end_ns) {
    const auto said = fleet_.Wait(kWaitMs);
    if (!said) continue;
    if (!said->line) {
      runs_ = false;
      return;
    }
    Hear(*said->line, &attempt, &event);
  }
  if (attempt.ended) return;
  fleet_.Kill(0);
  runs_ = false;
}

Result<std::string> JobWorker::Try(const std::string& line, int64_t end_ns,
                                   const std::function<bool(const std::string&)>& look,
                                   StopToken stop) {
  ASSAY_RETURN_IF_ERROR(Start(stop));
  fleet_.Send(0, line);
  Attempt attempt;
  while (!attempt.ended) {
    const auto said = fleet_.Wait(kWaitMs);
    std::string event;
    if (said && !said->line) {
      runs_ = false;
      if (attempt.answer) break;  // it stands
      return EnvironmentError(fmt::format("the worker of {} {}", fleet_.Name(0), said->end));
    }
    if (said) Hear(*said->line, &attempt, &event);
    if (attempt.answer || attempt.ended) continue;
    if (stop.stopped() || !look(event)) {
      Cancel();
      return std::unexpected(Interrupted());
    }
    if (now_ns_() < end_ns) continue;
    Cancel();
    return Fail(ErrorKind::kEnvironment, "");
  }
  if (attempt.answer) return *std::move(attempt.answer);
  if (attempt.error) return std::unexpected(*std::move(attempt.error));
  return EnvironmentError("the worker gave no answer");
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
