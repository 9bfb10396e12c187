#include "rules/pair_budget.h"

#include <algorithm>
#include <cmath>

#include "rules/gate2.h"

namespace assay {

int PairsUntilDecision(int pair_index) {
  // Half way to the first look: pairs that agree decide before it.
  for (const int pairs : {kPairsMin, 2 * kPairsMin})
    if (pair_index < pairs) return pairs - pair_index;
  for (const Look& look : Looks())
    if (look.pairs > pair_index) return look.pairs - pair_index;
  return 1;
}

bool IsOutOfBudget(int pairs, double budget_s, double left_s, double before_s) {
  if (pairs < kPairsMin) return left_s <= 0;
  const double pair_s = (before_s + budget_s - left_s) / pairs;
  return left_s < pair_s * PairsUntilDecision(pairs);
}

double BudgetForDecision(int pairs, double spent_s) {
  constexpr double kSpare = 1.25, kStepS = 5;
  // The first look rarely decides a close case.
  const auto looks = Looks();
  const int wanted = pairs < looks[0].pairs ? looks[1].pairs : looks.back().pairs;
  return kStepS * std::ceil(kSpare * wanted * spent_s / std::max(1, pairs) / kStepS);
}

}  // namespace assay
