// The picture of where a model's time goes: two bars a place, before and after its swap.
#include <fmt/format.h>

#include <algorithm>

#include "report/svg.h"
#include "report/text.h"
#include "swap/model_report.h"

namespace assay {
namespace {

constexpr int kWidth = 890, kTop = 92, kRowHeight = 40, kLeft = 150, kRight = 560;

constexpr const char* kStyle =
    "<style>\n"
    ".page{fill:#ffffff}.ink{fill:#24292f}.faint{fill:#57606a}.before{fill:#8fb8de}\n"
    ".after{fill:#14548c}.axis{stroke:#24292f}\n"
    "@media (prefers-color-scheme: dark){\n"
    ".page{fill:#0d1117}.ink{fill:#e6edf3}.faint{fill:#9198a1}.before{fill:#2b5d8f}\n"
    ".after{fill:#4c9be8}.axis{stroke:#c9d1d9}}\n"
    "</style>\n";

std::string Text(double x, double y, const char* anchor, int size, const char* kind,
                 const std::string& text) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" "
      "class=\"{}\">{}</text>\n",
      x, y, anchor, size, kind, XmlEscaped(text));
}

std::string Box(double x, double y, double width, double height, const char* kind) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"1.5\" "
      "class=\"{}\"/>\n",
      x, y, std::max(width, 0.5), height, kind);
}

std::string Row(const SwapLine& line, double longest_ns, double top) {
  std::string svg = fmt::format("<g><title>{}</title>\n", XmlEscaped(line.title));
  svg += Text(kLeft - 10, top + 20, "end", 13, "ink", Shortened(line.place, 18, true));
  std::string beside = "not measured";
  if (line.part) {
    const auto width = [&](double time_ns) {
      return std::clamp(time_ns / longest_ns, 0.0, 1.0) * (kRight - kLeft);
    };
    svg += Box(kLeft, top + 4, width(line.part->before_ns), 13, "before");
    svg += Box(kLeft, top + 19, width(line.part->after_ns), 13, "after");
    beside = fmt::format("{} to {}", FormatDuration(line.part->before_ns),
                         FormatDuration(line.part->after_ns));
  }
  svg += Text(kRight + 14, top + 16, "start", 12, "ink", beside);
  if (line.predicted > 0 && line.measured > 0)
    svg += Text(kRight + 14, top + 31, "start", 12, "faint",
                fmt::format("{} of the time; whole {} predicted, {} measured",
                            FormatShare(line.share_before), FormatRatio(line.predicted),
                            FormatRatio(line.measured)));
  return svg + "</g>\n";
}

// "eager 310 tokens/s, compiled 800, swapped 1000".
std::string TokensLine(const ModelReport& report) {
  const Verdict* last = report.Last();
  if (last == nullptr || !last->speed || last->speed->baselines.empty()) return report.machine;
  std::string line = fmt::format("{}, {}", report.machine.substr(0, report.machine.find(" (")),
                                 SettingsOf(report));
  const auto add = [&](const std::string& name, double time_ns) {
    if (time_ns > 0)
      line += fmt::format("; {} {:.0f} tokens/s", name,
                          static_cast<double>(report.tokens) * 1e9 / time_ns);
  };
  double swapped_ns = 0;
  for (const auto& [name, result] : last->speed->baselines) {
    add(name, result.time_ns);
    swapped_ns = result.candidate_time_ns;
  }
  add("swapped", swapped_ns);
  return line;
}

}  // namespace

std::string RenderModelSvg(const ModelReport& report) {
  double longest_ns = 1;
  for (const SwapLine& line : report.lines)
    if (line.part) longest_ns = std::max({longest_ns, line.part->before_ns, line.part->after_ns});
  const int bottom = kTop + kRowHeight * static_cast<int>(report.lines.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\" aria-labelledby=\"title\" font-family=\"system-ui, "
      "-apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n<title id=\"title\">{2}</title>\n"
      "{3}<rect width=\"{0}\" height=\"{1}\" class=\"page\"/>\n",
      kWidth, bottom + 16, XmlEscaped(report.title), kStyle);
  svg += fmt::format("<g font-weight=\"600\">\n{}</g>\n",
                     Text(24, 30, "start", 18, "ink", Shortened(report.title, 84, true)));
  svg += Text(24, 52, "start", 13, "faint", TokensLine(report));
  svg += Box(24, 64, 26, 11, "before") + Text(57, 74, "start", 13, "ink", "before its swap") +
         Box(180, 64, 26, 11, "after") +
         Text(213, 74, "start", 13, "ink", "after all swaps: time of a call");
  svg += fmt::format("<path d=\"M{} {}V{}\" class=\"axis\"/>\n", kLeft, kTop, bottom);
  for (size_t i = 0; i < report.lines.size(); ++i)
    svg += Row(report.lines[i], longest_ns, kTop + kRowHeight * static_cast<double>(i));
  return svg + "</svg>\n";
}

}  // namespace assay
