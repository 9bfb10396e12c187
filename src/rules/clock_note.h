// Describes the effect of a GPU's clock on a comparison. Interleaved blocks cancel a drift that
// both sides share. They do not cancel a lower clock that one side causes by drawing more power.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "model/verdict.h"

namespace assay {

// Returns one sentence if the sides' median clocks differ by 2% or more, or if the clock was held
// down; otherwise, and where the clock was not read, an empty string. Reads the samples of one
// baseline.
std::string ClockNote(const std::vector<PairSamples>& samples, const std::string& baseline);

}  // namespace assay
