#include "report/chart_style.h"

#include <fmt/format.h>

#include "report/svg.h"

namespace assay {

std::string_view ChartVariables() {
  return ":root{--page:#fff;--ink:#24292f;--faint:#57606a;--grid:#e3e7eb;--mark:#6e7781;"
         "--first:#14548c;--second:#b3470a;--third:#6639ba}\n"
         "@media screen and "
         "(prefers-color-scheme:dark){:root{--page:#0d1117;--ink:#e6edf3;--faint:#9198a1;"
         "--grid:#2d333d;--mark:#9198a1;--first:#4c9be8;--second:#ff9d5c;--third:#b392f0}}\n";
}

std::string_view ChartClasses() {
  return ".c-page{fill:var(--page)}.c-ink{fill:var(--ink)}.c-faint{fill:var(--faint)}\n"
         ".c-grid{stroke:var(--grid);fill:none}.c-axis{stroke:var(--ink);fill:none}\n"
         ".c-roof{stroke:var(--ink);stroke-width:2.5;fill:none}\n"
         ".c-dash{stroke:var(--mark);stroke-dasharray:5 4;fill:none}\n"
         ".c-first{fill:var(--first);stroke:var(--page)}"
         ".c-second{fill:var(--second);stroke:var(--page)}\n"
         ".c-third{fill:var(--third);stroke:var(--page)}"
         ".c-base{fill:var(--mark);stroke:var(--page)}\n"
         ".c-first-line{stroke:var(--first);stroke-width:2;fill:none}"
         ".c-second-line{stroke:var(--second);stroke-width:2;stroke-dasharray:6 4;fill:none}\n"
         ".c-third-line{stroke:var(--third);stroke-width:2;stroke-dasharray:2 3;fill:none}"
         ".c-base-line{stroke:var(--mark);fill:none}\n";
}

std::string ChartMark(ChartSide side, double x, double y) {
  switch (side) {
    case ChartSide::kFirst:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5.5\" class=\"c-first\"/>\n", x,
                         y);
    case ChartSide::kSecond:
      return fmt::format("<path d=\"M{:.1f} {:.1f}h10v10h-10z\" class=\"c-second\"/>\n", x - 5,
                         y - 5);
    case ChartSide::kThird:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l6.5 11h-13z\" class=\"c-third\"/>\n", x, y - 7);
    case ChartSide::kBaseline:
      break;
  }
  return fmt::format("<path d=\"M{:.1f} {:.1f}l6.5 6.5l-6.5 6.5l-6.5-6.5z\" class=\"c-base\"/>\n",
                     x, y - 6.5);
}

std::string ChartText(double x, double y, std::string_view anchor, int size, std::string_view kind,
                      std::string_view text) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\" class=\"{}\">{}"
      "</text>\n",
      x, y, anchor, size, kind, XmlEscaped(std::string(text)));
}

std::string ChartLine(std::string_view path, std::string_view kind) {
  return fmt::format("<path d=\"{}\" class=\"{}\"/>\n", path, kind);
}

std::string ChartOpening(int width, int height, std::string_view id, std::string_view title,
                         std::string_view description, bool alone) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\"{2} role=\"img\" "
      "aria-labelledby=\"{3}-title {3}-text\" font-family=\"system-ui, -apple-system, 'Segoe UI', "
      "'DejaVu Sans', sans-serif\">\n<title id=\"{3}-title\">{4}</title>\n"
      "<desc id=\"{3}-text\">{5}</desc>\n{6}<path d=\"M0 0h{0}v{1}H0z\" class=\"c-page\"/>\n",
      width, height, alone ? fmt::format(" width=\"{}\" height=\"{}\"", width, height) : "", id,
      XmlEscaped(std::string(title)), XmlEscaped(std::string(description)),
      alone ? fmt::format("<style>\n{}{}</style>\n", ChartVariables(), ChartClasses()) : "");
}

}  // namespace assay
