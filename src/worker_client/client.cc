#include "worker_client/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/verdict_json.h"

namespace assay {
namespace {

constexpr int kStopWaitMs = 100;
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kFarewellNs = 10 * kSecondNs;
// No event of a judgement is further from the last one than this.
constexpr int64_t kSilenceMaxNs = 30 * 60 * kSecondNs;
constexpr const char* kNoAnswer = "the worker gave no verdict on it";

}  // namespace

Result<Verdict> ClientEvent::Answer() const {
  if (kind == Kind::kVerdict) return VerdictFromJson(verdict);
  if (kind == Kind::kUnjudged) return Fail(ErrorKind::kEnvironment, error.message, error.code);
  return EnvironmentError(kNoAnswer);
}

WorkerBatch WorkerClient::Request::Rest() const {
  WorkerBatch rest{{}, batch.tried};
  for (size_t i = 0; i < batch.items.size(); ++i)
    if (!answered[i]) rest.items.push_back(batch.items[i]);
  return rest;
}

bool WorkerClient::busy() const {
  return !events_.empty() ||
         std::ranges::any_of(workers_, [](const Worker& each) { return !each.requests.empty(); });
}

Result<void> WorkerClient::Start(size_t index, int sharers) {
  if (workers_[index].runs) return {};
  ASSAY_RETURN_IF_ERROR(fleet_.Start(index, sharers));
  workers_[index].runs = true;
  return {};
}

void WorkerClient::Ask(size_t index, const std::string& id, const std::string& line,
                       WorkerBatch batch) {
  Worker& worker = workers_[index];
  if (worker.requests.empty()) worker.heard_ns = now_ns_();
  std::vector<bool> answered(batch.items.size());
  worker.requests.push_back({id, std::move(batch), std::move(answered)});
  fleet_.Send(index, line);
}

std::optional<ClientEvent> WorkerClient::Wait(int timeout_ms) {
  if (events_.empty()) {
    Listen(timeout_ms);
    WatchForSilence();
  }
  if (events_.empty()) return std::nullopt;
  ClientEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void WorkerClient::Listen(int timeout_ms) {
  const auto said = fleet_.Wait(timeout_ms);
  if (!said) return;
  if (!said->line)
    events_.push_back(Ended(said->worker, said->end));
  else if (auto event = Heard(said->worker, *said->line))
    events_.push_back(std::move(*event));
}

std::optional<ClientEvent> WorkerClient::Heard(size_t index, const std::string& line) {
  Worker& worker = workers_[index];
  worker.heard_ns = now_ns_();
  auto parsed = ParseWorkerEvent(line);
  if (!parsed) return std::nullopt;
  ClientEvent event{std::move(*parsed), index, {}, {}};
  if (event.kind == WorkerEvent::Kind::kReady) return event;
  if (worker.requests.empty() || event.id != worker.requests.front().id) return std::nullopt;
  Request& request = worker.requests.front();
  event.batch = request.batch;
  const bool is_there = event.candidate && *event.candidate < request.answered.size();
  if (event.IsAnswer()) {
    if (!is_there || request.answered[*event.candidate]) return std::nullopt;
    request.answered[*event.candidate] = true;
  } else if (event.kind == WorkerEvent::Kind::kProgress) {
    if (!is_there) event.candidate.reset();
  } else {
    event.batch = request.Rest();
    if (event.kind == WorkerEvent::Kind::kDone) event.error = {ErrorKind::kEnvironment, kNoAnswer};
    event.kind = event.batch.items.empty() ? WorkerEvent::Kind::kDone : WorkerEvent::Kind::kFailed;
    worker.requests.pop_front();
  }
  return event;
}

ClientEvent WorkerClient::Ended(size_t index, const std::string& end) {
  ClientEvent event;
  event.kind = WorkerEvent::Kind::kEnded;
  event.worker = index;
  event.error = {ErrorKind::kEnvironment, fmt::format("the worker of {} {}", Name(index), end)};
  const Worker ended = std::exchange(workers_[index], {});
  for (const Request& request : ended.requests) event.waiting.push_back(request.Rest());
  if (event.waiting.empty()) return event;
  event.batch = std::move(event.waiting.front());
  event.waiting.erase(event.waiting.begin());
  return event;
}

void WorkerClient::WatchForSilence() {
  for (size_t i = 0; i < workers_.size(); ++i) {
    const Worker& worker = workers_[i];
    if (worker.requests.empty() || now_ns_() - worker.heard_ns < kSilenceMaxNs) continue;
    fleet_.Kill(i);
    events_.push_back(Ended(i, "said nothing for half an hour"));
  }
}

void WorkerClient::Settle(size_t index, const std::function<bool()>& is_settled) {
  for (const int64_t end_ns = now_ns_() + kFarewellNs; !is_settled() && now_ns_() < end_ns;) {
    const size_t before = events_.size();
    Listen(kStopWaitMs);
    if (events_.size() > before && events_.back().worker == index) events_.pop_back();
  }
  if (!is_settled()) Kill(index);
}

void WorkerClient::Cancel(size_t index) {
  const std::deque<Request>& requests = workers_[index].requests;
  if (requests.empty()) return;
  const nlohmann::ordered_json line = {{"request", "cancel"}, {"of", requests.front().id}};
  fleet_.Send(index, line.dump());
  Settle(index, [&] { return requests.empty(); });
}

void WorkerClient::Retire(size_t index) {
  if (!workers_[index].runs) return;
  fleet_.Release(index);
  Settle(index, [&] { return !workers_[index].runs; });
}

std::vector<WorkerBatch> WorkerClient::Kill(size_t index) {
  if (workers_[index].runs) fleet_.Kill(index);
  std::vector<WorkerBatch> rests;
  for (const Request& request : std::exchange(workers_[index], {}).requests)
    rests.push_back(request.Rest());
  return rests;
}

void WorkerClient::Finish(const std::function<void(const ClientEvent&)>& hear) {
  for (size_t i = 0; i < workers_.size(); ++i)
    if (workers_[i].runs) requests(i) == 0 ? fleet_.Release(i) : fleet_.Interrupt(i);
  const auto any_runs = [&] { return std::ranges::any_of(workers_, &Worker::runs); };
  for (const int64_t end_ns = now_ns_() + kFarewellNs;
       (any_runs() || !events_.empty()) && now_ns_() < end_ns;) {
    const auto event = Wait(kStopWaitMs);
    if (event && event->kind != WorkerEvent::Kind::kEnded) hear(*event);
  }
  Abort();
}

void WorkerClient::Abort() {
  for (size_t i = 0; i < workers_.size(); ++i) Kill(i);
  events_.clear();
}

}  // namespace assay
