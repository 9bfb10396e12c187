#include "search/proposals.h"

#include <chrono>
#include <utility>

#include "base/trace.h"

namespace assay {

Proposals::Proposals(Proposer& proposer, size_t threads) : proposer_(proposer) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

Proposals::~Proposals() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Proposals::Add(const Prompt& prompt) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(prompt);
    ++in_hand_;
  }
  more_.notify_one();
}

bool Proposals::busy() const {
  const std::lock_guard lock(mutex_);
  return in_hand_ > 0;
}

bool Proposals::Await(int timeout_ms) {
  const Span span("wait for an answer");
  std::unique_lock lock(mutex_);
  return ready_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                         [&] { return !done_.empty(); });
}

std::vector<Proposed> Proposals::Take() {
  const std::lock_guard lock(mutex_);
  in_hand_ -= done_.size();
  return std::exchange(done_, {});
}

void Proposals::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    more_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    const Prompt prompt = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Proposed proposed{prompt.key, proposer_.Propose(prompt, StopToken(ends_))};
    lock.lock();
    done_.push_back(std::move(proposed));
    ready_.notify_one();
  }
}

}  // namespace assay
