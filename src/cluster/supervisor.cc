#include "cluster/supervisor.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "cluster/node_classes.h"
#include "report/text.h"

namespace assay {
namespace {

constexpr double kAliveS = 60;  // a worker that was heard within this time lives
constexpr int kPauseLooks = 20, kPauseLookMs = 100;

bool IsHeard(const KnownWorker& worker) { return worker.silent_s < kAliveS; }

double SecondsSince(int64_t ns) { return static_cast<double>(MonotonicNs() - ns) / 1e9; }

}  // namespace

Supervisor::Supervisor(WorkQueue& queue, Pilots* pilots, SupervisorTerms terms,
                       SupervisorEvents events)
    : queue_(queue),
      pilots_(pilots),
      terms_(terms),
      events_(std::move(events)),
      heard_ns_(MonotonicNs()) {}

void Supervisor::End() {
  if (pilots_ != nullptr && !std::exchange(ended_, true)) pilots_->End();
}

void Supervisor::Forgive() {
  if (pilots_ != nullptr) pilots_->Forgive();
}

Result<void> Supervisor::Tend(const PilotDemand& demand) {
  if (tended_ns_ > 0 && SecondsSince(tended_ns_) < terms_.tend_s) return {};
  tended_ns_ = MonotonicNs();
  ASSAY_RETURN_IF_ERROR(queue_.Expire());
  ASSAY_ASSIGN_OR_RETURN(workers_, queue_.Workers());
  ASSAY_RETURN_IF_ERROR(DrainOddNodes());
  Tell();
  if (pilots_ == nullptr) return {};
  ASSAY_ASSIGN_OR_RETURN(const std::vector<std::string> lines, pilots_->Tend(demand, workers_));
  for (const std::string& line : lines) events_.notice(line);
  return {};
}

Result<void> Supervisor::DrainOddNodes() {
  for (const OddNode& odd : OddNodes(workers_)) {
    ASSAY_RETURN_IF_ERROR(queue_.Drain(odd.worker, odd.why));
    events_.notice(fmt::format("{} gets no more work: {}", odd.worker, odd.why));
  }
  return {};
}

int64_t Supervisor::Alive() const {
  return std::ranges::count_if(workers_, [](const KnownWorker& worker) {
    return worker.drained.empty() && IsHeard(worker);
  });
}

void Supervisor::Tell() {
  const int64_t alive = Alive();
  long long busy = 0;
  for (const KnownWorker& worker : workers_) {
    if (!worker.drained.empty() && flagged_.insert(worker.facts.name).second)
      events_.notice(fmt::format("{} is drained: {}", worker.facts.name, worker.drained));
    if (IsHeard(worker) && !worker.doing.empty()) ++busy;
  }
  if (alive > 0) {
    heard_ns_ = MonotonicNs();
    told_of_none_ = false;
  }
  const double silent_s = SecondsSince(heard_ns_);
  if (silent_s > terms_.no_worker_notice_s && !std::exchange(told_of_none_, true))
    events_.notice(
        fmt::format("no worker that takes work was heard for {:.0f} s: start one by assay worker "
                    "--queue PLACE, and look at assay workers PLACE",
                    silent_s));
  events_.progress(fmt::format("{}, {} at work", Counted(alive, "worker"), busy));
}

Result<void> Supervisor::Bear(const Result<void>& done, StopToken stop) {
  if (done) {
    failures_ = 0;
    return {};
  }
  if (done.error().kind != ErrorKind::kEnvironment) return done;
  if (++failures_ == 1) {
    trouble_ns_ = MonotonicNs();
    events_.notice(done.error().message + "; it is tried again");
  }
  if (SecondsSince(trouble_ns_) > terms_.trouble_max_s) return done;
  for (int i = 0; i < kPauseLooks && !stop.stopped(); ++i) ::poll(nullptr, 0, kPauseLookMs);
  return {};
}

}  // namespace assay
