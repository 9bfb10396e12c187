// What a GPU's clock did to a comparison. Interleaved blocks cancel a drift that both sides share;
// a side that draws more power runs under a lower clock of its own doing. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/verdict.h"

namespace assay {

// One sentence where the sides' median clocks differ by 2% or more, or the clock was held down;
// empty where neither is so, or nobody read the clock. Reads the samples of one baseline.
std::string ClockNote(const std::vector<PairSamples>& samples, const std::string& baseline);

}  // namespace assay
