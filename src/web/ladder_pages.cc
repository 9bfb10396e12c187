#include "web/ladder_pages.h"

#include <algorithm>
#include <cmath>

#include "ladder/ladder_chart.h"
#include "model/outcome.h"
#include "report/text.h"
#include "web/parts.h"

namespace assay {
namespace {

std::string MachineOf(const LadderView& view) {
  for (const RungResult& result : view.results)
    if (result.row)
      return result.row->verdict.machine.gpu.empty() ? result.row->verdict.machine.cpu
                                                     : result.row->verdict.machine.gpu;
  return {};
}

// The rung that is fastest beside the library.
const RungResult* TopOf(const LadderView& view) {
  const RungResult* top = nullptr;
  double most = 0;
  for (const RungResult& result : view.results) {
    const auto speed =
        result.row ? SpeedOf(result.row->verdict, view.ladder.baseline) : std::nullopt;
    if (!speed || speed->percent <= most) continue;
    most = speed->percent;
    top = &result;
  }
  return top;
}

Html RungTableHtml(const LadderView& view) {
  PageTable table("rungs", {{"rung", "name"},
                            {"idea", "why"},
                            {"time", "n"},
                            {fmt::format("of {}", view.ladder.baseline), "n"},
                            {"interval", ""},
                            {"predicted", "n"},
                            {"of the peak", "n"},
                            {"outcome", ""}});
  for (const RungResult& result : view.results) {
    const auto speed =
        result.row ? SpeedOf(result.row->verdict, view.ladder.baseline) : std::nullopt;
    const RungSpeed shown = speed.value_or(RungSpeed());
    const bool has_interval = speed && std::isfinite(shown.low) && std::isfinite(shown.high);
    table.Row({Markup("<code>{}</code>", result.rung.Stem()), Text(result.rung.idea),
               Text(speed ? FormatDuration(speed->time_ns) : "-"),
               Text(speed ? fmt::format("{:.1f}%", speed->percent) : "-"),
               has_interval ? Markup("<span class=\"faint nowrap\">{:.1f}% to {:.1f}%</span>",
                                     shown.low, shown.high)
                            : Html(),
               Markup("{:g}%", result.rung.predicted_percent),
               result.row && result.row->verdict.roofline
                   ? Markup("{:.1f}%", result.row->verdict.roofline->percent_of_peak)
                   : Html(),
               result.row ? OutcomeBadge(OutcomeName(result.row->verdict.outcome))
                          : Html::Trusted("<span class=\"faint\">not judged</span>")});
  }
  return table.End();
}

}  // namespace

std::string LadderPageName(const Ladder& ladder) {
  constexpr std::string_view kBegin = "ladder-", kEnd = ".toml";
  if (!ladder.file.starts_with(kBegin) || !ladder.file.ends_with(kEnd)) return ladder.name;
  return ladder.name + "." +
         ladder.file.substr(kBegin.size(), ladder.file.size() - kBegin.size() - kEnd.size());
}

std::string RenderLaddersPage(const std::vector<LadderView>& ladders, PageFrame frame) {
  frame.place = Place::kLadders;
  frame.title = "Ladders";
  Html main = Html::Trusted(
      "<h1>Ladders</h1>\n<p class=\"lead\">From a naive kernel to one that stands beside the "
      "library: each rung adds one idea, and its speed was predicted before it was "
      "measured.</p>\n");
  if (ladders.empty())
    return RenderPage(frame, main + Paragraph("No ladder is installed here.", "faint"));
  PageTable table("ladders", {{"ladder", "name"},
                              {"folder", ""},
                              {"rungs", "n"},
                              {"size", ""},
                              {"top rung", "name"},
                              {"of the library", "n"},
                              {"machine", "why"}});
  for (size_t i = 0; i < ladders.size();) {
    const std::string name = LadderPageName(ladders[i].ladder);
    // A ladder has a line: its first size that was measured stands for it.
    size_t shown = i, next = i;
    for (; next < ladders.size() && LadderPageName(ladders[next].ladder) == name; ++next)
      if (TopOf(ladders[shown]) == nullptr && TopOf(ladders[next]) != nullptr) shown = next;
    const LadderView& view = ladders[shown];
    i = next;
    const RungResult* top = TopOf(view);
    table.Row({Markup("<a href=\"/ladders/{}\">{}</a>", UrlPart(name), view.ladder.title),
               Text(view.ladder.name), Markup("{}", view.ladder.rungs.size()),
               Text(DescribeSize(view.size)),
               top != nullptr ? Markup("<code>{}</code>", top->rung.Stem()) : Html(),
               top != nullptr
                   ? Markup("{:.1f}%", SpeedOf(top->row->verdict, view.ladder.baseline)->percent)
                   : Html(),
               top != nullptr ? Text(MachineOf(view))
                              : Html::Trusted("<span class=\"faint\">not measured</span>")});
  }
  return RenderPage(frame, main + table.End());
}

std::string RenderLadderPage(const std::vector<LadderView>& sizes, PageFrame frame) {
  frame.place = Place::kLadders;
  const Ladder& ladder = sizes.front().ladder;
  frame.title = ladder.title;
  Html main = Markup("<h1>{}</h1>\n<p class=\"lead\">{} on {}; bound by {}.</p>\n", ladder.title,
                     Counted(static_cast<long long>(ladder.rungs.size()), "rung"), ladder.problem,
                     ladder.bound);
  int number = 0;
  for (const LadderView& view : sizes) {
    main += Heading(DescribeSize(view.size));
    if (const std::string machine = MachineOf(view); !machine.empty())
      main += Paragraph(machine, "faint");
    main += Markup(
        "<div class=\"ladder figure wide\" tabindex=\"0\" role=\"group\" "
        "aria-label=\"chart of the rungs at {}\">\n{}</div>\n",
        DescribeSize(view.size),
        Html::Trusted(
            RenderLadderSvg(ladder, view.size, view.results, fmt::format("ladder{}", number++))));
    main += RungTableHtml(view);
  }
  main += Command(fmt::format("assay ladder kernels/{}/{}", ladder.name, ladder.file));
  return RenderPage(frame, main);
}

}  // namespace assay
