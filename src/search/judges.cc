#include "search/judges.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "worker/protocol.h"

namespace assay {
namespace {

constexpr int kFailuresMax = 4;

}  // namespace

Judges::Judges(Fleet& fleet, AskedTerms screening, AskedTerms confirming, JudgesEvents events,
               size_t batch_max)
    : client_(fleet),
      screening_(std::move(screening)),
      confirming_(std::move(confirming)),
      events_(std::move(events)),
      batch_max_(batch_max) {}

void Judges::Add(JudgeTask task) { waiting_.push_back({std::move(task)}); }

Result<void> Judges::Feed(size_t worker) {
  if (client_.requests(worker) > 0 || waiting_.empty()) return {};
  const bool confirms = waiting_.front().task.confirms;
  if (confirms) client_.Retire(worker);
  ASSAY_RETURN_IF_ERROR(client_.Start(worker, 1));
  // All that are free have a part of what waits.
  size_t free = 0;
  for (size_t i = 0; i < client_.size(); ++i) free += client_.requests(i) == 0;
  const size_t share = (waiting_.size() + free - 1) / free;
  const size_t most = confirms ? 1 : std::min(batch_max_, share);
  WorkerBatch batch;
  std::vector<const CandidateSource*> sources;
  while (sources.size() < most && !waiting_.empty() && waiting_.front().task.confirms == confirms) {
    batch.items.push_back(next_item_);
    const auto asked = asked_.emplace(next_item_++, std::move(waiting_.front())).first;
    sources.push_back(&asked->second.task.source);
    waiting_.pop_front();
  }
  const std::string id = client_.NewId();
  client_.Ask(
      worker, id,
      confirms ? JudgeLine(id, confirming_, sources) : JudgeLine(id, screening_, sources, known_),
      std::move(batch));
  return {};
}

Result<std::vector<JudgedTask>> Judges::Wait(int timeout_ms) {
  for (size_t i = 0; i < client_.size(); ++i) ASSAY_RETURN_IF_ERROR(Feed(i));
  if (const auto event = client_.Wait(timeout_ms)) Take(*event);
  if (failures_ > 0 && !any_verdict_ && last_failure_.kind == ErrorKind::kUsage)
    return std::unexpected(last_failure_);
  if (failures_ >= kFailuresMax)
    return EnvironmentError(
        fmt::format("nothing can be judged here: {} times in a row, without a verdict: {}",
                    failures_, last_failure_.message));
  return std::exchange(done_, {});
}

void Judges::Take(const ClientEvent& event) {
  if (event.IsAnswer()) return Judged(event);
  if (event.kind == WorkerEvent::Kind::kProgress) return events_.progress(event.text);
  if (event.IsFailure()) EndRequest(event);
}

void Judges::Judged(const ClientEvent& answer) {
  JudgedTask judged;
  judged.key = asked_.extract(answer.item()).mapped().task.key;
  if (answer.kind == WorkerEvent::Kind::kKnown)
    judged.known = answer.artifact;
  else if (auto verdict = answer.Answer())
    judged.verdict = std::move(*verdict);
  else
    judged.error = verdict.error();
  failures_ = 0;
  any_verdict_ = true;
  done_.push_back(std::move(judged));
}

void Judges::EndRequest(const ClientEvent& end) {
  const bool has_ended = end.kind == WorkerEvent::Kind::kEnded;
  std::vector<Task> again;
  for (const size_t item : end.batch.items) {
    Task task = asked_.extract(item).mapped();
    if (!has_ended || item == end.batch.items.front()) ++task.failures;
    // A request that is wrong stays wrong; what the machine did may not happen again.
    if (end.error.kind == ErrorKind::kUsage || task.failures >= 2)
      done_.push_back({task.task.key, std::nullopt, end.error});
    else
      again.push_back(std::move(task));
  }
  waiting_.insert(waiting_.begin(), again.begin(), again.end());
  ++failures_;
  last_failure_ = end.error;
  if (any_verdict_ || end.error.kind != ErrorKind::kUsage)
    events_.notice(end.error.message + (again.empty() ? "" : "; it is tried again"));
}

std::vector<JudgedTask> Judges::Stop() {
  client_.Finish([&](const ClientEvent& event) {
    if (event.kind == WorkerEvent::Kind::kVerdict || event.kind == WorkerEvent::Kind::kKnown)
      Judged(event);
  });
  return std::exchange(done_, {});
}

}  // namespace assay
