#include "worker/request_queue.h"

#include <algorithm>
#include <chrono>

namespace assay {

bool RequestQueue::Push(WorkerRequest request) {
  const std::lock_guard lock(mutex_);
  if (closed_ || waiting_.size() >= kWaitingMax) return false;
  waiting_.push_back(std::move(request));
  changed_.notify_one();
  return true;
}

std::optional<WorkerRequest> RequestQueue::Next() {
  std::unique_lock lock(mutex_);
  in_hand_.clear();
  changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
  return TakeFirst();
}

bool RequestQueue::Await(int timeout_ms) {
  std::unique_lock lock(mutex_);
  in_hand_.clear();
  return changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                           [&] { return closed_ || !waiting_.empty(); });
}

std::optional<WorkerRequest> RequestQueue::TakeWaiting() {
  const std::lock_guard lock(mutex_);
  in_hand_.clear();
  return TakeFirst();
}

std::optional<WorkerRequest> RequestQueue::Peek() const {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) return std::nullopt;
  return waiting_.front();
}

std::optional<WorkerRequest> RequestQueue::TakeFirst() {
  if (waiting_.empty()) return std::nullopt;
  WorkerRequest request = std::move(waiting_.front());
  waiting_.pop_front();
  in_hand_ = request.id;
  stop_ = false;
  return request;
}

bool RequestQueue::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

bool RequestQueue::done() const {
  const std::lock_guard lock(mutex_);
  return closed_ && waiting_.empty() && in_hand_.empty();
}

bool RequestQueue::Cancel(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const WorkerRequest& request) { return request.id == id; });
  if (found != waiting_.end()) {
    waiting_.erase(found);
    return true;
  }
  if (!id.empty() && in_hand_ == id) stop_ = true;
  return false;
}

void RequestQueue::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_one();
}

void RequestQueue::Stop() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  waiting_.clear();
  stop_ = true;
  changed_.notify_one();
}

}  // namespace assay
