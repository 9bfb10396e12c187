#include "rules/pair_budget.h"

#include "rules/gate2.h"

namespace assay {

int PairsUntilDecision(int pair_index) {
  if (pair_index < kPairsMin) return kPairsMin - pair_index;
  for (const Look& look : Looks())
    if (look.pairs > pair_index) return look.pairs - pair_index;
  return 1;
}

bool IsOutOfBudget(int pairs, double budget_s, double left_s, double before_s) {
  if (pairs < kPairsMin) return left_s <= 0;
  const double pair_s = (before_s + budget_s - left_s) / pairs;
  return left_s < pair_s * PairsUntilDecision(pairs);
}

}  // namespace assay
