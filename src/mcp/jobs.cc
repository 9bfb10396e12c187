#include "mcp/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay {
namespace {

constexpr size_t kEndedMax = 1000;  // jobs that are kept for later questions

}  // namespace

std::string_view McpJobStateName(McpJobState state) {
  switch (state) {
    case McpJobState::kQueued:
      return "queued";
    case McpJobState::kRunning:
      return "running";
    case McpJobState::kDone:
      return "done";
    case McpJobState::kFailed:
      return "failed";
    case McpJobState::kCancelled:
      return "cancelled";
  }
  return "failed";
}

McpJobs::McpJobs(Seat& seat, Budget& budget, Hooks hooks)
    : seat_(seat), budget_(budget), hooks_(std::move(hooks)) {}

Result<void> McpJobs::Add(McpJob job, bool free) {
  const auto in_hand = static_cast<int64_t>(waiting_.size()) + (running_.empty() ? 0 : 1);
  if (in_hand >= budget_.limits().waiting_max)
    return UsageError(fmt::format(
        "{} jobs wait already: call job_status with wait_s for {} and take its answer first",
        in_hand, running_.empty() ? waiting_.front() : running_));
  ASSAY_RETURN_IF_ERROR(free ? budget_.CheckSeconds() : budget_.SpendCall());
  const std::string handle = job.handle;
  free ? waiting_.push_front(handle) : waiting_.push_back(handle);
  jobs_[handle] = std::move(job);
  return {};
}

McpJob* McpJobs::Find(const std::string& handle) {
  const auto found = jobs_.find(handle);
  return found == jobs_.end() ? nullptr : &found->second;
}

bool McpJobs::Cancel(const std::string& handle) {
  McpJob* job = Find(handle);
  if (job == nullptr || job->ended()) return false;
  if (job->state == McpJobState::kQueued) {
    std::erase(waiting_, handle);
    Finish(*job, McpJobState::kCancelled);
  } else {
    job->cancelling = true;
    seat_.Cancel();
  }
  return true;
}

void McpJobs::Finish(McpJob& job, McpJobState state) {
  if (job.state == McpJobState::kRunning) {
    job.seconds = static_cast<double>(hooks_.now_ns() - job.began_ns) * 1e-9;
    budget_.SpendSeconds(job.seconds);
  }
  job.state = state;
  job.work = nullptr;
  ended_.push_back(job.handle);
  hooks_.ended(job);
  if (ended_.size() <= kEndedMax) return;
  jobs_.erase(ended_.front());
  ended_.pop_front();
}

void McpJobs::TakeEnded() {
  if (running_.empty()) return;
  McpJob& job = jobs_.at(running_);
  auto done = seat_.Take();
  if (!done) {
    job.event = seat_.Newest();
    return;
  }
  running_.clear();
  job.done = std::move(done);
  const bool stopped = !*job.done && job.done->error().kind == ErrorKind::kInterrupted;
  Finish(job, *job.done ? McpJobState::kDone
              : stopped ? McpJobState::kCancelled
                        : McpJobState::kFailed);
}

void McpJobs::Tick() {
  TakeEnded();
  if (!running_.empty() || waiting_.empty()) return;
  running_ = waiting_.front();
  waiting_.pop_front();
  McpJob& job = jobs_.at(running_);
  if (const auto left = budget_.CheckSeconds(); !left) {
    running_.clear();
    job.done = std::unexpected(left.error());
    return Finish(job, McpJobState::kFailed);
  }
  job.state = McpJobState::kRunning;
  job.began_ns = hooks_.now_ns();
  job.seconds_max = budget_.job_seconds();
  hooks_.began(job);
  seat_.Begin(job.work(job.seconds_max));
}

void McpJobs::End() {
  const std::deque<std::string> waiting = waiting_;
  for (const std::string& handle : waiting) Cancel(handle);
  if (running_.empty()) return;
  Cancel(running_);
  seat_.Join();
  TakeEnded();
}

}  // namespace assay
