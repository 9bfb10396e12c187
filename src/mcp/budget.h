// The budget of a client: its calls that judge, and their seconds. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace assay {

struct BudgetLimits {
  int64_t calls = 100;       // that judge, check, compare by measuring, or profile
  double seconds = 3600;     // of work, all together
  double job_seconds = 600;  // of one job
  int64_t waiting_max = 16;  // jobs that wait or run
};

// Nothing gives back what was spent: a client cannot exceed its budget by cancelling.
class Budget {
 public:
  explicit Budget(BudgetLimits limits) : limits_(limits) {}

  // Counts what an earlier process of the same session spent.
  void Resume(int64_t calls, double seconds) {
    calls_ += calls;
    seconds_ += seconds;
  }
  // Counts a call. Errors (kUsage) say what is spent, and leave it uncounted.
  Result<void> SpendCall();
  // Errors (kUsage): no seconds are left.
  Result<void> CheckSeconds() const;
  void SpendSeconds(double seconds) { seconds_ += seconds; }

  int64_t calls_left() const { return limits_.calls > calls_ ? limits_.calls - calls_ : 0; }
  double seconds_left() const {
    return limits_.seconds > seconds_ ? limits_.seconds - seconds_ : 0;
  }
  // That the next job may take.
  double job_seconds() const {
    return limits_.job_seconds < seconds_left() ? limits_.job_seconds : seconds_left();
  }
  const BudgetLimits& limits() const { return limits_; }

 private:
  const BudgetLimits limits_;
  int64_t calls_ = 0;
  double seconds_ = 0;
};

}  // namespace assay
