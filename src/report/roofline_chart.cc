#include "report/roofline_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text.h"

namespace assay {
namespace {

constexpr int kWidth = 760, kHeight = 470;
constexpr double kLeft = 98, kRight = 716, kTop = 92, kBottom = 404;  // of the plot [pixels]
constexpr double kLabelGap = 15;                                      // between labels [pixels]

const BaselineResult* Headline(const Verdict& verdict) {
  if (!verdict.speed) return nullptr;
  const auto found = verdict.speed->baselines.find(verdict.speed->headline);
  return found == verdict.speed->baselines.end() || found->second.candidate_time_ns <= 0
             ? nullptr
             : &found->second;
}

// A logarithmic axis over whole decades.
struct LogAxis {
  int low = 0, high = 1;
  double from = 0, to = 1;  // pixels

  static LogAxis Over(double least, double most, double from, double to) {
    LogAxis axis{static_cast<int>(std::floor(std::log10(least))),
                 static_cast<int>(std::ceil(std::log10(most))), from, to};
    axis.high = std::max(axis.high, axis.low + 1);
    return axis;
  }
  double At(double value) const {
    const double along = (std::log10(value) - low) / (high - low);
    return from + std::clamp(along, 0.0, 1.0) * (to - from);
  }
};

struct Scale {
  LogAxis x, y;
};

Scale ScaleOf(const RooflineChart& chart) {
  const double ridge = chart.rate_operations_s / chart.bandwidth_bytes_s;
  double least_x = std::min(chart.Intensity(), ridge), most_x = std::max(chart.Intensity(), ridge);
  double least_y = chart.rate_operations_s, most_y = chart.rate_operations_s;
  for (const RooflinePoint& point : chart.points) {
    least_x = std::min(least_x, point.intensity);
    least_y = std::min(least_y, point.rate);
    most_y = std::max(most_y, point.rate);
  }
  return {LogAxis::Over(least_x / 2, most_x * 2, kLeft, kRight),
          LogAxis::Over(least_y / 1.5, most_y * 1.1, kBottom, kTop)};
}

std::string Described(const RooflineChart& chart) {
  std::string text = fmt::format(
      "Operations a second over operations a byte, both logarithmic. The roof: memory at {}, "
      "arithmetic at {}. The bound of {} is {} a call.",
      FormatRate(chart.bandwidth_bytes_s, "B/s"), FormatRate(chart.rate_operations_s, "FLOP/s"),
      chart.problem, FormatDuration(chart.bound_ns));
  for (const RooflinePoint& point : chart.points)
    text += fmt::format(" {}: {}, {:.0f}% of the bound.", point.label,
                        FormatDuration(point.time_ns), point.percent);
  return text;
}

std::string Grid(const Scale& scale) {
  std::string svg;
  for (int decade = scale.x.low; decade <= scale.x.high; ++decade) {
    const double x = scale.x.At(std::pow(10, decade));
    svg += ChartLine(fmt::format("M{:.1f} {}V{}", x, kTop, kBottom), "c-grid");
    svg += ChartText(x, kBottom + 18, "middle", 12, "c-ink",
                     fmt::format("{:g}", std::pow(10, decade)));
  }
  for (int decade = scale.y.low; decade <= scale.y.high; ++decade) {
    const double y = scale.y.At(std::pow(10, decade));
    svg += ChartLine(fmt::format("M{} {:.1f}H{}", kLeft, y, kRight), "c-grid");
    svg +=
        ChartText(kLeft - 8, y + 4, "end", 12, "c-ink", FormatRate(std::pow(10, decade), "FLOP/s"));
  }
  return svg + ChartLine(fmt::format("M{} {}V{}H{}", kLeft, kTop, kBottom, kRight), "c-axis");
}

std::string Roof(const RooflineChart& chart, const Scale& scale) {
  const double ridge = chart.rate_operations_s / chart.bandwidth_bytes_s;
  const double first = std::pow(10, scale.x.low);
  // The memory roof enters the plot at its left or at its lower edge.
  const double start = std::max(first, std::pow(10, scale.y.low) / chart.bandwidth_bytes_s);
  std::string svg =
      ChartLine(fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}H{}", scale.x.At(start),
                            scale.y.At(start * chart.bandwidth_bytes_s), scale.x.At(ridge),
                            scale.y.At(chart.rate_operations_s), kRight),
                "c-roof");
  svg += ChartText(kRight, scale.y.At(chart.rate_operations_s) - 8, "end", 12, "c-faint",
                   fmt::format("arithmetic {}{}", FormatRate(chart.rate_operations_s, "FLOP/s"),
                               chart.instructions.empty() ? "" : ", " + chart.instructions));
  svg += ChartText(kLeft + 8, kTop + 14, "start", 12, "c-faint",
                   fmt::format("slope: memory {}", FormatRate(chart.bandwidth_bytes_s, "B/s")));
  const double x = scale.x.At(chart.Intensity()), bound = scale.y.At(chart.BoundRate());
  svg += ChartLine(fmt::format("M{:.1f} {}V{:.1f}", x, kBottom, bound), "c-dash");
  svg += ChartLine(fmt::format("M{:.1f} {:.1f}h24", x - 12, bound), "c-roof");
  return svg;
}

// Labels beside their points, moved apart where they would overlap.
std::string Points(const RooflineChart& chart, const Scale& scale) {
  struct Label {
    double x = 0, y = 0, at = 0;
    std::string text;
    const char* kind = "c-ink";
  };
  std::vector<Label> labels;
  std::string svg;
  for (const RooflinePoint& point : chart.points) {
    // Versions share their intensity: sides stand a little apart, or one would hide the other.
    const double aside = point.side == ChartSide::kFirst   ? -9
                         : point.side == ChartSide::kThird ? 9
                                                           : 0;
    const double x = scale.x.At(point.intensity) + aside, y = scale.y.At(point.rate);
    svg += ChartMark(point.side, x, y);
    labels.push_back({x, y, y, fmt::format("{} {:.0f}%", point.label, point.percent)});
  }
  labels.push_back(
      {scale.x.At(chart.Intensity()), scale.y.At(chart.BoundRate()), scale.y.At(chart.BoundRate()),
       fmt::format("bound {}, by {}", FormatDuration(chart.bound_ns), chart.regime), "c-faint"});
  std::stable_sort(labels.begin(), labels.end(),
                   [](const Label& a, const Label& b) { return a.at < b.at; });
  for (size_t i = 1; i < labels.size(); ++i)
    labels[i].at = std::max(labels[i].at, labels[i - 1].at + kLabelGap);
  // Labels that were pushed out of the plot go back up.
  for (size_t i = labels.size(); i-- > 0;) {
    const double most = kBottom - 6 - kLabelGap * static_cast<double>(labels.size() - 1 - i);
    labels[i].at = std::min(labels[i].at, most);
  }
  for (const Label& label : labels) {
    const bool left = label.x > kRight - 130;
    const double x = label.x + (left ? -16 : 16);
    if (std::abs(label.at - label.y) > 4)
      svg += ChartLine(fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", label.x, label.y,
                                   x + (left ? 2 : -2), label.at),
                       "c-base-line");
    svg += ChartText(x, label.at + 4, left ? "end" : "start", 12, label.kind, label.text);
  }
  return svg;
}

std::string Legend(const RooflineChart& chart) {
  const std::string_view names[] = {chart.first_name, "model", "together", "baseline"};
  std::string svg;
  double x = kLeft;
  for (const ChartSide side :
       {ChartSide::kFirst, ChartSide::kSecond, ChartSide::kThird, ChartSide::kBaseline}) {
    if (std::none_of(chart.points.begin(), chart.points.end(),
                     [&](const RooflinePoint& point) { return point.side == side; }))
      continue;
    svg += ChartMark(side, x + 6, 68);
    svg += ChartText(x + 18, 72, "start", 12, "c-ink", names[static_cast<size_t>(side)]);
    x += 110;
  }
  return svg;
}

}  // namespace

Result<RooflineChart> MakeRooflineChart(std::span<const RooflineVersion> versions) {
  RooflineChart chart;
  const Verdict* first = nullptr;
  for (const RooflineVersion& version : versions) {
    const Verdict& verdict = *version.verdict;
    const BaselineResult* speed = Headline(verdict);
    if (speed == nullptr || !verdict.roofline || !verdict.work) continue;
    if (verdict.work->operations <= 0 || verdict.work->bytes <= 0)
      return UsageError(
          fmt::format("the operations of {} are not known, so there is no roofline; flops in "
                      "suite.toml tells them",
                      verdict.problem.name));
    if (first == nullptr) {
      first = &verdict;
      const Roofline& roofline = *verdict.roofline;
      const Work& work = *verdict.work;
      chart = {verdict.problem.name,
               verdict.problem.size,
               verdict.machine.gpu.empty() ? verdict.machine.cpu : verdict.machine.gpu,
               roofline.regime,
               roofline.instructions,
               roofline.bandwidth_bytes_s,
               roofline.rate_operations_s,
               roofline.empty_call_ns,
               roofline.bound_ns,
               work.operations,
               work.bytes,
               work.unfused_bytes,
               {},
               "candidate"};
      if (chart.bandwidth_bytes_s <= 0 || chart.rate_operations_s <= 0 || chart.bound_ns <= 0)
        return UsageError("the verdicts have no ceilings: run assay doctor, then judge again");
      // The baseline's operators write what lies between them.
      const double bytes = work.unfused_bytes > 0 ? work.unfused_bytes : work.bytes;
      chart.points.push_back({verdict.speed->headline, ChartSide::kBaseline, speed->time_ns,
                              work.operations / bytes, work.operations / speed->time_ns * 1e9,
                              roofline.reference_percent_of_peak, ""});
    } else if (verdict.problem.hash != first->problem.hash ||
               verdict.problem.set != first->problem.set ||
               verdict.problem.size != first->problem.size) {
      return UsageError(
          fmt::format("{} was judged on another problem or at another size than {}: one roofline "
                      "has one problem",
                      version.label, versions.front().label));
    } else if (verdict.machine.cpu != first->machine.cpu ||
               verdict.machine.gpu != first->machine.gpu ||
               verdict.machine.threads != first->machine.threads) {
      return UsageError(
          fmt::format("{} was judged on another machine, or with other threads, than {}: one "
                      "roofline has one machine",
                      version.label, versions.front().label));
    }
    chart.points.push_back({version.label, version.side, speed->candidate_time_ns,
                            chart.Intensity(), chart.operations / speed->candidate_time_ns * 1e9,
                            verdict.roofline->percent_of_peak, verdict.bottleneck});
  }
  if (first == nullptr)
    return UsageError(
        "no verdict has a speed and a bound: judge a correct candidate after assay doctor");
  return chart;
}

std::string RenderRooflineSvg(const RooflineChart& chart, bool alone, std::string_view id) {
  const Scale scale = ScaleOf(chart);
  const std::string title =
      fmt::format("Roofline of {}{}", chart.problem, chart.size.empty() ? "" : ", " + chart.size);
  std::string svg = ChartOpening(kWidth, kHeight, id, title, Described(chart), alone);
  svg += "<g font-weight=\"600\">" + ChartText(kLeft, 26, "start", 17, "c-ink", title) + "</g>\n";
  svg += ChartText(kLeft, 46, "start", 12, "c-faint",
                   Shortened(fmt::format("{}; percent are of the bound", chart.machine), 90, true));
  svg += Legend(chart) + Grid(scale) + Roof(chart, scale) + Points(chart, scale);
  svg += ChartText((kLeft + kRight) / 2, kHeight - 24, "middle", 12, "c-ink",
                   "operations a byte of compulsory traffic (the baseline: of its own)");
  return svg + "</svg>\n";
}

std::string RenderRooflineText(const RooflineChart& chart, const CardStyle& style) {
  constexpr int kBarWidth = 30;
  const char* bar = style.unicode ? "█" : "#";
  std::string text = fmt::format("{}{} on {}\n", chart.problem,
                                 chart.size.empty() ? "" : ", " + chart.size, chart.machine);
  text += fmt::format("memory {}, arithmetic {}; {:.3g} operations a byte\n",
                      FormatRate(chart.bandwidth_bytes_s, "B/s"),
                      FormatRate(chart.rate_operations_s, "FLOP/s"), chart.Intensity());
  text += fmt::format("{:<14} {:>9}  {:>14}  {}\n", "bound", FormatDuration(chart.bound_ns),
                      FormatRate(chart.BoundRate(), "FLOP/s"), "by " + chart.regime);
  for (const RooflinePoint& point : chart.points) {
    const int width =
        static_cast<int>(std::lround(std::clamp(point.percent / 100, 0.0, 1.0) * kBarWidth));
    text += fmt::format("{:<14} {:>9}  {:>14}  {:>5.1f}%  {}\n",
                        Shortened(Printable(point.label, style.unicode), 14, style.unicode),
                        FormatDuration(point.time_ns), FormatRate(point.rate, "FLOP/s"),
                        point.percent, Repeated(bar, width));
    if (!point.bottleneck.empty())
      text += fmt::format("{:<14} {}\n", "", Printable(point.bottleneck, style.unicode));
  }
  return text;
}

}  // namespace assay
