#include "run/conductor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/clock.h"
#include "hosts/blame.h"
#include "model/verdict_json.h"
#include "worker/protocol.h"

namespace assay {
namespace {

using Json = nlohmann::json;

constexpr int kWaitMs = 200;
// Requests that a worker has at a time: while it serves the first, it need not prepare values that
// nobody will ask for.
constexpr size_t kRequestsPerWorker = 2;
constexpr int kFailuresMax = 4;
// No event of a judgement is further from the last one than this.
constexpr int64_t kSilenceMaxNs = int64_t{30} * 60 * 1'000'000'000;
constexpr int64_t kFarewellNs = int64_t{10} * 1'000'000'000;

// Beside others a candidate may lack memory or time, and PyTorch the memory to start CUDA.
bool MayDependOnOthers(const Verdict& verdict) {
  return verdict.outcome == Outcome::kOutOfMemory || verdict.outcome == Outcome::kTimedOut ||
         (verdict.outcome == Outcome::kBuildFailed && MayLackMemory(verdict.message));
}

}  // namespace

Conductor::Conductor(const RunPlan& plan, const AskedTerms& terms, Fleet& fleet,
                     ConductEvents events, size_t batch_max)
    : plan_(plan),
      terms_(terms),
      fleet_(fleet),
      events_(std::move(events)),
      batch_max_(batch_max),
      settings_(TermsText(terms)),
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

bool Conductor::AnyWork() const {
  return !waiting_.empty() ||
         std::any_of(workers_.begin(), workers_.end(),
                     [](const WorkerState& worker) { return !worker.requests.empty(); });
}

bool Conductor::Shares(size_t worker) const {
  if (alone_) return false;
  size_t on_device = 0;
  for (size_t i = 0; i < workers_.size(); ++i)
    if (fleet_.Name(i) == fleet_.Name(worker)) ++on_device;
  return on_device > 1;
}

ConductEnd Conductor::Run(const std::vector<size_t>& items, StopToken stop) {
  Queue(items);
  left_ = items.size();
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (const auto started = fleet_.Start(i, !Shares(i)); !started) return {left_, started.error()};
    workers_[i].heard_ns = MonotonicNs();
    workers_[i].runs = true;
  }
  Work(stop);
  if (!for_alone_.empty() && !error_ && !stop.stopped()) {
    if (const auto begun = GoOnAlone(); !begun) return {left_, begun.error()};
    Work(stop);
  }
  StopAll();
  if (!error_ && stop.stopped() && left_ > 0)
    error_ = Error{ErrorKind::kInterrupted, "interrupted"};
  return {left_, error_};
}

Result<void> Conductor::GoOnAlone() {
  events_.notice(fmt::format("{} of them are judged once more, with the device for themselves",
                             for_alone_.size()));
  StopAll();
  alone_ = true;
  std::sort(for_alone_.begin(), for_alone_.end());
  Queue(std::exchange(for_alone_, {}));
  std::set<std::string> devices;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].given_up || !devices.insert(fleet_.Name(i)).second) continue;
    ASSAY_RETURN_IF_ERROR(fleet_.Start(i, true));
    workers_[i].heard_ns = MonotonicNs();
    workers_[i].runs = true;
  }
  return {};
}

void Conductor::Work(StopToken stop) {
  while (AnyWork() && !error_ && !stop.stopped()) {
    bool any = false;
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (!workers_[i].runs) continue;
      any = true;
      Feed(i);
    }
    if (!any) {
      error_ = Error{ErrorKind::kEnvironment,
                     fmt::format("no worker is left that can judge: {}", last_trouble_)};
      break;
    }
    if (const auto said = fleet_.Wait(kWaitMs)) {
      if (said->line)
        Heard(said->worker, *said->line);
      else
        Ended(said->worker, said->end);
    }
    WatchForSilence();
  }
}

void Conductor::Feed(size_t worker) {
  WorkerState& state = workers_[worker];
  // At the end nobody hoards what another could judge now.
  const size_t most = waiting_.size() < workers_.size() ? 1 : kRequestsPerWorker;
  while (state.requests.size() < most && !waiting_.empty()) {
    Request request{fmt::format("{}", next_id_++), std::move(waiting_.front()), {}};
    waiting_.pop_front();
    request.judged.resize(request.batch.items.size());
    std::vector<const CandidateSource*> sources;
    for (const size_t item : request.batch.items) sources.push_back(&plan_.items[item].source);
    AskedTerms terms = terms_;
    terms.problem = plan_.problems[plan_.items[request.batch.items.front()].problem].choice;
    fleet_.Send(worker, JudgeLine(request.id, terms, sources));
    state.requests.push_back(std::move(request));
  }
}

void Conductor::Heard(size_t worker, const std::string& line) {
  WorkerState& state = workers_[worker];
  state.heard_ns = MonotonicNs();
  const Json event = Json::parse(line, nullptr, false);
  if (!event.is_object() || state.requests.empty()) return;
  const std::string kind = event.value("event", ""), id = event.value("id", "");
  Request& request = state.requests.front();
  if (id != request.id) return;
  if (kind == "progress") {
    RunProgress progress{worker, nullptr, nullptr, event.value("text", ""),
                         event.value("fraction", 0.0)};
    const size_t candidate = event.value("candidate", request.batch.items.size());
    if (candidate < request.batch.items.size())
      progress.item = &plan_.items[request.batch.items[candidate]];
    progress.problem = &plan_.problems[plan_.items[request.batch.items.front()].problem];
    events_.progress(progress);
  } else if (kind == "verdict" || kind == "unjudged") {
    Judged(worker, line);
  } else if (kind == "done") {
    Failed(worker, {ErrorKind::kEnvironment, "the worker gave no verdict on it"});
  } else if (kind == "error") {
    const ErrorKind of =
        event.value("kind", "") == "usage" ? ErrorKind::kUsage : ErrorKind::kEnvironment;
    Failed(worker, {of, event.value("message", "")});
  }
}

void Conductor::Judged(size_t worker, const std::string& line) {
  WorkerState& state = workers_[worker];
  const Json event = Json::parse(line);
  Request& request = state.requests.front();
  const size_t candidate = event.value("candidate", request.batch.items.size());
  if (candidate >= request.batch.items.size() || request.judged[candidate]) return;
  request.judged[candidate] = true;
  state.failures = 0;
  const size_t item = request.batch.items[candidate];
  if (event.value("event", "") == "unjudged")
    return Keep(item, std::nullopt, Error{ErrorKind::kEnvironment, event.value("message", "")});
  auto verdict = VerdictFromJson(event.at("verdict").dump());
  if (verdict && Shares(worker) && MayDependOnOthers(*verdict)) return for_alone_.push_back(item);
  if (verdict)
    Keep(item, std::move(*verdict), std::nullopt);
  else
    Keep(item, std::nullopt, verdict.error());
}

void Conductor::Keep(size_t item, std::optional<Verdict> verdict, std::optional<Error> error) {
  RunRow row = RowOf(plan_, plan_.items[item], settings_);
  row.date = events_.date();
  row.verdict = std::move(verdict);
  row.error = std::move(error);
  std::vector<JudgedItem> judged;
  judged.push_back({std::move(row), item});
  if (const auto kept = events_.rows(std::move(judged)); !kept) {
    if (!error_) error_ = kept.error();
    return;
  }
  --left_;
}

void Conductor::Failed(size_t worker, const Error& error) {
  WorkerState& state = workers_[worker];
  Request request = std::move(state.requests.front());
  state.requests.pop_front();
  Batch rest;
  for (size_t i = 0; i < request.batch.items.size(); ++i)
    if (!request.judged[i]) rest.items.push_back(request.batch.items[i]);
  if (rest.items.empty()) return;
  if (error.kind != ErrorKind::kUsage && Shares(worker)) {
    for_alone_.insert(for_alone_.end(), rest.items.begin(), rest.items.end());
    return;
  }
  // A request that is wrong stays wrong; what the machine did may not happen again.
  if (error.kind == ErrorKind::kUsage || request.batch.tried) {
    for (const size_t item : rest.items) Keep(item, std::nullopt, error);
    if (error.kind != ErrorKind::kUsage) CountFailure(worker, error.message);
    return;
  }
  rest.tried = true;
  waiting_.push_front(std::move(rest));
}

void Conductor::CountFailure(size_t worker, const std::string& why) {
  WorkerState& state = workers_[worker];
  last_trouble_ = why;
  if (why != state.last_failure) state.failures = 0;
  state.last_failure = why;
  if (++state.failures < kFailuresMax || state.given_up) return;
  state.given_up = true;
  state.runs = false;
  fleet_.Kill(worker);
  for (; !state.requests.empty(); state.requests.pop_back())
    waiting_.push_front(std::move(state.requests.back().batch));
  events_.notice(fmt::format("{} is given up after {} failures without a verdict: {}",
                             fleet_.Name(worker), kFailuresMax, why));
}

void Conductor::Ended(size_t worker, const std::string& end) {
  WorkerState& state = workers_[worker];
  const std::string why = fmt::format("the worker of {} {}", fleet_.Name(worker), end);
  if (!state.requests.empty()) {
    Request& request = state.requests.front();
    const auto next = std::find(request.judged.begin(), request.judged.end(), false);
    if (next != request.judged.end()) {
      const auto index = static_cast<size_t>(next - request.judged.begin());
      const size_t item = request.batch.items[index];
      if (++ends_in_hand_[item] >= 2) {
        request.judged[index] = true;
        Keep(item, std::nullopt, Error{ErrorKind::kEnvironment, why + " twice while it judged it"});
      }
    }
    // Whatever else it had is judged by the next one.
    for (; !state.requests.empty(); state.requests.pop_back()) {
      Request& back = state.requests.back();
      Batch rest{{}, back.batch.tried};
      for (size_t i = 0; i < back.batch.items.size(); ++i)
        if (!back.judged[i]) rest.items.push_back(back.batch.items[i]);
      if (!rest.items.empty()) waiting_.push_front(std::move(rest));
    }
  }
  events_.notice(why + "; it is started again");
  CountFailure(worker, why);
  if (state.given_up) return;
  if (const auto started = fleet_.Start(worker, !Shares(worker)); !started) {
    state.last_failure = started.error().message;
    state.failures = kFailuresMax;
    CountFailure(worker, started.error().message);
  }
  state.heard_ns = MonotonicNs();
}

void Conductor::WatchForSilence() {
  for (size_t i = 0; i < workers_.size(); ++i) {
    WorkerState& state = workers_[i];
    if (!state.runs || state.requests.empty()) continue;
    if (MonotonicNs() - state.heard_ns < kSilenceMaxNs) continue;
    fleet_.Kill(i);
    Ended(i, "said nothing for half an hour");
  }
}

void Conductor::StopAll() {
  const int64_t end_ns = MonotonicNs() + kFarewellNs;
  size_t running = 0;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (!workers_[i].runs) continue;
    ++running;
    if (workers_[i].requests.empty())
      fleet_.Release(i);
    else
      fleet_.Interrupt(i);
  }
  // A verdict that stands is not thrown away.
  while (running > 0 && MonotonicNs() < end_ns) {
    const auto said = fleet_.Wait(kWaitMs);
    if (!said) continue;
    if (!said->line) {
      --running;
      continue;
    }
    WorkerState& state = workers_[said->worker];
    const Json event = Json::parse(*said->line, nullptr, false);
    if (!error_ && event.is_object() && event.value("event", "") == "verdict" &&
        !state.requests.empty() && event.value("id", "") == state.requests.front().id)
      Judged(said->worker, *said->line);
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    fleet_.Kill(i);
    workers_[i].runs = false;
  }
}

}  // namespace assay
