#include "web/fast_p_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/score_chart.h"

namespace assay {
namespace {

constexpr int kWidth = 760, kHeight = 306;
constexpr double kTop = 40, kBottom = 280;

double X(double p, double end) {
  return kPlotLeft + std::clamp(p / end, 0.0, 1.0) * (kPlotRight - kPlotLeft);
}
double Y(double share) { return kBottom - share * (kBottom - kTop); }

double ShareAt(const FastPCurve& curve, double p) {
  return Share{CountAt(curve.curve, p), std::max<int64_t>(curve.asked, 1)}.value();
}

std::string PathOf(const FastPCurve& curve, double end) {
  std::string path = fmt::format("M{} {:.1f}", kPlotLeft, Y(ShareAt(curve, 0)));
  for (const CurveStep& step : curve.curve)
    if (step.p > 0 && step.p <= end)
      path += fmt::format("H{:.1f}V{:.1f}", X(step.p, end), Y(ShareAt(curve, step.p)));
  return path + fmt::format("H{}", kPlotRight);
}

const char* LineOf(ChartSide side) {
  return side == ChartSide::kFirst    ? "c-first-line"
         : side == ChartSide::kSecond ? "c-second-line"
                                      : "c-third-line";
}

std::string Grid(double end) {
  std::string svg;
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    svg += ChartLine(fmt::format("M{} {:.1f}H{}", kPlotLeft, Y(share), kPlotRight), "c-grid");
    svg += ChartText(kPlotLeft - 8, Y(share) + 4, "end", 12, "c-faint",
                     fmt::format("{:.0f}%", 100 * share));
  }
  const double step = end <= 4 ? 0.5 : end <= 10 ? 1 : std::exp2(std::ceil(std::log2(end / 8)));
  for (double p = 0; p <= end + 1e-9; p += step)
    svg += ChartText(X(p, end), kBottom + 18, "middle", 12, "c-faint", fmt::format("{:g}", p));
  svg += ChartLine(fmt::format("M{:.1f} {}V{}", X(1, end), kTop - 8, kBottom), "c-dash");
  svg += ChartText(X(1, end) + 6, kTop - 2, "start", 12, "c-faint", "faster than the baseline →");
  return svg;
}

std::string Described(std::span<const FastPCurve> curves, double p) {
  std::string text = "Falling steps over p, how many times as fast as the baseline.";
  for (const FastPCurve& curve : curves)
    text +=
        fmt::format(" {}: {} of {} problems correct, {} more than {:.2f} times as fast.",
                    curve.name, CountAt(curve.curve, 0), curve.asked, CountAt(curve.curve, p), p);
  return text;
}

}  // namespace

double DialEnd(std::span<const FastPCurve> curves) {
  double most = 0;
  for (const FastPCurve& curve : curves)
    if (!curve.curve.empty()) most = std::max(most, curve.curve.back().p);
  if (most <= 4) return 4;
  return most <= 64 ? std::ceil(most * 1.02) : 64;
}

std::string RenderFastPCurves(std::span<const FastPCurve> curves, double p, double end) {
  std::string svg = ChartOpening(kWidth, kHeight, "fast-p", "fast_p", Described(curves, p), false);
  svg += Grid(end);
  double legend = kPlotLeft;
  for (const FastPCurve& curve : curves) {
    const std::string path = PathOf(curve, end);
    if (curve.side == ChartSide::kFirst)
      svg += ChartLine(fmt::format("{}V{}H{}Z", path, kBottom, kPlotLeft), "c-area");
    svg += ChartLine(path, LineOf(curve.side));
    svg += ChartLine(fmt::format("M{:.0f} 12h30", legend), LineOf(curve.side));
    svg += ChartText(legend + 38, 16, "start", 13, "c-ink", curve.name);
    legend += 118;
  }
  return svg +
         fmt::format(
             "<g id=\"dial-line\" data-from=\"{0}\" data-to=\"{1}\" "
             "transform=\"translate({2:.1f} 0)\"><path class=\"c-dial\" "
             "d=\"M0 {3}V{4}\"/><path class=\"c-ink\" d=\"M-6 {5}h12l-6 -8z\"/></g>\n</svg>\n",
             kPlotLeft, kPlotRight, X(p, end), kTop - 14, kBottom, kBottom + 8);
}

}  // namespace assay
