#include "report/score_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/svg.h"
#include "report/text.h"

namespace assay {
namespace {

constexpr int kWidth = 760, kHeight = 440;
constexpr int kLeft = 66, kRight = 736, kTop = 116, kBottom = 376;  // of the plot

struct Colours {
  const char* certified;
  const char* plain;
  const char* ink;
  const char* faint;
  const char* grid;
  const char* mark;  // of the line at p = 1
  const char* page;
};
constexpr Colours kLight{"#14548c", "#c4500b", "#24292f", "#57606a",
                         "#e3e7eb", "#8c959f", "#ffffff"};
constexpr Colours kOfPage{"var(--certified)", "var(--plain)", "var(--ink)", "var(--faint)",
                          "var(--grid)",      "var(--mark)",  "var(--page)"};

// Places in the picture, in pixels.
class Scale {
 public:
  Scale(const Score& score, const CurveAxis& axis) : asked_(score.asked), axis_(axis) {}
  double X(double p) const {
    const double along = (std::log2(p) - axis_.low) / (axis_.high - axis_.low);
    return kLeft + std::clamp(along, 0.0, 1.0) * (kRight - kLeft);
  }
  double Y(int64_t count) const { return YOfShare(Share{count, asked_}.value()); }
  static double YOfShare(double share) { return kBottom - share * (kBottom - kTop); }

 private:
  int64_t asked_;
  CurveAxis axis_;
};

// The curve from the left edge to the right one, as commands of an SVG path.
std::string PathOf(const Curve& curve, const Scale& scale, double start) {
  std::string path = fmt::format("M{} {:.1f}", kLeft, scale.Y(CountAt(curve, start)));
  for (const CurveStep& step : curve)
    if (step.p > start) path += fmt::format("H{:.1f}V{:.1f}", scale.X(step.p), scale.Y(step.count));
  return path + fmt::format("H{}", kRight);
}

std::string TextAt(double x, double y, const char* anchor, int size, const char* colour,
                   const std::string& text) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" "
      "fill=\"{}\">{}</text>\n",
      x, y, anchor, size, colour, XmlEscaped(text));
}

std::string Grid(const CurveAxis& axis, const Scale& scale, const Colours& colours) {
  std::string svg = fmt::format("<g stroke=\"{}\">\n", colours.grid);
  for (int tenths = 2; tenths <= 10; tenths += 2)
    svg +=
        fmt::format("<path d=\"M{} {:.1f}H{}\"/>\n", kLeft, Scale::YOfShare(tenths / 10.0), kRight);
  for (int octave = axis.low; octave <= axis.high; ++octave)
    svg += fmt::format("<path d=\"M{:.1f} {}V{}\"/>\n", scale.X(std::exp2(octave)), kTop, kBottom);
  svg += "</g>\n";
  const double one = scale.X(1);
  svg += fmt::format("<path d=\"M{:.1f} {}V{}\" stroke=\"{}\"/>\n", one, kTop - 16, kBottom,
                     colours.mark);
  svg += fmt::format("<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"{4}\"/>\n", kLeft, kTop,
                     kBottom, kRight, colours.ink);
  svg += TextAt(one + 6, kTop - 7, "start", 11, colours.faint, "faster than the baseline \u2192");
  for (int tenths = 0; tenths <= 10; tenths += 2)
    svg += TextAt(kLeft - 8, Scale::YOfShare(tenths / 10.0) + 4, "end", 12, colours.ink,
                  fmt::format("{}%", 10 * tenths));
  for (int octave = axis.low; octave <= axis.high; ++octave)
    svg += TextAt(scale.X(std::exp2(octave)), kBottom + 18, "middle", 12, colours.ink,
                  fmt::format("{:g}", std::exp2(octave)));
  return svg;
}

std::string Legend(double x, const char* colour, const char* dashes, const std::string& text,
                   const char* ink) {
  return fmt::format("<path d=\"M{} 80h34\" stroke=\"{}\" stroke-width=\"3\"{}/>\n", x, colour,
                     dashes) +
         TextAt(x + 42, 84, "start", 13, ink, text);
}

std::string Described(const Score& score) {
  const auto share = [&](const Curve& curve, double p) {
    return FormatPercent(Share{CountAt(curve, p), score.asked}.value());
  };
  std::string text = fmt::format(
      "Two falling steps over p, how many times as fast as the baseline, on a logarithmic axis: "
      "the "
      "share of {} problems asked for. {} are correct.",
      score.asked, FormatPercent(score.correct.value()));
  for (const double p : {0.5, 1.0, 2.0, 4.0})
    text += fmt::format(" More than {:g} times as fast: {} plain, {} certified.", p,
                        share(score.plain, p), share(score.certified, p));
  return text;
}

}  // namespace

double CurveAxis::Start() const { return std::exp2(low); }

CurveAxis AxisOf(const Score& score) {
  double least = 0.5, most = 2.001;
  for (const ProblemScore& problem : score.problems) {
    if (problem.speedup <= 0) continue;
    least = std::min(least, problem.speedup);
    most = std::max({most, problem.speedup, problem.certified_speedup});
  }
  CurveAxis axis;
  axis.low = std::clamp(static_cast<int>(std::floor(std::log2(least))), -6, -2);
  // A ratio at the right end itself would fall out of sight.
  axis.high = std::clamp(static_cast<int>(std::ceil(std::log2(most * 1.01))), 2, 10);
  return axis;
}

std::string FormatPercent(double share) {
  if (share > 0 && share < 0.005) return "<1%";
  if (share < 1 && share >= 0.995) return ">99%";
  return fmt::format("{:.0f}%", 100 * share);
}

std::string RenderCurveSvg(const Score& score, CurveTheme theme) {
  const Colours& colours = theme == CurveTheme::kLight ? kLight : kOfPage;
  const CurveAxis axis = AxisOf(score);
  const Scale scale(score, axis);
  const std::string baseline =
      score.baseline.empty() ? "the baseline" : Shortened(score.baseline, 30, true);
  const std::string title =
      fmt::format("fast_p of {} against {}", Counted(score.asked, "problem"), baseline);
  const auto named = [&](const char* name, const Curve& curve) {
    return fmt::format("{} (fast_1 = {})", name,
                       FormatPercent(Share{CountAt(curve, 1), score.asked}.value()));
  };
  const char* const dashes = " stroke-dasharray=\"7 5\"";
  const std::string certified = PathOf(score.certified, scale, axis.Start());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\" aria-labelledby=\"title description\" font-family=\"system-ui, "
      "-apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n"
      "<title id=\"title\">{2}</title>\n<desc id=\"description\">{3}</desc>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"{4}\"/>\n",
      kWidth, kHeight, XmlEscaped(title), XmlEscaped(Described(score)), colours.page);
  svg += fmt::format("<g font-weight=\"600\">\n{}</g>\n",
                     TextAt(kLeft, 32, "start", 18, colours.ink, title));
  svg +=
      TextAt(kLeft, 54, "start", 13, colours.faint,
             "Share of the problems asked for that are solved correctly and more than p times as "
             "fast");
  svg += Legend(kLeft, colours.certified, "", named("certified", score.certified), colours.ink);
  svg += Legend(kLeft + 250, colours.plain, dashes, named("plain: the median ratio", score.plain),
                colours.ink);
  svg += Grid(axis, scale, colours);
  svg += fmt::format("<path d=\"{}V{}H{}Z\" fill=\"{}\" fill-opacity=\"0.09\"/>\n", certified,
                     kBottom, kLeft, colours.certified);
  svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"3\"/>\n", certified,
                     colours.certified);
  // Dashes on top: where the curves are one, both still show.
  svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"3\"{}/>\n",
                     PathOf(score.plain, scale, axis.Start()), colours.plain, dashes);
  svg += TextAt((kLeft + kRight) / 2.0, kHeight - 18, "middle", 13, colours.ink,
                fmt::format("p: times as fast as {} (logarithmic)", baseline));
  return svg + "</svg>\n";
}

}  // namespace assay
