// A seat for one piece of work at a time, done by a thread of its own, so that the server answers
// meanwhile.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/stop_token.h"
#include "model/verdict.h"
#include "search/feedback.h"

namespace assay {

// The end of a piece of work.
struct WorkDone {
  std::optional<Verdict> verdict;
  std::vector<FeedbackPart> feedback;  // of the verdict
  std::string text;                    // of work that gives no verdict
};

// Gets what a worker says as it goes; returns false once the work is to be given up.
using WorkLook = std::function<bool(const std::string& event)>;
using SeatWork = std::function<Result<WorkDone>(const WorkLook& look, StopToken stop)>;

class Seat {
 public:
  virtual ~Seat() = default;
  // The seat must be free.
  virtual void Begin(SeatWork work) = 0;
  // The end of the work, once; then the seat is free again. nullopt: it is free, or still works.
  virtual std::optional<Result<WorkDone>> Take() = 0;
  // The newest event that the work has heard; empty: none.
  virtual std::string Newest() = 0;
  // Asks the work to end soon, with kInterrupted.
  virtual void Cancel() = 0;
  // Waits until the work has ended; Take() still has what came of it.
  virtual void Join() = 0;
};

class ThreadSeat : public Seat {
 public:
  ~ThreadSeat() override;
  void Begin(SeatWork work) override;
  std::optional<Result<WorkDone>> Take() override;
  std::string Newest() override;
  void Cancel() override { stop_ = true; }
  void Join() override;

 private:
  std::thread thread_;
  bool taken_ = false;  // from Begin() to Take()
  std::atomic<bool> stop_ = false, ended_ = false;
  std::mutex mutex_;  // of the two below
  std::string newest_;
  std::optional<Result<WorkDone>> done_;
};

}  // namespace assay
