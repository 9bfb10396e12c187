#include "web/verdict_page.h"

#include <algorithm>
#include <vector>

#include "model/outcome.h"
#include "report/kernel_facts.h"
#include "report/next_step.h"
#include "report/roofline_chart.h"
#include "report/text.h"
#include "web/parts.h"
#include "web/source_colour.h"
#include "web/verdict_gates.h"

namespace assay {
namespace {

std::string FileName(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string SizeText(const ProblemRecord& problem) {
  std::string text = problem.size;
  for (const auto& [name, value] : problem.set)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text;
}

Html Head(const VerdictView& view) {
  const Verdict& verdict = view.verdict;
  Html html = Markup("<h1>{} {} on {}</h1>\n", OutcomeBadge(OutcomeName(verdict.outcome)),
                     FileName(verdict.candidate.path), ProblemLink(verdict.problem.name));
  if (!verdict.foul || verdict.foul->seen != verdict.message)
    html += Markup("<p class=\"lead\">{}.</p>\n", verdict.message);
  if (verdict.foul)
    html += Markup("<div class=\"notice bad\"><p><strong>Foul: {}.</strong> {}</p></div>\n",
                   verdict.foul->rule, verdict.foul->seen);
  if (view.of_own_runner)
    html += Html::Trusted(
        "<div class=\"notice\"><p><strong>Judged by the author's own runner.</strong> This server "
        "did not see the judgement: the verdict has no rank, and no place in finals.</p></div>\n");
  if (view.check && view.check->result == CheckResultName(CheckResult::kDiffers))
    html += Markup(
        "<div class=\"notice bad\"><p><strong>A spot check disagrees.</strong> {}: {}. {}</p></div>"
        "\n",
        view.check->runner, view.check->text, VerdictLink(view.check->verdict, "Its verdict."));
  return html;
}

Html CheckText(const SpotCheck& check) {
  if (check.has_failed)
    return Markup("<a href=\"/jobs/{0}\">job {0}</a> was to judge it again, and has no verdict",
                  check.job);
  if (check.verdict.empty())
    return Markup("<a href=\"/jobs/{0}\">job {0}</a> judges it again", check.job);
  return Markup("{}: {} ({}), {}", check.runner, check.result, check.text,
                VerdictLink(check.verdict));
}

Html HeadTiles(const Verdict& verdict) {
  const BaselineResult* headline = HeadlineOf(verdict);
  Html tiles;
  if (headline != nullptr) {
    tiles += Tile("speedup over " + verdict.speed->headline, Text(FormatRatio(headline->speedup)),
                  Text(RangeText(headline->ci_low, headline->ci_high)));
    tiles += Tile("time of a call", Text(FormatDuration(headline->candidate_time_ns)),
                  Markup("{}: {}", verdict.speed->headline, FormatDuration(headline->time_ns)));
  }
  if (verdict.roofline && verdict.roofline->percent_of_peak > 0)
    tiles += Tile("of the bound", Markup("{:.0f}%", verdict.roofline->percent_of_peak),
                  Markup("bound {}, by {}", FormatDuration(verdict.roofline->bound_ns),
                         verdict.roofline->regime));
  if (verdict.correctness && verdict.correctness->tolerance == kByOwnCheck)
    tiles += Tile("judged by", Text("its own check"),
                  Text(Counted(verdict.correctness->calls_checked, "call") + " checked"));
  else if (verdict.correctness)
    tiles += Tile("error over its bound", Markup("{:.2g}", verdict.correctness->error_ratio),
                  Markup("{}{} checked",
                         verdict.correctness->precision_class.empty()
                             ? ""
                             : verdict.correctness->precision_class + ", ",
                         Counted(verdict.correctness->calls_checked, "call")));
  return tiles.empty() ? Html() : Tiles(tiles);
}

Html Origin(const VerdictView& view) {
  const Verdict& verdict = view.verdict;
  Html facts;
  if (!view.author.empty())
    facts += FactRow("by", Markup("{} {}", view.author, RoleTag(view.role)));
  facts += FactRow("judged (UTC)", TimeText(verdict.created));
  if (!view.runner.empty())
    facts += FactRow("judged by", Markup("{}{}", view.runner,
                                         view.of_own_runner ? ", the author's own runner"
                                                            : ", a runner of this server"));
  if (view.check) facts += FactRow("spot check", CheckText(*view.check));
  facts += FactRow("size", Text(SizeText(verdict.problem)));
  facts += FactRow("machine",
                   Markup("{}; {} a side",
                          verdict.machine.gpu.empty() ? verdict.machine.cpu : verdict.machine.gpu,
                          Counted(verdict.machine.threads, "thread")));
  facts += FactRow("form", Text(FormText(verdict.candidate)));
  facts += FactRow("verdict", Markup("<code>{}</code>", verdict.id));
  if (view.job != 0) facts += FactRow("job", Markup("<a href=\"/jobs/{0}\">{0}</a>", view.job));
  return FactsInTwo(facts);
}

// The same candidate on several machines, each beside the baseline there.
Html DevicesSection(const VerdictView& view) {
  if (view.on_devices.size() < 2) return {};
  PageTable table("on each machine", {{"machine", "name"},
                                      {"speedup", "n"},
                                      {"interval", ""},
                                      {"time", "n"},
                                      {"of the bound", "n"},
                                      {"verdict", ""}});
  for (const BoardEntry& entry : view.on_devices)
    table.Row(
        {Text(entry.gpu_or_cpu), Text(RatioOrDash(entry.speedup)),
         Text(entry.ci_low > 0 ? RangeText(entry.ci_low, entry.ci_high) : ""),
         Text(entry.time_ns > 0 ? FormatDuration(entry.time_ns) : "-"),
         Text(entry.percent_of_peak > 0 ? fmt::format("{:.0f}%", entry.percent_of_peak) : "-"),
         Markup("<a class=\"quiet\" href=\"/verdicts/{}\">{}<span "
                "class=\"hidden-text\">, verdict {}</span></a>",
                UrlPart(entry.verdict), OutcomeBadge(entry.outcome), entry.verdict)});
  return Heading("The same candidate on each machine") +
         Paragraph(
             "Each speedup is over the baseline on its own machine, so they do not say which "
             "machine is faster, and no rank is across machines.",
             "faint") +
         table.End();
}

Html SourceSection(const VerdictView& view) {
  const std::string name = FileName(view.verdict.candidate.path);
  Html html = Heading("Source");
  if (!view.hidden_until.empty())
    return html + Markup("<p>The source of others is hidden until {} (UTC).</p>\n",
                         TimeText(view.hidden_until));
  if (view.source.empty()) return html + Paragraph("The source was not kept.", "faint");
  return html +
         CodeBlock("source of " + name, ColouredSource(view.source, LanguageOf(name)), "lines");
}

Html Printed(const Verdict& verdict) {
  if (verdict.log.empty()) return {};
  return Fold("What the compiler and the candidate printed",
              CodeBlock("printed output", Text(verdict.log), "wrap"));
}

Html AgainSection(const VerdictView& view, const Viewer& viewer) {
  const Verdict& verdict = view.verdict;
  Html html = Heading("Judge it again");
  html += Paragraph(
      "This fetches the problem, the candidate and the terms, judges them on your "
      "machine, and says whether both verdicts agree:",
      "faint");
  html += Command(fmt::format("assay rejudge {}/verdicts/{}",
                              view.server.empty() ? "http://127.0.0.1:8080" : view.server,
                              UrlPart(verdict.id)));
  html += Paragraph("The same question, from a checkout:", "faint");
  html += Command(JudgeCommand(verdict, verdict.candidate.path, ""));
  if (view.may_rejudge && viewer.account)
    html += Markup(
        "<form method=\"post\" action=\"/verdicts/{}/rejudge\">{}<button>Judge again on "
        "this server</button></form>\n",
        UrlPart(verdict.id), CsrfField(viewer));
  Html links = Markup(
      "<a href=\"/api/verdicts/{0}\">The verdict as JSON</a> · <a "
      "href=\"/api/verdicts/{0}/bundle\">bundle for another judge</a>",
      UrlPart(verdict.id));
  if (!view.best_other.empty() && HeadlineOf(verdict) != nullptr)
    links += Markup(" · <a href=\"/compare?a={}&amp;b={}\">compare with the best other</a>",
                    UrlPart(verdict.id), UrlPart(view.best_other));
  return html + Markup("<p class=\"screen\">{}</p>\n", links);
}

Html CompareForm(const Verdict& verdict) {
  return Markup(
      "<form action=\"/compare\" class=\"filters\"><input type=\"hidden\" name=\"a\" "
      "value=\"{}\"><div><label for=\"other\">compare with verdict</label><input id=\"other\" "
      "name=\"b\" required pattern=\"[0-9a-f]{{12}}\" placeholder=\"12 digits\"></div><div>"
      "<button>Compare</button></div></form>\n",
      verdict.id);
}

Html Records(const Verdict& verdict) {
  Html facts;
  for (const auto& [tool, version] : verdict.toolchain) facts += FactRow(tool, Text(version));
  facts += FactRow("flags", Markup("<code>{}</code>", verdict.candidate.flags));
  facts += FactRow("isolation", Text(verdict.machine.isolation));
  facts += FactRow("kernel of Linux", Text(verdict.machine.kernel));
  facts += FactRow("seed", Markup("<code>{}</code>", verdict.seed));
  facts += FactRow("hash of the problem", Markup("<code>{}</code>", verdict.problem.hash));
  facts += FactRow("hash of the source", Markup("<code>{}</code>", verdict.candidate.hash));
  if (!verdict.candidate.artifact.empty())
    facts += FactRow("hash of the artifact", Markup("<code>{}</code>", verdict.candidate.artifact));
  const Cost& cost = verdict.cost;
  facts += FactRow("cost", Markup("{:.1f} s: {:.1f} build{}, {:.1f} hosts, {:.1f} values, {:.1f} "
                                  "timed, {:.1f} the rest",
                                  cost.total_s, cost.build_s, cost.build_cached ? " (cached)" : "",
                                  cost.start_s, cost.fill_s, cost.timed_s, cost.overhead_s));
  return Fold("What it was judged with", Facts(facts));
}

}  // namespace

Html RooflineFigure(std::span<const LabelledVerdict> verdicts, std::string_view id) {
  std::vector<RooflineVersion> versions;
  for (const LabelledVerdict& each : verdicts)
    if (each.verdict != nullptr) versions.push_back({each.label, ChartSide::kFirst, each.verdict});
  const auto chart = MakeRooflineChart(versions);
  if (!chart)
    return versions.empty() ? Html()
                            : Paragraph("No roofline: " + chart.error().message + ".", "faint");
  PageTable table("roofline", {{"", "name"},
                               {"time", "n"},
                               {"operations a byte", "n"},
                               {"rate", "n"},
                               {"of the bound", "n"}});
  table.Row({Markup("the bound, by {}", chart->regime), Text(FormatDuration(chart->bound_ns)),
             Markup("{:.3g}", chart->Intensity()), Text(FormatRate(chart->BoundRate(), "FLOP/s")),
             Html::Trusted("100%")});
  for (const RooflinePoint& point : chart->points)
    table.Row({Text(point.label), Text(FormatDuration(point.time_ns)),
               Markup("{:.3g}", point.intensity), Text(FormatRate(point.rate, "FLOP/s")),
               Markup("{:.1f}%", point.percent)});
  return Figure("roofline", RenderRooflineSvg(*chart, false, id)) +
         Fold("The roofline as a table", table.End());
}

Html KernelSection(const Verdict& verdict) {
  Html html;
  if (!verdict.bottleneck.empty()) html += Paragraph("Likely limit: " + verdict.bottleneck);
  for (const KernelRecord& kernel : verdict.kernels) {
    Html facts;
    for (const auto& [label, text] : KernelFacts(kernel)) facts += FactRow(label, Text(text));
    html += Markup("<h3><code>{}</code></h3>\n", kernel.name) + Facts(facts);
  }
  if (verdict.libraries && !verdict.libraries->shares.empty()) {
    Html facts;
    for (const auto& [library, share] : verdict.libraries->shares)
      facts += FactRow(library, Text(FormatShare(share)));
    html += Fold("Its time by library", Facts(facts));
  }
  return html;
}

std::string RenderVerdictPage(const VerdictView& view, PageFrame frame) {
  const Verdict& verdict = view.verdict;
  frame.title = fmt::format("{} on {}", FileName(verdict.candidate.path), verdict.problem.name);
  Html main = Head(view) + HeadTiles(verdict) + Origin(view);
  main += CorrectnessSection(verdict) + SpeedSection(verdict);
  if (const LabelledVerdict one{FileName(verdict.candidate.path), &verdict};
      verdict.roofline && HeadlineOf(verdict) != nullptr)
    main += Heading("Roofline") + RooflineFigure({&one, 1}, "roofline");
  if (Html kernels = KernelSection(verdict); !kernels.empty())
    main += Heading("Kernels, from their machine code") + kernels;
  main += DevicesSection(view) + SourceSection(view) + Printed(verdict);
  if (!view.machine_code.empty() && view.hidden_until.empty())
    main += Fold("Machine code", CodeBlock("machine code", Text(view.machine_code)));
  main += AgainSection(view, frame.viewer) + CompareForm(verdict) + Records(verdict);
  return RenderPage(frame, main);
}

}  // namespace assay
