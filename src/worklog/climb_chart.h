// The climb of a match: the percentage of the bound, or the speedup, of version after version.
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "worklog/match.h"

namespace assay {

// A picture, in the order in which the versions were measured. `alone`, `id`: as in
// report/roofline_chart.h. Empty: no version has a speed.
std::string RenderClimbSvg(const Match& match, bool alone, std::string_view id);

}  // namespace assay
