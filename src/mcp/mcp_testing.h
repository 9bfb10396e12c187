// A seat for tests, whose work ends when a test says so.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "mcp/seat.h"

namespace assay {

class FakeSeat : public Seat {
 public:
  void Begin(SeatWork given) override {
    work = std::move(given);
    cancelled = false;
    done_.reset();
    ++begun;
  }
  std::optional<Result<WorkDone>> Take() override { return std::exchange(done_, std::nullopt); }
  std::string Newest() override { return newest; }
  void Cancel() override { cancelled = true; }
  void Join() override {
    if (cancelled) done_ = Fail(ErrorKind::kInterrupted, "interrupted");
  }

  void Finish(Result<WorkDone> done) { done_ = std::move(done); }
  // Does the work that was begun, here and now.
  void DoIt() {
    done_ = work([](const std::string&) { return true; }, StopToken());
  }

  SeatWork work;
  std::string newest;
  bool cancelled = false;
  int begun = 0;

 private:
  std::optional<Result<WorkDone>> done_;
};

}  // namespace assay
