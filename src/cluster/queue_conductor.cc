#include "cluster/queue_conductor.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "cluster/work_end.h"
#include "cluster/work_request.h"
#include "model/verdict_json.h"
#include "worker/protocol.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kWorksAtOnce = 200;
constexpr int64_t kEndsAtOnce = 500;
constexpr int kWaitMs = 500;

std::string KeyOf(const std::string& row_key, size_t rows_before) {
  return fmt::format("{}-{}", row_key, rows_before);
}

}  // namespace

QueueConductor::QueueConductor(const RunPlan& plan, const AskedTerms& terms, WorkQueue& queue,
                               Pilots* pilots, QueueRunTerms run, ConductEvents events)
    : plan_(plan),
      terms_(terms),
      queue_(queue),
      run_(std::move(run)),
      events_(std::move(events)),
      settings_(TermsText(terms)),
      supervisor_(queue, pilots, run_.supervisor, {events_.notice, [this](const std::string& text) {
                                                     RunProgress progress;
                                                     progress.text = text;
                                                     events_.progress(progress);
                                                   }}) {}

ConductEnd QueueConductor::Run(const std::vector<size_t>& items, const std::vector<RunRow>& earlier,
                               StopToken stop) {
  left_ = std::ssize(items);
  Result<void> done = AddAll(items, earlier, stop);
  while (done && left_ > 0 && !stop.stopped()) {
    Result<void> looked = Collect();
    if (row_failed_) done = looked;
    if (row_failed_ || left_ == 0) break;
    if (looked) looked = supervisor_.Tend({left_, kept_});
    if (looked) looked = queue_.Wait(kWaitMs);
    done = supervisor_.Bear(looked, stop);
  }
  supervisor_.End();
  if (done && left_ > 0) done = Fail(ErrorKind::kInterrupted, "interrupted");
  ConductEnd end{static_cast<size_t>(left_), std::nullopt};
  if (!done) end.error = done.error();
  return end;
}

Result<void> QueueConductor::AddAll(const std::vector<size_t>& items,
                                    const std::vector<RunRow>& earlier, StopToken stop) {
  std::map<std::string, size_t> rows_of;
  for (const RunRow& row : earlier) ++rows_of[row.key];
  std::vector<NewWork> works;
  for (size_t i = 0; i < items.size() && !stop.stopped(); ++i) {
    const RunItem& item = plan_.items[items[i]];
    AskedTerms terms = terms_;
    terms.problem = plan_.problems[item.problem].choice;
    ASSAY_ASSIGN_OR_RETURN(const WorkRequest request,
                           MakeWorkRequest(terms, item.source, run_.suites));
    const std::string row_key = RunKey(plan_, item, settings_);
    NewWork work;
    work.run = run_.run;
    work.key = KeyOf(row_key, rows_of[row_key]);
    work.group = plan_.problems[item.problem].hash + Json(terms.problem.set).dump() +
                 terms.problem.size + settings_;
    work.device = terms_.device;
    work.priority = run_.priority;
    work.request = WorkRequestText(request);
    item_of_[work.key] = items[i];
    works.push_back(std::move(work));
    if (works.size() < kWorksAtOnce && i + 1 < items.size()) continue;
    ASSAY_RETURN_IF_ERROR(queue_.Add(works));
    works.clear();
  }
  if (earlier.empty()) return {};
  std::vector<std::string> keys;
  for (const auto& [key, item] : item_of_) keys.push_back(key);
  ASSAY_ASSIGN_OR_RETURN(after_, queue_.ReadFrom(run_.run, keys));
  return {};
}

Result<void> QueueConductor::Collect() {
  while (left_ > 0) {
    ASSAY_ASSIGN_OR_RETURN(const std::vector<EndedWork> ended,
                           queue_.Ended(run_.run, after_, kEndsAtOnce));
    if (const auto kept = Keep(ended); !kept) {
      row_failed_ = true;
      return kept;
    }
    if (!ended.empty()) after_ = ended.back().sequence;
    if (std::ssize(ended) < kEndsAtOnce) break;
  }
  return {};
}

Result<void> QueueConductor::Keep(std::span<const EndedWork> ended) {
  std::vector<JudgedItem> judged;
  for (const EndedWork& each : ended) {
    const auto found = item_of_.find(each.key);
    if (found == item_of_.end()) continue;  // of an earlier call
    judged.push_back({RowOfEnd(each, found->second), found->second});
    item_of_.erase(found);
  }
  if (judged.empty()) return {};
  const int64_t count = std::ssize(judged);
  ASSAY_RETURN_IF_ERROR(events_.rows(std::move(judged)));
  left_ -= count;
  kept_ += count;
  return {};
}

RunRow QueueConductor::RowOfEnd(const EndedWork& ended, size_t item) const {
  RunRow row = RowOf(plan_, plan_.items[item], settings_);
  row.date = events_.date();
  if (ended.state == WorkState::kJudged) {
    if (auto verdict = VerdictFromJson(ended.end.verdict))
      row.verdict = std::move(*verdict);
    else
      row.error = verdict.error();
  } else {
    row.error = ErrorForAnotherNode(ended);
  }
  return row;
}

}  // namespace assay
