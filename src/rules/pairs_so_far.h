// The pairs that gate 2 has run, in words for people who wait. Pure.
#pragma once

#include <span>
#include <string>

#include "rules/gate2.h"

namespace assay {

struct PairsSoFar {
  int pairs = 0;
  int beyond = 0;           // of which so many are beyond `factor`, on the side where most lie
  bool faster = true;       // that side: over the threshold, or below it
  double factor = 1;        // the threshold, with the noise floor on that side
  int coming = 0;           // pairs that may follow
  double seconds_left = 0;  // that they may take, at most
};

// `spent_s`, `left_s`: of the gate's budget.
PairsSoFar SumUp(std::span<const double> pair_log_ratios, const SpeedRule& rule, double spent_s,
                 double left_s);

// Returns such a line, short enough for a terminal: "7 of 8 pairs over 1.02x, up to 31 s more".
std::string PairsText(const PairsSoFar& sum);

}  // namespace assay
