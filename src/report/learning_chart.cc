#include "report/learning_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "report/score_chart.h"
#include "report/svg.h"
#include "report/text.h"

namespace assay {
namespace {

constexpr int kWidth = 760, kHeight = 400;
constexpr int kLeft = 66, kRight = 736, kTop = 96, kBottom = 336;  // of the plot
constexpr const char* kCertified = "#14548c";
constexpr const char* kCorrect = "#c4500b";
constexpr const char* kInk = "#24292f";
constexpr const char* kFaint = "#57606a";
constexpr const char* kGrid = "#e3e7eb";

double X(size_t index, size_t count) {
  if (count < 2) return (kLeft + kRight) / 2.0;
  return kLeft + static_cast<double>(index) / static_cast<double>(count - 1) * (kRight - kLeft);
}

double Y(double share) { return kBottom - share * (kBottom - kTop); }

std::string TextAt(double x, double y, const char* anchor, int size, const char* colour,
                   const std::string& text) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"{}\">{}</text>\n",
      x, y, anchor, size, colour, XmlEscaped(text));
}

// A point a round, joined; a single round shows as a dot.
std::string Line(const std::vector<LearningPoint>& curve, double LearningPoint::*share,
                 const char* colour, const char* dashes) {
  std::string path, dots;
  for (size_t i = 0; i < curve.size(); ++i) {
    const double x = X(i, curve.size()), y = Y(curve[i].*share);
    path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? 'M' : 'L', x, y);
    if (curve.size() <= 40)
      dots +=
          fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x, y, colour);
  }
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"3\"{}/>\n{}", path,
                     colour, dashes, dots);
}

std::string Axes(const std::vector<LearningPoint>& curve) {
  std::string svg;
  for (int tenths = 0; tenths <= 10; tenths += 2) {
    svg += fmt::format("<path d=\"M{} {:.1f}H{}\" stroke=\"{}\"/>\n", kLeft, Y(tenths / 10.0),
                       kRight, kGrid);
    svg +=
        TextAt(kLeft - 8, Y(tenths / 10.0) + 4, "end", 12, kInk, fmt::format("{}%", 10 * tenths));
  }
  const size_t every = (curve.size() + 15) / 16;
  for (size_t i = 0; i < curve.size(); i += every)
    svg += TextAt(X(i, curve.size()), kBottom + 18, "middle", 12, kInk,
                  fmt::format("{}", curve[i].round));
  return svg + fmt::format("<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"{4}\"/>\n", kLeft,
                           kTop, kBottom, kRight, kInk);
}

}  // namespace

std::string RenderLearningSvg(const std::vector<LearningPoint>& curve) {
  ASSAY_CHECK(!curve.empty());
  const LearningPoint& last = curve.back();
  const std::string title =
      fmt::format("Reached after each of {}", Counted(static_cast<int64_t>(curve.size()), "round"));
  const std::string described = fmt::format(
      "Two lines over rounds: the share of problems with a correct attempt so far, {} in the end, "
      "and with one certified to be faster, {} in the end.",
      FormatPercent(last.correct), FormatPercent(last.certified));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\" aria-labelledby=\"title description\" font-family=\"system-ui, "
      "-apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n"
      "<title id=\"title\">{2}</title>\n<desc id=\"description\">{3}</desc>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight, XmlEscaped(title), XmlEscaped(described));
  svg +=
      fmt::format("<g font-weight=\"600\">\n{}</g>\n", TextAt(kLeft, 32, "start", 18, kInk, title));
  svg += TextAt(kLeft, 54, "start", 13, kFaint,
                fmt::format("Mean speedup in the end, at least 1 a problem: {}",
                            FormatRatio(last.mean_speedup)));
  const char* const dashes = " stroke-dasharray=\"7 5\"";
  const auto legend = [](int x, const char* colour, const char* stroke, const std::string& text) {
    return fmt::format("<path d=\"M{} 74h34\" stroke=\"{}\" stroke-width=\"3\"{}/>\n", x, colour,
                       stroke) +
           TextAt(x + 42, 78, "start", 13, kInk, text);
  };
  svg += legend(kLeft, kCertified, "", "certified faster: " + FormatPercent(last.certified));
  svg += legend(kLeft + 250, kCorrect, dashes, "correct: " + FormatPercent(last.correct));
  svg += Axes(curve);
  svg += Line(curve, &LearningPoint::certified, kCertified, "");
  svg += Line(curve, &LearningPoint::correct, kCorrect, dashes);
  svg += TextAt((kLeft + kRight) / 2.0, kHeight - 18, "middle", 13, kInk, "round");
  return svg + "</svg>\n";
}

}  // namespace assay
