#include "ladder/ladder_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/svg.h"
#include "report/text.h"

namespace assay {
namespace {

constexpr int kWidth = 890, kTop = 108, kRowHeight = 34, kRight = 760, kBelow = 56;
constexpr int kLibraryHeight = 14, kPeakHeight = 6;
constexpr double kLetterWidth = 7.3;  // of names, on average [pixels]

// Classes, so that one picture suits light and dark pages.
constexpr const char* kStyle =
    "<style>\n"
    ".page{fill:#ffffff}.ink{fill:#24292f}.faint{fill:#57606a}.library{fill:#14548c}\n"
    ".peak{fill:#8fb8de}.grid{stroke:#e3e7eb}.axis{stroke:#24292f}.tick{stroke:#c4500b}\n"
    ".tickink{fill:#c4500b}.interval{stroke:#24292f}\n"
    "@media (prefers-color-scheme: dark){\n"
    ".page{fill:#0d1117}.ink{fill:#e6edf3}.faint{fill:#9198a1}.library{fill:#4c9be8}\n"
    ".peak{fill:#2b5d8f}.grid{stroke:#262c36}.axis{stroke:#c9d1d9}.tick{stroke:#ff9d5c}\n"
    ".tickink{fill:#ff9d5c}.interval{stroke:#e6edf3}}\n"
    "</style>\n";

std::string Text(double x, double y, const char* anchor, int size, const char* kind,
                 const std::string& text) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" "
      "class=\"{}\">{}</text>\n",
      x, y, anchor, size, kind, XmlEscaped(text));
}

std::string Stroke(const std::string& path, const char* kind, double width) {
  return fmt::format("<path d=\"{}\" class=\"{}\" stroke-width=\"{:g}\"/>\n", path, kind, width);
}

std::string Box(double x, double y, double width, double height, const char* kind) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"1.5\" "
      "class=\"{}\"/>\n",
      x, y, width, height, kind);
}

// The scale of percentages, and the distance of the grid's lines.
struct Axis {
  int left = 0;
  double most = 100, step = 20;

  double X(double percent) const {
    return left + std::clamp(percent / most, 0.0, 1.0) * (kRight - left);
  }
};

Axis AxisOf(const std::vector<RungResult>& results, const std::string& baseline) {
  Axis axis;
  double most = 100, longest = 0;
  for (const RungResult& result : results) {
    longest = std::max(longest, static_cast<double>(DisplayWidth(result.rung.Stem())));
    most = std::max(most, result.rung.predicted_percent);
    if (!result.row) continue;
    const Verdict& verdict = result.row->verdict;
    if (const auto speed = SpeedOf(verdict, baseline))
      most = std::max({most, speed->percent, std::min(speed->high, 1.5 * speed->percent)});
    if (verdict.roofline) most = std::max(most, verdict.roofline->percent_of_peak);
  }
  axis.left = 28 + static_cast<int>(kLetterWidth * std::min(longest, 30.0));
  for (const double step : {20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0}) {
    axis.step = step;
    if (most / step <= 8) break;
  }
  axis.most = std::ceil(most * 1.001 / axis.step) * axis.step;
  return axis;
}

std::string Grid(const Axis& axis, int bottom) {
  std::string svg;
  for (double percent = 0; percent <= axis.most + 0.5; percent += axis.step) {
    const std::string line = fmt::format("M{:.1f} {}V{}", axis.X(percent), kTop, bottom);
    svg += Stroke(line, percent == 0 ? "axis" : "grid", 1);
    svg += Text(axis.X(percent), bottom + 18, "middle", 12, "ink", fmt::format("{:g}%", percent));
  }
  return svg + fmt::format("<path d=\"M{:.1f} {}V{}\" class=\"axis\" stroke-dasharray=\"3 3\"/>\n",
                           axis.X(100), kTop - 6, bottom);
}

// One rung: its bars and figures, or why it has none.
std::string RungBars(const RungResult& result, const std::string& baseline, const Axis& axis,
                     int top) {
  std::string svg = fmt::format("<g><title>{}</title>\n", XmlEscaped(result.rung.idea));
  svg += Text(axis.left - 10, top + 15, "end", 13, "ink", Shortened(result.rung.Stem(), 30, true));
  const auto speed = result.row ? SpeedOf(result.row->verdict, baseline) : std::nullopt;
  // Beside the bars, like the figures: there no mark of a prediction can cross it.
  std::string beside =
      result.row ? std::string(OutcomeName(result.row->verdict.outcome)) : "not judged";
  if (speed) {
    const double bar_top = top + 3;
    svg += Box(axis.left, bar_top, axis.X(speed->percent) - axis.left, kLibraryHeight, "library");
    const double middle = bar_top + kLibraryHeight / 2.0;
    if (std::isfinite(speed->low) && std::isfinite(speed->high))
      svg += Stroke(
          fmt::format("M{:.1f} {:.1f}H{:.1f}", axis.X(speed->low), middle, axis.X(speed->high)),
          "interval", 2);
    beside = fmt::format("{:.1f}%", speed->percent);
    if (const auto& roofline = result.row->verdict.roofline) {
      svg += Box(axis.left, bar_top + kLibraryHeight + 2,
                 axis.X(roofline->percent_of_peak) - axis.left, kPeakHeight, "peak");
      beside += fmt::format(" / {:.1f}%", roofline->percent_of_peak);
    }
  }
  svg += Text(kRight + 10, top + 15, "start", 12, speed ? "ink" : "faint", beside);
  const double predicted = axis.X(result.rung.predicted_percent);
  svg += Stroke(fmt::format("M{:.1f} {}V{}", predicted, top, top + kLibraryHeight + 6), "tick", 3);
  return svg + "</g>\n";
}

std::string Legend(int left, const std::string& baseline) {
  std::string svg = Box(left, 75, 26, 11, "library");
  svg += Text(left + 33, 85, "start", 13, "ink", fmt::format("% of {}", baseline));
  const double peak = left + 56 + kLetterWidth * (5 + DisplayWidth(baseline));
  svg += Box(peak, 78, 26, kPeakHeight, "peak");
  svg += Text(peak + 33, 85, "start", 13, "ink", "% of the measured peak");
  const double tick = peak + 33 + kLetterWidth * 22 + 24;
  svg += Stroke(fmt::format("M{:.1f} 72V88", tick), "tick", 3);
  return svg + Text(tick + 9, 85, "start", 13, "ink", "predicted before measuring");
}

std::string Described(const std::vector<RungResult>& results, const std::string& baseline) {
  std::string text = "Horizontal bars, a rung each.";
  for (const RungResult& result : results) {
    const auto speed = result.row ? SpeedOf(result.row->verdict, baseline) : std::nullopt;
    if (speed)
      text += fmt::format(" {}: {:.1f}% of {}, predicted {:g}%.", result.rung.Stem(),
                          speed->percent, baseline, result.rung.predicted_percent);
  }
  return text;
}

// The machine of the last rung that was judged.
std::string MachineOf(const std::vector<RungResult>& results) {
  std::string machine;
  for (const RungResult& result : results)
    if (result.row)
      machine = result.row->verdict.machine.gpu.empty() ? result.row->verdict.machine.cpu
                                                        : result.row->verdict.machine.gpu;
  return machine.substr(0, machine.find(" ("));
}

}  // namespace

std::string RenderLadderSvg(const Ladder& ladder, const LadderSize& size,
                            const std::vector<RungResult>& results, std::string_view page_id) {
  const Axis axis = AxisOf(results, ladder.baseline);
  const int bottom = kTop + kRowHeight * static_cast<int>(results.size());
  const std::string machine = MachineOf(results);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\" aria-labelledby=\"{5}title {5}description\" "
      "font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n"
      "<title id=\"{5}title\">{2}</title>\n<desc id=\"{5}description\">{3}</desc>\n{4}"
      "<rect width=\"{0}\" height=\"{1}\" class=\"page\"/>\n",
      kWidth, bottom + kBelow, XmlEscaped(ladder.title),
      XmlEscaped(Described(results, ladder.baseline)), page_id.empty() ? kStyle : "",
      page_id.empty() ? "" : std::string(page_id) + "-");
  svg += fmt::format("<g font-weight=\"600\">\n{}</g>\n",
                     Text(24, 34, "start", 18, "ink", Shortened(ladder.title, 84, true)));
  svg += Text(
      24, 57, "start", 13, "faint",
      machine.empty() ? DescribeSize(size) : fmt::format("{}; {}", DescribeSize(size), machine));
  svg += Legend(24, ladder.baseline) + Grid(axis, bottom);
  for (size_t i = 0; i < results.size(); ++i)
    svg += RungBars(results[i], ladder.baseline, axis, kTop + 4 + kRowHeight * static_cast<int>(i));
  svg += Text((axis.left + kRight) / 2.0, bottom + 42, "middle", 13, "faint",
              "100%: as fast as the library, or the machine's measured peak");
  return svg + "</svg>\n";
}

}  // namespace assay
