#include "cluster/queue_judges.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "cluster/work_end.h"
#include "cluster/work_request.h"
#include "model/verdict_json.h"
#include "worker/protocol.h"
#include "worker_client/event.h"

namespace assay {
namespace {

constexpr int64_t kEndsAtOnce = 500;
constexpr int kFailuresMax = 4;
constexpr char kAgainMark = '~';  // no key of a step has it

std::string StepOf(const std::string& key) { return key.substr(0, key.find(kAgainMark)); }

JudgedTask ReadJudged(const EndedWork& ended) {
  JudgedTask judged;
  if (ended.state != WorkState::kJudged) {
    judged.error = ErrorForAnotherNode(ended);
    return judged;
  }
  if (const auto event = ParseWorkerEvent(ended.end.verdict);
      event && event->kind == WorkerEvent::Kind::kKnown) {
    judged.known = event->artifact;
  } else if (auto verdict = VerdictFromJson(ended.end.verdict)) {
    judged.verdict = std::move(*verdict);
  } else {
    judged.error = verdict.error();
  }
  return judged;
}

}  // namespace

QueueJudges::QueueJudges(WorkQueue& queue, Pilots* pilots, QueueJudgesTerms terms,
                         SupervisorEvents events)
    : queue_(queue),
      terms_(std::move(terms)),
      supervisor_(queue, pilots, terms_.supervisor, std::move(events)) {}

void QueueJudges::Add(JudgeTask task) { waiting_.push_back(std::move(task)); }

std::string QueueJudges::KeyOf(const std::string& step) const {
  const auto failed = failed_.find(step);
  return failed == failed_.end() ? step : fmt::format("{}{}{}", step, kAgainMark, failed->second);
}

Result<NewWork> QueueJudges::WorkOf(const JudgeTask& task) const {
  AskedTerms terms = task.confirms ? terms_.confirming : terms_.screening;
  ASSAY_ASSIGN_OR_RETURN(WorkRequest request, MakeWorkRequest(terms, task.source, terms_.suites));
  request.fresh = task.confirms;
  if (!task.confirms) request.known = known_;
  terms.bound = 0;
  NewWork work;
  work.run = terms_.run;
  work.key = KeyOf(task.key);
  work.group = request.job.problem_hash + TermsText(terms);
  work.device = terms.device;
  work.request = WorkRequestText(request);
  return work;
}

size_t QueueJudges::Room() const {
  const int64_t most = std::max<int64_t>(supervisor_.Alive(), terms_.nodes) + 1;
  return static_cast<size_t>(std::max<int64_t>(0, most - std::ssize(step_of_)));
}

Result<void> QueueJudges::AddWaiting() {
  std::vector<NewWork> works;
  std::map<std::string, std::string> steps;
  std::deque<JudgeTask> rest;
  const size_t room = Room();
  for (const JudgeTask& task : waiting_) {
    const std::string key = KeyOf(task.key);
    const bool is_judged = earlier_.contains(key);
    if (!is_judged && works.size() >= room) {
      rest.push_back(task);
      continue;
    }
    steps[key] = task.key;
    if (is_judged) continue;
    ASSAY_ASSIGN_OR_RETURN(NewWork work, WorkOf(task));
    works.push_back(std::move(work));
  }
  if (steps.empty()) return {};
  ASSAY_RETURN_IF_ERROR(queue_.Add(works));
  waiting_ = std::move(rest);
  for (const auto& [key, step] : steps) {
    step_of_[key] = step;
    const auto judged = earlier_.find(key);
    if (judged == earlier_.end()) continue;
    Keep(key, judged->second);
    earlier_.erase(judged);
  }
  return {};
}

Result<void> QueueJudges::Collect() {
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const std::vector<EndedWork> ended,
                           queue_.Ended(terms_.run, after_, kEndsAtOnce));
    for (const EndedWork& each : ended) {
      after_ = each.sequence;
      if (step_of_.contains(each.key))
        Keep(each.key, each);
      else if (each.state == WorkState::kJudged)
        earlier_[each.key] = each;
      else
        ++failed_[StepOf(each.key)];
    }
    if (std::ssize(ended) < kEndsAtOnce) break;
  }
  looked_ns_ = MonotonicNs();
  return {};
}

void QueueJudges::Keep(const std::string& key, const EndedWork& ended) {
  JudgedTask judged = ReadJudged(ended);
  judged.key = step_of_.at(key);
  step_of_.erase(key);
  ++ended_;
  if (judged.error) {
    ++failures_;
    last_failure_ = *judged.error;
  } else {
    failures_ = 0;
    any_verdict_ = true;
  }
  done_.push_back(std::move(judged));
}

Result<std::vector<JudgedTask>> QueueJudges::Wait(int timeout_ms) {
  Result<void> looked;
  const double since_s = static_cast<double>(MonotonicNs() - looked_ns_) / 1e9;
  // The first look goes before anything is added: an earlier process may have had works here.
  if (looked_ns_ == 0 || since_s >= terms_.look_s) looked = Collect();
  if (looked) looked = AddWaiting();
  if (looked) looked = supervisor_.Tend({std::ssize(step_of_) + std::ssize(waiting_), ended_});
  if (looked && done_.empty() && timeout_ms > 0) looked = queue_.Wait(timeout_ms);
  ASSAY_RETURN_IF_ERROR(supervisor_.Bear(looked, StopToken()));
  if (failures_ > 0 && !any_verdict_ && last_failure_.kind == ErrorKind::kUsage)
    return std::unexpected(last_failure_);
  if (failures_ >= kFailuresMax)
    return EnvironmentError(
        fmt::format("nothing can be judged on these nodes: {} times in a row, without a verdict: "
                    "{}",
                    failures_, last_failure_.message));
  return std::exchange(done_, {});
}

std::vector<JudgedTask> QueueJudges::Stop() {
  supervisor_.End();
  (void)Collect();
  return std::exchange(done_, {});
}

}  // namespace assay
