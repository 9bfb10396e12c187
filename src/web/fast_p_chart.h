// The curves of fast_p for the board: the share of problems that are solved more than p times as
// fast, over p, with a line where the dial stands. Pure.
#pragma once

#include <span>
#include <string>

#include "report/chart_style.h"
#include "score/score.h"

namespace assay {

struct FastPCurve {
  std::string name;  // "human"
  ChartSide side = ChartSide::kFirst;
  Curve curve;
  int64_t asked = 0;  // problems
};

// The end of the dial and of the axis: from 0 to 4, or as far as any curve goes, at most 64.
double DialEnd(std::span<const FastPCurve> curves);
// A picture of 760 by 340; the plot is kPlotLeft to kPlotRight.
std::string RenderFastPCurves(std::span<const FastPCurve> curves, double p, double end);

inline constexpr double kPlotLeft = 56, kPlotRight = 744;

}  // namespace assay
