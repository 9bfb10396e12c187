// Verdicts on one problem in a roofline: the machine's measured ceilings, the problem's bound, the
// baseline, and each version. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/verdict.h"
#include "report/chart_style.h"
#include "report/frame.h"

namespace assay {

struct RooflineVersion {
  std::string label;  // "v3"
  ChartSide side = ChartSide::kFirst;
  const Verdict* verdict = nullptr;
};

struct RooflinePoint {
  std::string label;
  ChartSide side = ChartSide::kFirst;
  double time_ns = 0;
  double intensity = 0;    // operations a byte
  double rate = 0;         // operations a second
  double percent = 0;      // of the bound
  std::string bottleneck;  // may be empty
};

struct RooflineChart {
  std::string problem, size, machine, regime, instructions;
  double bandwidth_bytes_s = 0, rate_operations_s = 0, empty_call_ns = 0, bound_ns = 0;
  double operations = 0, bytes = 0, unfused_bytes = 0;
  std::vector<RooflinePoint> points;     // the baseline first
  std::string first_name = "candidate";  // of ChartSide::kFirst, in the legend

  double Intensity() const { return operations / bytes; }
  double BoundRate() const { return operations / bound_ns * 1e9; }
};

// Versions without a speed are left out. Errors (kUsage): none has a roofline, their problems,
// sizes or machines differ, or the problem's operations are not known.
Result<RooflineChart> MakeRooflineChart(std::span<const RooflineVersion> versions);

// A picture. Standing alone it has its own colours, light and dark; else those of the page's
// classes. `id`: begins the ids in it, which a page must have once each.
std::string RenderRooflineSvg(const RooflineChart& chart, bool alone, std::string_view id);
// The same for a terminal.
std::string RenderRooflineText(const RooflineChart& chart, const CardStyle& style);

}  // namespace assay
