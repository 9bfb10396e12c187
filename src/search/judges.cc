#include "search/judges.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "model/verdict_json.h"
#include "worker/protocol.h"

namespace assay {
namespace {

using Json = nlohmann::json;

constexpr int kFailuresMax = 4;
// No event of a judgement is further from the last one than this.
constexpr int64_t kSilenceMaxNs = int64_t{30} * 60 * 1'000'000'000;
constexpr double kFarewellS = 10;
constexpr int kFarewellWaitMs = 100;

// If it is missing: a number that no candidate has.
size_t CandidateOf(const Json& event) {
  return event.value("candidate", std::numeric_limits<size_t>::max());
}

// Of a `verdict`, `unjudged` or `known` event.
JudgedTask ReadJudged(const Json& event) {
  JudgedTask judged;
  if (event.value("event", "") == "known") {
    judged.known = event.value("artifact", "");
  } else if (event.value("event", "") == "unjudged") {
    judged.error = Error{ErrorKind::kEnvironment, event.value("message", "")};
  } else if (auto verdict = VerdictFromJson(event.at("verdict").dump())) {
    judged.verdict = std::move(*verdict);
  } else {
    judged.error = verdict.error();
  }
  return judged;
}

}  // namespace

Judges::Judges(Fleet& fleet, AskedTerms screening, AskedTerms confirming, JudgesEvents events,
               size_t batch_max)
    : fleet_(fleet),
      screening_(std::move(screening)),
      confirming_(std::move(confirming)),
      events_(std::move(events)),
      batch_max_(batch_max),
      workers_(fleet.size()) {}

Judges::~Judges() {
  for (size_t i = 0; i < workers_.size(); ++i)
    if (workers_[i].runs) fleet_.Kill(i);
}

void Judges::Add(JudgeTask task) {
  ++in_hand_;
  waiting_.push_back({std::move(task)});
}

Result<void> Judges::Feed(size_t index) {
  Worker& worker = workers_[index];
  if (!worker.id.empty() || waiting_.empty()) return {};
  const bool confirms = waiting_.front().task.confirms;
  if (!worker.runs || confirms) {
    if (worker.runs) Retire(index);
    ASSAY_RETURN_IF_ERROR(fleet_.Start(index, true));
    worker.runs = true;
  }
  // All that are free have a part of what waits.
  const auto free = static_cast<size_t>(std::count_if(
      workers_.begin(), workers_.end(), [](const Worker& each) { return each.id.empty(); }));
  const size_t share = (waiting_.size() + free - 1) / free;
  const size_t most = confirms ? 1 : std::min(batch_max_, share);
  worker.id = fmt::format("{}", next_id_++);
  std::vector<const CandidateSource*> sources;
  while (worker.tasks.size() < most && !waiting_.empty() &&
         waiting_.front().task.confirms == confirms) {
    worker.tasks.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  for (const Task& task : worker.tasks) sources.push_back(&task.task.source);
  worker.judged.assign(worker.tasks.size(), false);
  worker.heard_ns = MonotonicNs();
  fleet_.Send(index, confirms ? JudgeLine(worker.id, confirming_, sources)
                              : JudgeLine(worker.id, screening_, sources, known_));
  return {};
}

Result<std::vector<JudgedTask>> Judges::Wait(int timeout_ms) {
  for (size_t i = 0; i < workers_.size(); ++i) ASSAY_RETURN_IF_ERROR(Feed(i));
  if (done_.empty()) {
    if (const auto said = fleet_.Wait(timeout_ms)) Take(*said);
    WatchForSilence();
  }
  if (failures_ > 0 && !any_verdict_ && last_failure_.kind == ErrorKind::kUsage)
    return std::unexpected(last_failure_);
  if (failures_ >= kFailuresMax)
    return EnvironmentError(
        fmt::format("nothing can be judged here: {} times in a row, without a verdict: {}",
                    failures_, last_failure_.message));
  return std::exchange(done_, {});
}

void Judges::Take(const Fleet::Said& said) {
  if (said.line) return Heard(said.worker, *said.line);
  workers_[said.worker].runs = false;
  EndRequest(said.worker,
             {ErrorKind::kEnvironment,
              fmt::format("the worker of {} {}", fleet_.Name(said.worker), said.end)},
             true);
}

void Judges::Retire(size_t index) {
  workers_[index].runs = false;
  fleet_.Release(index);
  for (const Deadline deadline = Deadline::AfterSeconds(kFarewellS); !deadline.Expired();) {
    const auto said = fleet_.Wait(kFarewellWaitMs);
    if (said && said->worker != index) Take(*said);
    if (said && said->worker == index && !said->line) return;
  }
}

void Judges::Heard(size_t index, const std::string& line) {
  Worker& worker = workers_[index];
  worker.heard_ns = MonotonicNs();
  const Json event = Json::parse(line, nullptr, false);
  if (!event.is_object() || worker.id.empty() || event.value("id", "") != worker.id) return;
  const std::string kind = event.value("event", "");
  if (kind == "progress") {
    events_.progress(event.value("text", ""));
  } else if (kind == "verdict" || kind == "unjudged" || kind == "known") {
    Judged(worker, CandidateOf(event), ReadJudged(event));
  } else if (kind == "done") {
    EndRequest(index, {ErrorKind::kEnvironment, "the worker gave no verdict on it"}, false);
  } else if (kind == "error") {
    const ErrorKind of =
        event.value("kind", "") == "usage" ? ErrorKind::kUsage : ErrorKind::kEnvironment;
    EndRequest(index, {of, event.value("message", "")}, false);
  }
}

void Judges::Judged(Worker& worker, size_t candidate, JudgedTask judged) {
  if (candidate >= worker.tasks.size() || worker.judged[candidate]) return;
  judged.key = worker.tasks[candidate].task.key;
  worker.judged[candidate] = true;
  failures_ = 0;
  any_verdict_ = true;
  --in_hand_;
  done_.push_back(std::move(judged));
}

void Judges::EndRequest(size_t index, const Error& error, bool blamed) {
  Worker& worker = workers_[index];
  const std::vector<Task> tasks = std::exchange(worker.tasks, {});
  worker.id.clear();
  std::vector<Task> again;
  bool first = true, any = false;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (worker.judged[i]) continue;
    any = true;
    Task task = tasks[i];
    if (!blamed || std::exchange(first, false)) ++task.failures;
    // A request that is wrong stays wrong; what the machine did may not happen again.
    if (error.kind == ErrorKind::kUsage || task.failures >= 2) {
      done_.push_back({task.task.key, std::nullopt, error});
      --in_hand_;
    } else {
      again.push_back(std::move(task));
    }
  }
  waiting_.insert(waiting_.begin(), again.begin(), again.end());
  if (!any && !blamed) return;
  ++failures_;
  last_failure_ = error;
  if (any_verdict_ || error.kind != ErrorKind::kUsage)
    events_.notice(error.message + (again.empty() ? "" : "; it is tried again"));
}

void Judges::WatchForSilence() {
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    if (worker.id.empty() || MonotonicNs() - worker.heard_ns < kSilenceMaxNs) continue;
    fleet_.Kill(i);
    worker.runs = false;
    EndRequest(i, {ErrorKind::kEnvironment, "a worker said nothing for half an hour"}, true);
  }
}

std::vector<JudgedTask> Judges::Stop() {
  size_t running = 0;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (!workers_[i].runs) continue;
    ++running;
    workers_[i].id.empty() ? fleet_.Release(i) : fleet_.Interrupt(i);
  }
  const Deadline deadline = Deadline::AfterSeconds(kFarewellS);
  while (running > 0 && !deadline.Expired()) {
    const auto said = fleet_.Wait(kFarewellWaitMs);
    if (!said) continue;
    Worker& worker = workers_[said->worker];
    if (!said->line) {
      worker.runs = false;
      --running;
      continue;
    }
    const Json event = Json::parse(*said->line, nullptr, false);
    if (!event.is_object() || worker.id.empty() || event.value("id", "") != worker.id) continue;
    if (const auto kind = event.value("event", ""); kind == "verdict" || kind == "known")
      Judged(worker, CandidateOf(event), ReadJudged(event));
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    fleet_.Kill(i);
    workers_[i].runs = false;
  }
  return std::exchange(done_, {});
}

}  // namespace assay
