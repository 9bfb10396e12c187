#include "cluster/queue_conductor.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "cluster/work_request.h"
#include "model/verdict_json.h"
#include "report/text.h"
#include "worker/protocol.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kWorksAtOnce = 200;
constexpr int64_t kEndsAtOnce = 500;
constexpr int kWaitMs = 500;
constexpr double kAliveS = 60;  // a worker that was heard within this time lives

std::string KeyOf(const std::string& row_key, size_t rows_before) {
  return fmt::format("{}-{}", row_key, rows_before);
}

Error ErrorOf(const EndedWork& ended) {
  if (ended.state == WorkState::kCancelled)
    return {ErrorKind::kEnvironment, "it was taken out of the queue"};
  const Json json = Json::parse(ended.end.error, nullptr, false);
  if (!json.is_object()) return {ErrorKind::kEnvironment, "a worker gave no verdict on it"};
  const bool is_usage = json.value("kind", "") == "usage";
  return {is_usage ? ErrorKind::kUsage : ErrorKind::kEnvironment,
          json.value("message", "a worker gave no verdict on it")};
}

}  // namespace

QueueConductor::QueueConductor(const RunPlan& plan, const AskedTerms& terms, WorkQueue& queue,
                               Pilots* pilots, QueueRunTerms run, ConductEvents events)
    : plan_(plan),
      terms_(terms),
      queue_(queue),
      pilots_(pilots),
      run_(std::move(run)),
      events_(std::move(events)),
      settings_(TermsText(terms)) {}

ConductEnd QueueConductor::Run(const std::vector<size_t>& items, const std::vector<RunRow>& earlier,
                               StopToken stop) {
  left_ = items.size();
  heard_ns_ = MonotonicNs();
  Result<void> done = AddAll(items, earlier, stop);
  int64_t tended_ns = 0;
  while (done && left_ > 0 && !stop.stopped()) {
    Result<void> looked = Collect();
    if (row_failed_) done = looked;
    if (row_failed_ || left_ == 0) break;
    if (looked && MonotonicNs() - tended_ns > static_cast<int64_t>(run_.tend_s * 1e9)) {
      tended_ns = MonotonicNs();
      looked = Tend();
    }
    if (looked) looked = queue_.Wait(kWaitMs);
    done = Bear(looked, stop);
  }
  if (pilots_ != nullptr) pilots_->End();
  if (done && left_ > 0) done = Fail(ErrorKind::kInterrupted, "interrupted");
  if (done) return {left_, std::nullopt};
  return {left_, done.error()};
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
  return {};
}

Result<void> QueueConductor::Collect() {
  while (left_ > 0) {
    ASSAY_ASSIGN_OR_RETURN(const std::vector<EndedWork> ended,
                           queue_.Ended(run_.run, after_, kEndsAtOnce));
    for (const EndedWork& each : ended) {
      after_ = each.sequence;
      if (const auto kept = Keep(each); !kept) {
        row_failed_ = true;
        return kept;
      }
    }
    if (std::ssize(ended) < kEndsAtOnce) break;
  }
  return {};
}

Result<void> QueueConductor::Keep(const EndedWork& ended) {
  const auto found = item_of_.find(ended.key);
  if (found == item_of_.end()) return {};  // of an earlier call
  const size_t item = found->second;
  RunRow row = RowOf(plan_, plan_.items[item], settings_);
  row.date = events_.date();
  if (ended.state == WorkState::kJudged) {
    if (auto verdict = VerdictFromJson(ended.end.verdict))
      row.verdict = std::move(*verdict);
    else
      row.error = verdict.error();
  } else {
    row.error = ErrorOf(ended);
  }
  ASSAY_RETURN_IF_ERROR(events_.row(std::move(row), item));
  item_of_.erase(found);
  --left_;
  return {};
}

Result<void> QueueConductor::Tend() {
  ASSAY_RETURN_IF_ERROR(queue_.Expire());
  ASSAY_ASSIGN_OR_RETURN(const std::vector<KnownWorker> workers, queue_.Workers());
  ASSAY_RETURN_IF_ERROR(DrainOddNodes(workers));
  Tell(workers);
  if (pilots_ == nullptr) return {};
  ASSAY_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                         pilots_->Tend(static_cast<int64_t>(left_), workers));
  for (const std::string& line : lines) events_.notice(line);
  return {};
}

Result<void> QueueConductor::DrainOddNodes(const std::vector<KnownWorker>& workers) {
  for (const OddNode& odd : OddNodes(workers)) {
    ASSAY_RETURN_IF_ERROR(queue_.Drain(odd.worker, odd.why));
    events_.notice(fmt::format("{} gets no more work: {}", odd.worker, odd.why));
  }
  return {};
}

void QueueConductor::Tell(const std::vector<KnownWorker>& workers) {
  long long alive = 0, busy = 0;
  for (const KnownWorker& worker : workers) {
    if (!worker.drained.empty() && flagged_.insert(worker.facts.name).second)
      events_.notice(fmt::format("{} is drained: {}", worker.facts.name, worker.drained));
    if (worker.silent_s > kAliveS) continue;
    if (worker.drained.empty()) ++alive;
    if (!worker.doing.empty()) ++busy;
  }
  if (alive > 0) {
    heard_ns_ = MonotonicNs();
    told_of_none_ = false;
  }
  const double silent_s = static_cast<double>(MonotonicNs() - heard_ns_) / 1e9;
  if (silent_s > run_.no_worker_notice_s && !std::exchange(told_of_none_, true))
    events_.notice(
        fmt::format("no worker that takes work was heard for {:.0f} s: start one by assay worker "
                    "--queue PLACE, and look at assay workers PLACE",
                    silent_s));
  RunProgress progress;
  progress.text = fmt::format("{}, {} at work", Counted(alive, "worker"), busy);
  events_.progress(progress);
}

Result<void> QueueConductor::Bear(const Result<void>& done, StopToken stop) {
  if (done) {
    failures_ = 0;
    return {};
  }
  if (done.error().kind != ErrorKind::kEnvironment) return done;
  if (++failures_ == 1) {
    trouble_ns_ = MonotonicNs();
    events_.notice(done.error().message + "; it is tried again");
  }
  if (static_cast<double>(MonotonicNs() - trouble_ns_) / 1e9 > run_.trouble_max_s) return done;
  for (int i = 0; i < 20 && !stop.stopped(); ++i) ::poll(nullptr, 0, 100);
  return {};
}

}  // namespace assay
