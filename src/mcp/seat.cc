#include "mcp/seat.h"

#include <utility>

#include "base/check.h"

namespace assay {

ThreadSeat::~ThreadSeat() {
  Cancel();
  Join();
}

void ThreadSeat::Begin(SeatWork work) {
  ASSAY_CHECK(!taken_);
  taken_ = true;
  stop_ = false;
  ended_ = false;
  newest_.clear();
  done_.reset();
  thread_ = std::thread([this, work = std::move(work)] {
    const WorkLook look = [this](const std::string& event) {
      if (!event.empty()) {
        const std::scoped_lock lock(mutex_);
        newest_ = event;
      }
      return !stop_;
    };
    auto done = work(look, StopToken(stop_));
    const std::scoped_lock lock(mutex_);
    done_ = std::move(done);
    ended_ = true;
  });
}

std::optional<Result<WorkDone>> ThreadSeat::Take() {
  if (!taken_ || !ended_) return std::nullopt;
  Join();
  taken_ = false;
  return std::exchange(done_, std::nullopt);
}

std::string ThreadSeat::Newest() {
  const std::scoped_lock lock(mutex_);
  return newest_;
}

void ThreadSeat::Join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace assay
