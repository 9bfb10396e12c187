// The learning curve as an SVG picture. Pure.
#pragma once

#include <string>
#include <vector>

#include "score/learning.h"

namespace assay {

// `curve` has a point at least. Shares on the left axis, the mean speedup in words at the end.
std::string RenderLearningSvg(const std::vector<LearningPoint>& curve);

}  // namespace assay
