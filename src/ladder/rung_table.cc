#include "ladder/rung_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text.h"

namespace assay {
namespace {

constexpr int kNameWidthMax = 26;
constexpr int kTimeWidth = 9, kLibraryWidth = 22, kPredictedWidth = 10, kPeakWidth = 9;
constexpr const char* kGap = "  ";

Tone ToneOf(Outcome outcome) {
  if (outcome == Outcome::kFaster) return Tone::kGood;
  return IsCorrect(outcome) ? Tone::kPlain : Tone::kBad;
}

std::string Padded(const std::string& text, int width) {
  return text + std::string(static_cast<size_t>(std::max(0, width - DisplayWidth(text))), ' ');
}

std::string Right(const std::string& text, int width) {
  return std::string(static_cast<size_t>(std::max(0, width - DisplayWidth(text))), ' ') + text;
}

std::string LibraryText(const Verdict& verdict, const std::string& baseline) {
  const auto speed = SpeedOf(verdict, baseline);
  if (!speed) return "-";
  return fmt::format("{:.1f} [{:.1f}, {:.1f}]", speed->percent, speed->low, speed->high);
}

int NameWidth(const std::vector<std::string>& names) {
  int width = 4;
  for (const std::string& name : names) width = std::max(width, DisplayWidth(name));
  return std::min(width, kNameWidthMax);
}

// Of one rung's bars.
struct Bars {
  std::string name;
  RungSpeed speed;
  std::optional<double> percent_of_peak;
  double predicted_percent = 0;
};

}  // namespace

RungTable::RungTable(const Ladder& ladder, const std::vector<Rung>& rungs, CardStyle style)
    : ladder_(ladder), style_(style) {
  std::vector<std::string> names;
  for (const Rung& rung : rungs) names.push_back(rung.Stem());
  name_width_ = NameWidth(names);
}

std::string RungTable::Below(const std::string& text, Tone tone) const {
  std::string below;
  const int width = std::max(20, style_.width - 4);
  for (const std::string& line : Wrapped(Printable(text, style_.unicode), width))
    below += "    " + Painted({line, tone}, style_) + "\n";
  return below;
}

std::string RungTable::Head(const LadderSize& size, const std::string& judge) const {
  const std::string title =
      Printable(fmt::format("{}: {}", ladder_.name, ladder_.title), style_.unicode);
  std::string head = Padded("rung", name_width_) + kGap + Right("time", kTimeWidth);
  for (const std::string& baseline : ladder_.Baselines())
    head += kGap +
            Right("% of " + Shortened(baseline, kLibraryWidth - 5, style_.unicode), kLibraryWidth);
  head += kGap + Right("predicted", kPredictedWidth) + kGap + Right("% of peak", kPeakWidth) +
          kGap + "outcome";
  return fmt::format("{}\n{}; judge {}\n\n{}\n", Painted({title, Tone::kStrong}, style_),
                     DescribeSize(size), judge, Painted({head, Tone::kFaint}, style_));
}

std::string RungTable::Row(const RungResult& result) const {
  const Rung& rung = result.rung;
  std::string text = Padded(
      Shortened(Printable(rung.Stem(), style_.unicode), name_width_, style_.unicode), name_width_);
  const std::string predicted = Right(fmt::format("{:g}", rung.predicted_percent), kPredictedWidth);
  if (!result.row) {
    text += kGap + Right("-", kTimeWidth);
    for (size_t i = 0; i < ladder_.Baselines().size(); ++i)
      text += kGap + Right("-", kLibraryWidth);
    return text + kGap + predicted + kGap + Right("-", kPeakWidth) + kGap + "not judged\n" +
           Below(rung.idea, Tone::kFaint);
  }
  const Verdict& verdict = result.row->verdict;
  const auto speed = SpeedOf(verdict, ladder_.baseline);
  text += kGap + Right(speed ? FormatDuration(speed->time_ns) : "-", kTimeWidth);
  for (const std::string& baseline : ladder_.Baselines())
    text += kGap + Right(LibraryText(verdict, baseline), kLibraryWidth);
  const std::string peak =
      verdict.roofline ? fmt::format("{:.1f}", verdict.roofline->percent_of_peak) : "-";
  text += kGap + predicted + kGap + Right(peak, kPeakWidth) + kGap;
  text += Painted({std::string(OutcomeName(verdict.outcome)), ToneOf(verdict.outcome)}, style_);
  text += (result.recorded ? " (recorded)\n" : "\n") + Below(rung.idea, Tone::kFaint);
  if (!IsCorrect(verdict.outcome)) return text + Below(verdict.message, Tone::kBad);
  return verdict.bottleneck.empty() ? text : text + Below(verdict.bottleneck, Tone::kPlain);
}

std::string RenderRungBars(const Ladder& ladder, const std::vector<RungResult>& results,
                           const CardStyle& style) {
  std::vector<Bars> all;
  std::vector<std::string> names;
  double most = 100;
  for (const RungResult& result : results) {
    const auto speed = result.row ? SpeedOf(result.row->verdict, ladder.baseline) : std::nullopt;
    if (!speed) continue;
    Bars bars{
        Printable(result.rung.Stem(), style.unicode), *speed, {}, result.rung.predicted_percent};
    if (const auto& roofline = result.row->verdict.roofline)
      bars.percent_of_peak = roofline->percent_of_peak;
    most =
        std::max({most, speed->percent, bars.percent_of_peak.value_or(0), bars.predicted_percent});
    names.push_back(bars.name);
    all.push_back(std::move(bars));
  }
  if (all.empty()) return {};
  const int name_width = NameWidth(names);
  const int columns = std::max(10, style.width - name_width - 11);
  const auto column = [&](double percent) {
    return static_cast<int>(std::lround(percent / most * columns));
  };
  const char* const full = style.unicode ? "█" : "#";
  const char* const light = style.unicode ? "░" : ".";
  const char* const mark = style.unicode ? "┃" : "|";
  const auto bar = [&](double percent, const char* glyph, std::optional<double> marked) {
    std::string text;
    const int end = column(percent);
    const int at = marked ? std::clamp(column(*marked), 1, columns) - 1 : -1;
    for (int i = 0; i < std::max(end, at + 1); ++i) text += i == at ? mark : i < end ? glyph : " ";
    return text + fmt::format(" {:.1f}%", percent);
  };
  std::string text = "\n";
  for (const Bars& bars : all) {
    text += Padded(Shortened(bars.name, name_width, style.unicode), name_width) + kGap +
            bar(bars.speed.percent, full, bars.predicted_percent) + "\n";
    if (bars.percent_of_peak)
      text +=
          Padded("", name_width) + kGap + bar(*bars.percent_of_peak, light, std::nullopt) + "\n";
  }
  return text + fmt::format("{}{}{} of {}   {} of the peak   {} as predicted\n",
                            Padded("", name_width), kGap, full, ladder.baseline, light, mark);
}

}  // namespace assay
