// What a search may spend, and what it has spent. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace assay {

// Also a limit: 0 is none there.
struct Spending {
  double usd = 0;
  int64_t tokens = 0;
  int64_t evaluations = 0;  // judgements
  double seconds = 0;

  Spending& operator+=(const Spending& other);
  Spending& operator-=(const Spending& other);
  bool operator==(const Spending&) const = default;
};

// Parses "evals=60,usd=2,tokens=100000,seconds=600". Errors (kUsage) say how it is written.
Result<Spending> ParseBudget(const std::string& text);
// "41 of 60 evaluations, 0.31 of 2 USD": what has a limit; else the evaluations and seconds.
std::string DescribeSpending(const Spending& spent, const Spending& limits);

// Reserves before work, settles after it.
class BudgetLedger {
 public:
  explicit BudgetLedger(Spending limits) : limits_(limits) {}

  // True if this much is left beside what is reserved and `kept`, which stays for later.
  bool Fits(const Spending& cost, const Spending& kept = {}) const;
  void Reserve(const Spending& cost) { reserved_ += cost; }
  void Settle(const Spending& reserved, const Spending& cost) {
    reserved_ -= reserved;
    spent_ += cost;
  }
  // Of work that was begun and whose end nobody knows.
  void Book(const Spending& cost) { spent_ += cost; }
  // Seconds pass by themselves.
  void SetSeconds(double seconds) { spent_.seconds = seconds; }

  const Spending& limits() const { return limits_; }
  const Spending& spent() const { return spent_; }
  const Spending& reserved() const { return reserved_; }

 private:
  const Spending limits_;
  Spending spent_, reserved_;
};

}  // namespace assay
