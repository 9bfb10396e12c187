#include "worklog/climb_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "report/chart_style.h"
#include "report/text.h"

namespace assay {
namespace {

constexpr int kWidth = 760, kHeight = 400;
constexpr double kLeft = 64, kRight = 736, kTop = 88, kBottom = 332;  // of the plot [pixels]
constexpr size_t kNamesMax = 24;                                      // on the axis

// A version's place on the axis of heights.
struct Step {
  std::string name;
  ChartSide side = ChartSide::kFirst;
  bool has_speed = false;
  double value = 0, low = 0, high = 0;  // percent of the bound, or speedup
};

ChartSide SideOf(Player player) {
  return player == Player::kHand    ? ChartSide::kFirst
         : player == Player::kModel ? ChartSide::kSecond
                                    : ChartSide::kThird;
}

const char* LineOf(ChartSide side) {
  return side == ChartSide::kFirst    ? "c-first-line"
         : side == ChartSide::kSecond ? "c-second-line"
                                      : "c-third-line";
}

bool HasPeak(const Match& match) {
  bool any = false;
  for (const VersionFact& version : match.versions) {
    if (version.Speed() == nullptr) continue;
    if (!version.verdict->roofline || version.verdict->roofline->percent_of_peak <= 0) return false;
    any = true;
  }
  return any;
}

std::vector<Step> StepsOf(const Match& match, bool percent) {
  std::vector<Step> steps;
  for (const VersionFact& version : match.versions) {
    Step step{version.said.version, SideOf(version.said.player)};
    if (const BaselineResult* speed = version.Speed()) {
      step.has_speed = true;
      const double scale =
          percent ? version.verdict->roofline->percent_of_peak / speed->speedup : 1;
      step.value = scale * speed->speedup;
      step.low = scale * speed->ci_low;
      step.high = scale * speed->ci_high;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

// 1, 2 or 5 times a power of ten: about five lines to the top.
double GridStep(double most) {
  const double rough = most / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power) return factor * power;
  return 10 * power;
}

std::string ValueText(double value, bool percent) {
  return percent ? fmt::format("{:.3g}%", value) : fmt::format("{:.3g}x", value);
}

class ClimbDrawing {
 public:
  ClimbDrawing(const Match& match, bool percent, std::vector<Step> steps)
      : match_(match), percent_(percent), steps_(std::move(steps)) {
    for (const Step& step : steps_) most_ = std::max({most_, step.high, step.value});
    if (!percent_) most_ = std::max(most_, 1.0);
    grid_ = GridStep(most_);
    most_ = grid_ * std::ceil(most_ * 1.02 / grid_);
  }

  std::string Draw(bool alone, std::string_view id) const {
    const std::string title = percent_ ? "The climb: percent of the bound" : "The climb: speedup";
    std::string svg = ChartOpening(kWidth, kHeight, id, title, Described(), alone);
    svg += "<g font-weight=\"600\">" + ChartText(kLeft, 26, "start", 17, "c-ink", title) + "</g>\n";
    svg += Legend() + Grid();
    for (const ChartSide side : {ChartSide::kFirst, ChartSide::kSecond, ChartSide::kThird})
      svg += Line(side);
    for (size_t i = 0; i < steps_.size(); ++i) svg += OneStep(i);
    return svg +
           ChartText((kLeft + kRight) / 2, kHeight - 18, "middle", 12, "c-ink",
                     "versions in the order in which they were measured") +
           "</svg>\n";
  }

 private:
  double X(size_t i) const {
    return kLeft +
           (static_cast<double>(i) + 0.5) / static_cast<double>(steps_.size()) * (kRight - kLeft);
  }
  double Y(double value) const { return kBottom - value / most_ * (kBottom - kTop); }

  std::string Described() const {
    std::string text = "On " + match_.begun.problem + ". ";
    for (const Step& step : steps_)
      text += fmt::format("{}: {}. ", step.name,
                          step.has_speed ? ValueText(step.value, percent_) : "no speed");
    return text;
  }

  std::string Legend() const {
    std::string svg;
    double x = kLeft;
    constexpr std::string_view kNames[] = {"by hand", "model", "together"};
    for (const ChartSide side : {ChartSide::kFirst, ChartSide::kSecond, ChartSide::kThird}) {
      if (std::none_of(steps_.begin(), steps_.end(),
                       [&](const Step& step) { return step.side == side; }))
        continue;
      svg += ChartMark(side, x + 6, 52);
      svg += ChartText(x + 18, 56, "start", 12, "c-ink", kNames[static_cast<size_t>(side)]);
      x += 110;
    }
    return svg + ChartText(kRight, 56, "end", 12, "c-faint", "bars: intervals; a cross: no speed");
  }

  std::string Grid() const {
    std::string svg;
    for (double value = 0; value <= most_ * 1.001; value += grid_) {
      svg += ChartLine(fmt::format("M{} {:.1f}H{}", kLeft, Y(value), kRight), "c-grid");
      svg += ChartText(kLeft - 8, Y(value) + 4, "end", 12, "c-ink", ValueText(value, percent_));
    }
    if (!percent_) svg += ChartLine(fmt::format("M{} {:.1f}H{}", kLeft, Y(1), kRight), "c-dash");
    return svg + ChartLine(fmt::format("M{} {}V{}H{}", kLeft, kTop, kBottom, kRight), "c-axis");
  }

  std::string Line(ChartSide side) const {
    std::string path;
    for (size_t i = 0; i < steps_.size(); ++i)
      if (steps_[i].side == side && steps_[i].has_speed)
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", X(i), Y(steps_[i].value));
    return path.find('L') == std::string::npos ? "" : ChartLine(path, LineOf(side));
  }

  std::string OneStep(size_t i) const {
    const Step& step = steps_[i];
    const double x = X(i);
    std::string svg;
    if (steps_.size() <= kNamesMax)
      svg += ChartText(x, kBottom + 18, "middle", 12, "c-ink", step.name);
    if (!step.has_speed)
      return svg +
             ChartLine(fmt::format("M{:.1f} {:.1f}l8 8m0-8l-8 8", x - 4, kBottom - 14), "c-axis");
    svg += ChartLine(fmt::format("M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {1:.1f}h8M{3:.1f} {2:.1f}h8", x,
                                 Y(step.low), Y(step.high), x - 4),
                     "c-base-line");
    svg += ChartMark(step.side, x, Y(step.value));
    if (steps_.size() <= kNamesMax)
      svg += ChartText(x, Y(std::max(step.high, step.value)) - 9, "middle", 12, "c-ink",
                       ValueText(step.value, percent_));
    return svg;
  }

  const Match& match_;
  const bool percent_;
  const std::vector<Step> steps_;
  double most_ = 0, grid_ = 1;
};

}  // namespace

std::string RenderClimbSvg(const Match& match, bool alone, std::string_view id) {
  const bool percent = HasPeak(match);
  std::vector<Step> steps = StepsOf(match, percent);
  if (std::none_of(steps.begin(), steps.end(), [](const Step& step) { return step.has_speed; }))
    return {};
  return ClimbDrawing(match, percent, std::move(steps)).Draw(alone, id);
}

}  // namespace assay
