#include "web/compare_page.h"

#include "model/outcome.h"
#include "report/decision_text.h"
#include "report/text.h"
#include "report/text_diff.h"
#include "web/parts.h"
#include "web/source_colour.h"

namespace assay {
namespace {

std::string FileName(const Verdict& verdict) {
  const std::string& path = verdict.candidate.path;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

bool SameQuestion(const Verdict& a, const Verdict& b) {
  return a.problem.hash == b.problem.hash && a.problem.size == b.problem.size &&
         a.problem.set == b.problem.set;
}

Html Answer(const CompareView& view, const Viewer& viewer) {
  const Verdict &a = view.a.verdict, &b = view.b.verdict;
  if (view.paired) {
    const BaselineResult& result = *view.paired;
    const std::string_view word =
        result.decision == "faster"   ? "B is faster: the difference is real."
        : result.decision == "slower" ? "B is slower: the difference is real."
        : result.decision == "tie"    ? "A tie: any difference is too small to matter."
                                      : "Not decided: the difference may be noise.";
    Html html =
        Tiles(Tile("speed of B over A, paired", Text(FormatRatio(result.speedup)),
                   Text(RangeText(result.ci_low, result.ci_high))) +
              Tile("decision", Text(result.decision), Text(Counted(result.pairs, "pair"))) +
              Tile("smallest visible gain", Text(FormatGain(result.smallest_visible)), Html()));
    return html + Markup("<p><strong>{}</strong> {}. ", word, DecisionText(result, 1)) +
           (view.paired_verdict.empty() ? Html()
                                        : VerdictLink(view.paired_verdict, "Its verdict.")) +
           Html::Trusted("</p>\n");
  }
  Html html = Markup("<p><strong>Not paired yet.</strong> {}</p>\n", UnpairedText(a, b));
  if (view.job != 0)
    return html +
           Markup("<p>It is being judged: <a href=\"/jobs/{0}\">job {0}</a>.</p>\n", view.job);
  if (!SameQuestion(a, b)) return html;
  if (view.may_ask)
    return html +
           Markup(
               "<form method=\"post\" action=\"/compare\">{}<input type=\"hidden\" name=\"a\" "
               "value=\"{}\"><input type=\"hidden\" name=\"b\" value=\"{}\"><button "
               "class=\"first\">Judge B against A, pair by pair</button></form>\n",
               CsrfField(viewer), a.id, b.id);
  return html + Command(fmt::format("assay judge {} {} --against {}", ShellQuoted(b.problem.name),
                                    ShellQuoted(FileName(b)), ShellQuoted(FileName(a))));
}

Html Sides(const CompareView& view) {
  PageTable table("both verdicts", {{"", "rank"},
                                    {"candidate", "name"},
                                    {"by", ""},
                                    {"judged by", ""},
                                    {"outcome", ""},
                                    {"speedup", "n"},
                                    {"interval", ""},
                                    {"time", "n"},
                                    {"of the bound", "n"},
                                    {"judged (UTC)", ""}});
  std::vector<double> ratios;
  for (const VerdictView* side : {&view.a, &view.b})
    if (const BaselineResult* result = HeadlineOf(side->verdict)) {
      ratios.push_back(result->ci_low);
      ratios.push_back(result->ci_high);
    }
  const BarScale scale = RatioScale(ratios);
  std::string_view name = "A";
  for (const VerdictView* side : {&view.a, &view.b}) {
    const Verdict& verdict = side->verdict;
    const BaselineResult* result = HeadlineOf(verdict);
    const bool timed = result != nullptr && result->speedup > 0;
    table.Row(
        {Text(name), VerdictLink(verdict.id, FileName(verdict)),
         side->author.empty() ? Html() : Markup("{} {}", side->author, RoleTag(side->role)),
         RunnerText(side->runner, side->of_own_runner), OutcomeBadge(OutcomeName(verdict.outcome)),
         Text(timed ? FormatRatio(result->speedup) : "-"),
         timed ? IntervalBar(result->ci_low, result->speedup, result->ci_high, scale,
                             RangeText(result->ci_low, result->ci_high))
               : Html(),
         Text(timed ? FormatDuration(result->candidate_time_ns) : "-"),
         Text(verdict.roofline ? fmt::format("{:.0f}%", verdict.roofline->percent_of_peak) : "-"),
         TimeText(verdict.created)});
    name = "B";
  }
  return table.End();
}

Html SourceDifference(const CompareView& view) {
  Html html = Heading("Sources");
  for (const std::string& until : {view.a.hidden_until, view.b.hidden_until})
    if (!until.empty())
      return html +
             Markup("<p>The source of others is hidden until {} (UTC).</p>\n", TimeText(until));
  if (view.a.source.empty() || view.b.source.empty())
    return html + Paragraph("One of the sources was not kept.", "faint");
  const SourceLanguage left = LanguageOf(view.a.verdict.candidate.path),
                       right = LanguageOf(view.b.verdict.candidate.path);
  const Html diff =
      ColouredDiff(view.a.source, view.b.source, left == right ? left : SourceLanguage::kPlain);
  if (diff.empty()) return html + Paragraph("The same source.", "faint");
  return html + Paragraph("Lines with - are in A alone, lines with + in B alone.", "faint") +
         CodeBlock("difference of the sources", diff, "diff");
}

std::string RegistersText(const Verdict& verdict) {
  std::string text;
  for (const KernelRecord& kernel : verdict.kernels)
    text +=
        fmt::format("{}{}: {} registers, {} shared, {:.0f}% occupancy", text.empty() ? "" : "; ",
                    kernel.name, kernel.registers,
                    FormatBytes(static_cast<double>(kernel.shared_bytes)), 100 * kernel.occupancy);
  return text;
}

Html CompiledDifference(const CompareView& view) {
  const Verdict &a = view.a.verdict, &b = view.b.verdict;
  PageTable table("what was compiled", {{"", "name"}, {"A", "why"}, {"B", "why"}});
  const auto row = [&](std::string_view name, const std::string& left, const std::string& right) {
    if (!left.empty() || !right.empty()) table.Row({Text(name), Text(left), Text(right)});
  };
  row("flags", a.candidate.flags, b.candidate.flags);
  row("form", FormText(a.candidate), FormText(b.candidate));
  const auto tool = [](const Verdict& verdict) {
    const auto found = verdict.toolchain.find("compiler");
    return found == verdict.toolchain.end() ? std::string() : found->second;
  };
  row("compiler", tool(a), tool(b));
  row("artifact", a.candidate.artifact.substr(0, 16), b.candidate.artifact.substr(0, 16));
  row("kernels", RegistersText(a), RegistersText(b));
  row("likely limit", a.bottleneck, b.bottleneck);
  Html html = Heading("What was compiled");
  if (!a.candidate.artifact.empty() && a.candidate.artifact == b.candidate.artifact)
    html += Paragraph("Both sources build to the same artifact: any difference in speed is noise.");
  html += table.End();
  if (!view.a.machine_code.empty() && !view.b.machine_code.empty()) {
    const Html diff =
        ColouredDiff(view.a.machine_code, view.b.machine_code, SourceLanguage::kPlain);
    html += diff.empty() ? Paragraph("The same machine code.", "faint")
                         : Fold("Difference of the machine code",
                                CodeBlock("difference of the machine code", diff, "diff"));
  }
  return html;
}

}  // namespace

std::string UnpairedText(const Verdict& a, const Verdict& b) {
  if (!SameQuestion(a, b))
    return "The two were judged on different problems or sizes, so that their speeds cannot be "
           "compared.";
  const BaselineResult *left = HeadlineOf(a), *right = HeadlineOf(b);
  if (left == nullptr || right == nullptr || left->speedup <= 0 || right->speedup <= 0)
    return "One of the two has no speed.";
  if (left->ci_low <= 0 || right->ci_low <= 0)
    return "One of the two has too few pairs for an interval, so that only pairs of both can "
           "decide.";
  if (a.machine.cpu != b.machine.cpu || a.machine.gpu != b.machine.gpu ||
      a.speed->headline != b.speed->headline)
    return "The two were judged on different machines or against different baselines: their "
           "speedups say nothing about each other.";
  const std::string ratio = FormatRatio(right->speedup / left->speedup);
  const bool apart = right->ci_low > left->ci_high || left->ci_low > right->ci_high;
  return fmt::format(
      "By their speedups over {}, B runs at {} the speed of A; the two intervals {}. They were "
      "measured at different times, so only pairs of both can decide.",
      a.speed->headline, ratio, apart ? "do not overlap" : "overlap, so that it may be noise");
}

std::string RenderComparePage(const CompareView& view, PageFrame frame) {
  const Verdict &a = view.a.verdict, &b = view.b.verdict;
  frame.title = fmt::format("{} and {}", FileName(a), FileName(b));
  Html main =
      Markup("<h1>{} and {} on {}</h1>\n", FileName(a), FileName(b), ProblemLink(b.problem.name));
  main += Answer(view, frame.viewer) + Sides(view);
  if (SameQuestion(a, b)) {
    const LabelledVerdict both[] = {{"A: " + FileName(a), &a}, {"B: " + FileName(b), &b}};
    main += Heading("Roofline") + RooflineFigure(both, "roofline");
  }
  main += SourceDifference(view) + CompiledDifference(view);
  main += Markup(
      "<p class=\"screen\"><a href=\"/api/compare?a={}&amp;b={}\">The comparison as JSON</a></p>\n",
      UrlPart(a.id), UrlPart(b.id));
  return RenderPage(frame, main);
}

}  // namespace assay
