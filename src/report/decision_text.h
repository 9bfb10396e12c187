// How gate 2 decided, in words for people. Pure; no errors.
#pragma once

#include <string>

#include "model/verdict.h"

namespace assay {

// "between 2.48x and 2.54x": the interval of the speedup, rounded outwards.
std::string IntervalText(const BaselineResult& result);

// One sentence: by how many pairs it was decided and which error that risks, for a tie and where
// the interval leaves it open the smallest gain that could have been seen. `threshold`: --p.
std::string DecisionText(const BaselineResult& result, double threshold);

}  // namespace assay
