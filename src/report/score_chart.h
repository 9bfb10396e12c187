// The fast_p curve as an SVG picture, and the axis that it shares with the one in text. Pure.
#pragma once

#include <string>

#include "score/score.h"

namespace assay {

// The range of p that a picture of the curve shows: 2^low to 2^high.
struct CurveAxis {
  int low = -2;
  int high = 3;

  double Start() const;
};
// From 1/4 to 8 or less, and farther where ratios are: at most 1/64 to 1024.
CurveAxis AxisOf(const Score& score);
// "60%", for a share from 0 to 1; "<1%" and ">99%" where rounding would claim none or all.
std::string FormatPercent(double share);

// A picture for documents and pages, with a title and a description for those who cannot see
// it. Both curves, told apart by their strokes and their names as well as by colour.
enum class CurveTheme {
  kLight,   // its own colours, on white
  kOfPage,  // the CSS variables of the page that it stands in (report/score_page.cc)
};
std::string RenderCurveSvg(const Score& score, CurveTheme theme = CurveTheme::kLight);

}  // namespace assay
