// Decides how many pairs of hosts the speed gate begins. Pure.
#pragma once

namespace assay {

// A clear case may stop at kPairsMin pairs; where more are cheap it gets kClearPairs, for a tighter
// interval.
inline constexpr int kPairsMin = 3;
inline constexpr int kClearPairs = 5;

// Returns how many pairs, from this one on, run before a decision may fall: hosts for them may
// start together.
int PairsUntilDecision(int pair_index);

// Returns true if no more pairs are begun after `pairs`: no decision can fall before some more of
// them, and these would take longer than the rest of the budget [s]. `before_s`: the time that
// hosts of the first pairs took to start before the gate began, which is theirs as well.
bool IsOutOfBudget(int pairs, double budget_s, double left_s, double before_s);

// Returns a budget that has room for the looks which these pairs had not [s]: a multiple of 5.
// `spent_s`: what they took.
double BudgetForDecision(int pairs, double spent_s);

}  // namespace assay
