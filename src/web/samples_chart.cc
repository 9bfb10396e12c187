#include "web/samples_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "report/chart_style.h"
#include "report/text.h"
#include "rules/gate2.h"

namespace assay {
namespace {

constexpr int kWidth = 760;
constexpr double kLeft = 56, kRight = 744, kTop = 44, kRow = 11;

// A logarithmic axis with round numbers on it.
struct Axis {
  double from = 1, to = 2;

  double X(double ratio) const {
    const double along = std::log(ratio / from) / std::log(to / from);
    return kLeft + std::clamp(along, 0.0, 1.0) * (kRight - kLeft);
  }
  std::vector<double> Ticks() const {
    double step = std::pow(10, std::floor(std::log10((to - from) / 3)));
    while ((to - from) / step > 8) step *= (to - from) / step > 16 ? 5 : 2;
    std::vector<double> ticks;
    for (double at = std::ceil(from / step) * step; at <= to; at += step) ticks.push_back(at);
    return ticks;
  }
};

Axis AxisOf(const std::vector<PairFigures>& pairs, const BaselineResult& result, double threshold) {
  double least = std::min(1.0, threshold), most = std::max(1.0, threshold);
  const auto take = [&](double ratio) {
    if (!std::isfinite(ratio) || ratio <= 0) return;
    least = std::min(least, ratio);
    most = std::max(most, ratio);
  };
  for (const PairFigures& pair : pairs) take(pair.ratio);
  take(result.ci_low);
  take(result.ci_high);
  const double room = std::max(std::pow(most / least, 0.05), 1.01);
  return {least / room, most * room};
}

}  // namespace

std::vector<PairFigures> PairsOf(const Verdict& verdict, const std::string& baseline) {
  std::vector<PairFigures> pairs;
  int calls = 0;  // of a block
  if (verdict.speed)
    if (const auto found = verdict.speed->baselines.find(baseline);
        found != verdict.speed->baselines.end())
      calls = found->second.calls_per_block;
  for (const PairSamples& samples : verdict.samples) {
    if (samples.baseline != baseline) continue;
    PairFigures pair{samples.order, 0, 0, 0, samples.sm_mhz};
    if (const double log_ratio = PairLogRatio(samples); log_ratio != 0)
      pair.ratio = std::exp(log_ratio);
    std::vector<double> reference, candidate;
    for (size_t i = 0; i < samples.block_ns.size() && i < samples.order.size(); ++i) {
      double block = static_cast<double>(samples.block_ns[i]);
      if (i < samples.settle_ns.size()) block -= static_cast<double>(samples.settle_ns[i]);
      if (calls > 0) (samples.order[i] == 'r' ? reference : candidate).push_back(block / calls);
    }
    if (!reference.empty()) pair.reference_ns = Median(reference);
    if (!candidate.empty()) pair.candidate_ns = Median(candidate);
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

std::string RenderSamplesSvg(const std::vector<PairFigures>& pairs, const BaselineResult& result,
                             const std::string& baseline, double threshold, std::string_view id) {
  std::vector<double> ratios;
  for (const PairFigures& pair : pairs)
    if (pair.ratio > 0) ratios.push_back(pair.ratio);
  if (ratios.empty()) return {};
  const Axis axis = AxisOf(pairs, result, threshold);
  const double bottom = kTop + kRow * static_cast<double>(pairs.size()) + 8;
  std::string svg = ChartOpening(
      kWidth, static_cast<int>(bottom) + 46, id, "Pairs against " + baseline,
      fmt::format("A dot for each of {} pairs, by its speedup. Median {}, interval {} to {}.",
                  ratios.size(), FormatRatio(result.speedup), FormatRatio(result.ci_low),
                  FormatRatio(result.ci_high)),
      false);
  if (result.ci_low > 0 && result.ci_high >= result.ci_low)
    svg += fmt::format(
        "<rect class=\"c-band\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
        axis.X(result.ci_low), kTop, std::max(axis.X(result.ci_high) - axis.X(result.ci_low), 1.0),
        bottom - kTop);
  for (const double tick : axis.Ticks()) {
    svg += ChartLine(fmt::format("M{:.1f} {}V{:.1f}", axis.X(tick), kTop, bottom), "c-grid");
    svg +=
        ChartText(axis.X(tick), bottom + 18, "middle", 12, "c-faint", fmt::format("{:.4g}×", tick));
  }
  svg += ChartLine(fmt::format("M{:.1f} {}V{:.1f}", axis.X(threshold), kTop - 6, bottom), "c-axis");
  svg += ChartText(std::clamp(axis.X(threshold), kLeft + 30, kRight - 30), kTop - 12, "middle", 12,
                   "c-ink", fmt::format("{:g}×", threshold));
  svg += ChartLine(fmt::format("M{:.1f} {}V{:.1f}", axis.X(result.speedup), kTop, bottom),
                   "c-first-line");
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].ratio <= 0) continue;
    const double y = kTop + 8 + kRow * static_cast<double>(i);
    svg += fmt::format(
        "<circle class=\"c-first\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.2\"><title>pair {}: "
        "{}</title></circle>\n",
        axis.X(pairs[i].ratio), y, i + 1, FormatRatio(pairs[i].ratio));
  }
  svg += ChartText(kLeft - 8, kTop + 12, "end", 12, "c-faint", "pair 1");
  if (pairs.size() > 2)
    svg += ChartText(kLeft - 8, bottom - 4, "end", 12, "c-faint", fmt::format("{}", pairs.size()));
  return svg +
         ChartText((kLeft + kRight) / 2, bottom + 38, "middle", 12, "c-faint",
                   fmt::format("speedup over {} (logarithmic); the band is the interval",
                               Shortened(baseline, 30, true))) +
         "</svg>\n";
}

}  // namespace assay
