#include "web/problem_pages.h"

#include <algorithm>

#include "report/text.h"
#include "web/parts.h"
#include "web/source_colour.h"
#include "web/verdict_page.h"

namespace assay {
namespace {

std::string ConstantsText(const std::map<std::string, std::string>& constants) {
  std::string text;
  for (const auto& [name, value] : constants)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text;
}

std::string SizesText(const SuiteProblem& problem) {
  std::string text;
  for (const auto& [size, constants] : problem.sizes) text += (text.empty() ? "" : ", ") + size;
  return text;
}

Html BestCell(const BoardEntry& best) {
  if (best.verdict.empty()) return Html::Trusted("<span class=\"faint\">none yet</span>");
  return Markup("<a href=\"/verdicts/{}\">{}</a> <span class=\"faint\">{}</span>",
                UrlPart(best.verdict), RatioOrDash(best.speedup),
                RangeText(best.ci_low, best.ci_high));
}

Html SizeTable(const ProblemView& view) {
  PageTable table("sizes", {{"size", "name"},
                            {"constants", "why"},
                            {"best speedup", "nowrap"},
                            {"by", "name"},
                            {"time", "n"},
                            {"of the bound", "n"}});
  for (const auto& [size, constants] : view.problem.sizes) {
    const auto found = view.best.find(size);
    const BoardEntry best = found == view.best.end() ? BoardEntry{} : found->second;
    const bool any = !best.verdict.empty();
    table.Row({Markup("<a href=\"/problems/{}?size={}\"{}>{}</a>", UrlPart(view.problem.name),
                      UrlPart(size),
                      Html::Trusted(size == view.size ? " aria-current=\"true\"" : ""), size),
               Markup("<code>{}</code>", ConstantsText(constants)), BestCell(best),
               any ? Markup("{} {}", best.author, RoleTag(best.role)) : Html(),
               Text(any && best.time_ns > 0 ? FormatDuration(best.time_ns) : ""),
               Text(best.percent_of_peak > 0 ? fmt::format("{:.0f}%", best.percent_of_peak) : "")});
  }
  return table.End();
}

Html ProblemFacts(const SuiteProblem& problem) {
  Html facts = FactRow("level", problem.level > 0 ? Markup("{}", problem.level) : Html());
  facts += FactRow("what a good kernel gains by", Text(problem.mechanism));
  facts += FactRow("operations of a call",
                   problem.flops.empty() ? Html() : Markup("<code>{}</code>", problem.flops));
  facts += FactRow("compulsory bytes of a call",
                   problem.bytes.empty() ? Html() : Markup("<code>{}</code>", problem.bytes));
  facts += FactRow("operands", Text(problem.operands));
  facts += FactRow("precision class", Text(problem.precision));
  facts += FactRow("tolerance", Text(problem.tolerance));
  facts += FactRow("weights", Text(problem.weights));
  facts += FactRow("NaN and infinity", Text(problem.special_values));
  if (!problem.allow_libraries) facts += FactRow("libraries", Text("time in them is a foul"));
  return Facts(facts);
}

Html Limits(const ProblemView& view) {
  std::vector<LabelledVerdict> shown;
  for (const Verdict& verdict : view.shown) {
    const std::string& path = verdict.candidate.path;
    shown.push_back({path.substr(path.rfind('/') + 1), &verdict});
  }
  if (shown.empty()) return {};
  const Verdict& first = view.shown.front();
  Html html = Heading("Limits and best so far");
  if (first.roofline && first.work) {
    const Roofline& roof = *first.roofline;
    html += Tiles(
        Tile("memory", Text(FormatRate(roof.bandwidth_bytes_s, "B/s")),
             Markup("{} a call at least", FormatBytes(first.work->bytes))) +
        Tile("arithmetic", Text(FormatRate(roof.rate_operations_s, "FLOP/s")),
             Markup("{}; {} operations", roof.instructions, FormatCount(first.work->operations))) +
        Tile("bound of a call", Text(FormatDuration(roof.bound_ns)),
             Markup("by {}; size {}", roof.regime,
                    first.problem.size.empty() ? "as set" : first.problem.size)));
  }
  return html + RooflineFigure(shown, "roofline");
}

}  // namespace

Html RenderProblems(const std::vector<ProblemLine>& problems, const std::string& machine) {
  Html main = Html::Trusted("<h1>Problems</h1>\n");
  main += Markup("<p class=\"lead\">{}, each a PyTorch file that says what to compute.</p>\n",
                 Counted(static_cast<long long>(problems.size()), "problem"));
  if (!machine.empty()) main += Paragraph("Best speedups are of " + machine + ".", "faint");
  PageTable table("problems", {{"problem", "name"},
                               {"level", "n"},
                               {"gain by", ""},
                               {"lesson", "why"},
                               {"sizes", "nowrap"},
                               {"judged", "n"},
                               {"best speedup", "nowrap"}});
  for (const ProblemLine& line : problems)
    table.Row({ProblemLink(line.problem.name),
               line.problem.level > 0 ? Markup("{}", line.problem.level) : Html(),
               Text(line.problem.mechanism), Text(line.problem.lesson),
               Text(SizesText(line.problem)),
               Markup("<span class=\"{}\">{}</span>", line.judged == 0 ? "zero" : "", line.judged),
               BestCell(line.best)});
  return main + table.End();
}

std::string RenderProblemsPage(const Html& problems, PageFrame frame) {
  frame.place = Place::kProblems;
  frame.title = "Problems";
  return RenderPage(frame, problems);
}

Html RenderProblem(const ProblemView& view) {
  const SuiteProblem& problem = view.problem;
  Html main = Markup("<h1>{}</h1>\n", problem.name);
  if (!problem.lesson.empty()) main += Markup("<p class=\"lead\">{}.</p>\n", problem.lesson);
  main += ProblemFacts(problem);
  main += Markup(
      "<p><a class=\"button first\" href=\"/submit?problem={0}\">Submit a candidate</a> "
      "<a class=\"button\" href=\"/?problem={0}\">On the board</a></p>\n",
      UrlPart(problem.name));
  main += Heading("Sizes") + SizeTable(view) + Limits(view);
  main += Markup("<h2>Ranks{}</h2>\n", view.size.empty() ? "" : ", size " + view.size);
  if (view.entries.empty())
    main += Paragraph("No candidate was judged on it yet.", "faint");
  else
    main += Paragraph(view.machine, "faint") + RankedTable(view.entries, view.size.empty());
  if (view.other_boards > 0)
    main += Markup(
        "<p><a href=\"/?problem={}\">{} of other machines, sizes or precision "
        "classes</a></p>\n",
        UrlPart(view.problem.name), Counted(view.other_boards, "board"));
  main += Heading("Reference") + CodeBlock("reference of " + problem.name,
                                           ColouredSource(view.reference, SourceLanguage::kPython),
                                           "lines");
  main += Paragraph("Start on your own machine:", "faint");
  main += Command(fmt::format("assay new {} -o mine.cpp", ShellQuoted(problem.name)));
  main += Markup("<p class=\"screen\"><a href=\"/api/problems/{}\">The problem as JSON</a></p>\n",
                 UrlPart(problem.name));
  return main;
}

std::string RenderProblemPage(const std::string& name, const Html& problem, PageFrame frame) {
  frame.place = Place::kProblems;
  frame.title = name;
  return RenderPage(frame, problem);
}

}  // namespace assay
