#include "run/conductor.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "worker/protocol.h"

namespace assay {
namespace {

constexpr int kWaitMs = 200;
// Requests that a worker has at a time: while it serves the first, it need not prepare values that
// nobody will ask for.
constexpr size_t kRequestsPerWorker = 2;
constexpr int kFailuresMax = 4;

// Beside others a candidate may lack memory or time, and PyTorch the memory to start CUDA. Contexts
// of others may take what a problem lacks.
bool MayDependOnOthers(const Result<Verdict>& verdict) {
  if (!verdict)
    return verdict.error().kind == ErrorKind::kEnvironment ||
           verdict.error().code == ErrorCode::kTooLarge;
  return verdict->outcome == Outcome::kOutOfMemory || verdict->outcome == Outcome::kTimedOut ||
         verdict->cause == Cause::kScarceMemory;
}

// Says nothing of the worker: the next problem may do.
bool IsOfTheProblem(const Error& error) {
  return error.kind == ErrorKind::kUsage || error.code == ErrorCode::kTooLarge ||
         error.code == ErrorCode::kNotHere;
}

}  // namespace

Conductor::Conductor(const RunPlan& plan, const AskedTerms& terms, Fleet& fleet,
                     ConductEvents events, size_t batch_max)
    : plan_(plan),
      terms_(terms),
      events_(std::move(events)),
      batch_max_(batch_max),
      settings_(TermsText(terms)),
      client_(fleet),
      workers_(fleet.size()),
      ends_in_hand_(plan.items.size()) {}

void Conductor::Queue(const std::vector<size_t>& items) {
  for (const size_t item : items) {
    const bool fits =
        !waiting_.empty() && waiting_.back().items.size() < batch_max_ &&
        plan_.items[waiting_.back().items.front()].problem == plan_.items[item].problem;
    if (!fits) waiting_.emplace_back();
    waiting_.back().items.push_back(item);
  }
}

size_t Conductor::Sharers(size_t worker) const {
  size_t on_device = 0;
  for (size_t i = 0; i < workers_.size(); ++i)
    if (client_.Name(i) == client_.Name(worker)) ++on_device;
  return alone_ ? 1 : on_device;
}

ConductEnd Conductor::Run(const std::vector<size_t>& items, StopToken stop) {
  Queue(items);
  left_ = items.size();
  do {
    if (const auto started = StartWorkers(); !started) return {left_, started.error()};
    Work(stop);
  } while (!error_ && !stop.stopped() && GoOnAlone());
  StopAll();
  if (!error_ && stop.stopped() && left_ > 0)
    error_ = Error{ErrorKind::kInterrupted, "interrupted"};
  return {left_, error_};
}

Result<void> Conductor::StartWorkers() {
  std::map<std::string, size_t> started;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].given_up || (alone_ && started[client_.Name(i)]++ > 0)) continue;
    ASSAY_RETURN_IF_ERROR(client_.Start(i, static_cast<int>(Sharers(i))));
  }
  return {};
}

bool Conductor::GoOnAlone() {
  if (for_alone_.empty()) return false;
  StopAll();
  alone_ = true;
  std::vector<size_t> items = std::exchange(for_alone_, {});
  events_.notice(fmt::format("judged next, each with the device for itself: {}", items.size()));
  std::sort(items.begin(), items.end());
  Queue(items);
  return true;
}

void Conductor::Work(StopToken stop) {
  while ((!waiting_.empty() || client_.busy()) && !error_ && !stop.stopped()) {
    bool any = false;
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (!client_.runs(i)) continue;
      any = true;
      Feed(i);
    }
    if (!any && !client_.busy()) {
      error_ = Error{ErrorKind::kEnvironment,
                     fmt::format("no worker is left that can judge: {}", last_trouble_)};
      break;
    }
    if (const auto event = client_.Wait(kWaitMs)) Take(*event);
  }
}

void Conductor::Feed(size_t worker) {
  // At the end nobody hoards what another could judge now.
  const size_t most = waiting_.size() < workers_.size() ? 1 : kRequestsPerWorker;
  while (client_.requests(worker) < most && !waiting_.empty()) {
    WorkerBatch batch = std::move(waiting_.front());
    waiting_.pop_front();
    std::vector<const CandidateSource*> sources;
    for (const size_t item : batch.items) sources.push_back(&plan_.items[item].source);
    AskedTerms terms = terms_;
    terms.problem = plan_.problems[plan_.items[batch.items.front()].problem].choice;
    const std::string id = client_.NewId();
    client_.Ask(worker, id, JudgeLine(id, terms, sources), std::move(batch));
  }
}

void Conductor::Take(const ClientEvent& event) {
  if (event.IsAnswer()) return Judged(event);
  if (event.kind == WorkerEvent::Kind::kFailed) return Failed(event);
  if (event.kind == WorkerEvent::Kind::kEnded) return Ended(event);
  if (event.kind != WorkerEvent::Kind::kProgress) return;
  RunProgress progress{event.worker, nullptr, nullptr, event.text, event.fraction};
  if (event.candidate) progress.item = &plan_.items[event.item()];
  progress.problem = &plan_.problems[plan_.items[event.batch.items.front()].problem];
  events_.progress(progress);
}

void Conductor::Judged(const ClientEvent& answer) {
  workers_[answer.worker].failures = 0;
  auto verdict = answer.Answer();
  if (Shares(answer.worker) && MayDependOnOthers(verdict))
    return for_alone_.push_back(answer.item());
  Keep(answer.item(), std::move(verdict));
}

void Conductor::Keep(size_t item, Result<Verdict> verdict) {
  RunRow row = RowOf(plan_, plan_.items[item], settings_);
  row.date = events_.date();
  if (verdict)
    row.verdict = std::move(*verdict);
  else
    row.error = std::move(verdict).error();
  std::vector<JudgedItem> judged;
  judged.push_back({std::move(row), item});
  if (const auto kept = events_.rows(std::move(judged)); !kept) {
    if (!error_) error_ = kept.error();
    return;
  }
  --left_;
}

void Conductor::QueueAgain(WorkerBatch batch) {
  if (!batch.items.empty()) waiting_.push_front(std::move(batch));
}

void Conductor::Failed(const ClientEvent& event) {
  const Error& error = event.error;
  const std::vector<size_t>& rest = event.batch.items;
  if (error.kind != ErrorKind::kUsage && Shares(event.worker)) {
    for_alone_.insert(for_alone_.end(), rest.begin(), rest.end());
    return;
  }
  // A request that is wrong stays wrong; what the machine did may not happen again.
  if (error.kind != ErrorKind::kUsage && !event.batch.tried) return QueueAgain({rest, true});
  for (const size_t item : rest) Keep(item, std::unexpected(error));
  if (!IsOfTheProblem(error)) CountFailure(event.worker, error.message);
}

void Conductor::CountFailure(size_t worker, const std::string& why) {
  WorkerState& state = workers_[worker];
  last_trouble_ = why;
  if (++state.failures < kFailuresMax || state.given_up) return;
  state.given_up = true;
  auto batches = client_.Kill(worker);
  for (; !batches.empty(); batches.pop_back()) QueueAgain(std::move(batches.back()));
  events_.notice(fmt::format("{} is given up after {} failures without a verdict: {}",
                             client_.Name(worker), kFailuresMax, why));
}

void Conductor::Ended(const ClientEvent& event) {
  const std::string& why = event.error.message;
  // All but what ends workers is judged by the next one.
  for (auto batch = event.waiting.rbegin(); batch != event.waiting.rend(); ++batch)
    QueueAgain(*batch);
  WorkerBatch rest = event.batch;
  if (!rest.items.empty() && ++ends_in_hand_[rest.items.front()] >= 2) {
    Keep(rest.items.front(), EnvironmentError(why + " twice while it judged it"));
    rest.items.erase(rest.items.begin());
  }
  QueueAgain(std::move(rest));
  events_.notice(why + "; it is started again");
  CountFailure(event.worker, why);
  WorkerState& state = workers_[event.worker];
  if (state.given_up) return;
  if (const auto started = client_.Start(event.worker, static_cast<int>(Sharers(event.worker)));
      !started) {
    state.failures = kFailuresMax;
    CountFailure(event.worker, started.error().message);
  }
}

void Conductor::StopAll() {
  // A verdict that stands is not thrown away.
  client_.Finish([&](const ClientEvent& event) {
    if (!error_ && event.kind == WorkerEvent::Kind::kVerdict) Judged(event);
  });
}

}  // namespace assay
