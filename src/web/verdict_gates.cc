#include "web/verdict_gates.h"

#include <algorithm>
#include <cmath>

#include "model/outcome.h"
#include "report/decision_text.h"
#include "report/text.h"
#include "report/wrong_element.h"
#include "web/parts.h"
#include "web/samples_chart.h"

namespace assay {
namespace {

std::string IndexText(const std::vector<int64_t>& index) {
  std::string text;
  for (const int64_t each : index) text += fmt::format("{}{}", text.empty() ? "" : ", ", each);
  return "[" + text + "]";
}

std::string SetText(const std::map<std::string, std::string>& set) {
  std::string text;
  for (const auto& [name, value] : set)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text;
}

struct GateState {
  std::string_view word, tone;
};
constexpr GateState kNotRun{"not run", "faint"}, kPassed{"✔ passed", "good"},
    kNotPassed{"✘ not passed", "bad"}, kUndecided{"~ undecided", "warn"};

Html GateHead(std::string_view name, const GateState& state) {
  return Markup("<h2>{} <span class=\"badge {}\">{}</span></h2>\n", name, state.tone, state.word);
}

Html MismatchNotice(const Mismatch& wrong) {
  const auto [expected, got] = TextsOf(wrong, 9);
  return Markup(
      "<div class=\"notice bad\"><p><strong>First wrong element:</strong> <code>{}{}</code> is "
      "<strong>{}</strong>, expected <strong>{}</strong>. {} of the elements of {} are "
      "wrong.</p></div>\n",
      wrong.output, IndexText(wrong.index), got, expected, FormatShare(wrong.share_wrong),
      wrong.output);
}

Html DrawTable(const std::vector<DrawRecord>& draws) {
  PageTable table("draws of gate 1", {{"values", "name"},
                                      {"result", ""},
                                      {"error over bound", "n"},
                                      {"size", "why"},
                                      {"seed", "n"}});
  for (const DrawRecord& draw : draws) {
    const bool failed = draw.result == "failed";
    table.Row({Text(draw.kind),
               Markup("<span class=\"{}\">{}{}</span>{}{}", failed ? "bad" : "", failed ? "✘ " : "",
                      draw.result, draw.reason.empty() ? "" : ": ", draw.reason),
               draw.result == "dropped" ? Html() : Markup("{:.3g}", draw.error_ratio),
               Text(SetText(draw.set)), Markup("<code>{}</code>", draw.seed)});
  }
  return table.End();
}

Html SamplesTable(const std::vector<PairFigures>& pairs, const std::string& baseline) {
  const bool clocks = std::any_of(pairs.begin(), pairs.end(),
                                  [](const PairFigures& pair) { return !pair.sm_mhz.empty(); });
  std::vector<Column> columns{{"pair", "n"},
                              {"speedup", "n"},
                              {baseline + ", a call", "n"},
                              {"candidate, a call", "n"},
                              {"order of blocks", "mono"}};
  if (clocks) columns.push_back({"clock", "n"});
  PageTable table("pairs against " + baseline, columns);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const PairFigures& pair = pairs[i];
    std::vector<Html> cells{Markup("{}", i + 1),
                            pair.ratio > 0 ? Markup("{:.4f}×", pair.ratio) : Html(),
                            Text(pair.reference_ns > 0 ? FormatDuration(pair.reference_ns) : "-"),
                            Text(pair.candidate_ns > 0 ? FormatDuration(pair.candidate_ns) : "-"),
                            Markup("<code>{}</code>", pair.order)};
    if (clocks)
      cells.push_back(pair.sm_mhz.empty()
                          ? Html()
                          : Markup("{} to {} MHz",
                                   *std::min_element(pair.sm_mhz.begin(), pair.sm_mhz.end()),
                                   *std::max_element(pair.sm_mhz.begin(), pair.sm_mhz.end())));
    table.AddRow(cells);
  }
  return table.End();
}

std::string ConfidenceText(const BaselineResult& result) {
  return result.confidence > 0 ? fmt::format(", {:.3g}%", 100 * result.confidence) : "";
}

Html BaselineTable(const Speed& speed) {
  std::vector<double> ratios;
  for (const auto& [name, result] : speed.baselines) {
    ratios.push_back(result.ci_low);
    ratios.push_back(result.ci_high);
  }
  const BarScale scale = RatioScale(ratios);
  PageTable table("opponents", {{"opponent", "name"},
                                {"decision", ""},
                                {"speedup", "n"},
                                {"interval", ""},
                                {"opponent's time", "n"},
                                {"time", "n"},
                                {"pairs", "n"},
                                {"visible gain", "n"}});
  for (const auto& [name, result] : speed.baselines)
    table.Row({name == speed.headline ? Markup("<strong>{}</strong>", name) : Text(name),
               Text(result.decision), Text(FormatRatio(result.speedup)),
               IntervalBar(result.ci_low, result.speedup, result.ci_high, scale,
                           RangeText(result.ci_low, result.ci_high) + ConfidenceText(result)),
               Text(FormatDuration(result.time_ns)), Text(FormatDuration(result.candidate_time_ns)),
               Markup("{}", result.pairs), Text(FormatGain(result.smallest_visible))});
  return table.End();
}

}  // namespace

Html CorrectnessSection(const Verdict& verdict) {
  const Correctness* gate = verdict.correctness ? &*verdict.correctness : nullptr;
  Html html = GateHead("Gate 1: correctness", gate == nullptr ? kNotRun
                                              : gate->passed  ? kPassed
                                                              : kNotPassed);
  if (gate == nullptr) return html;
  if (gate->first_mismatch) html += MismatchNotice(*gate->first_mismatch);
  if (!gate->hint.empty())
    html += Markup("<div class=\"notice\"><p><strong>Hint:</strong> {}</p></div>\n", gate->hint);
  Html facts = FactRow("calls checked", Markup("{}", gate->calls_checked));
  const bool own_check = gate->tolerance == kByOwnCheck;
  if (own_check) facts += FactRow("judged by", Text("the problem's own check"));
  if (!own_check) {
    facts += FactRow("largest error over its bound",
                     Markup("{:.3g} (up to 1 passes)", gate->error_ratio));
    facts += FactRow("largest absolute error", Markup("{:.3g}", gate->max_abs_error));
  }
  facts += FactRow("precision class",
                   gate->required_class.empty()
                       ? Text(gate->precision_class)
                       : Markup("{}; {} is required",
                                gate->precision_class.empty() ? "none" : gate->precision_class,
                                gate->required_class));
  if (!own_check) facts += FactRow("tolerance", Text(gate->tolerance));
  facts += FactRow("on NaN and infinity", Text(gate->differs_on_special_values));
  if (gate->right_with_weights)
    facts += FactRow("right with weights", Text(WeightsKindName(*gate->right_with_weights)));
  facts += FactRow("note", Text(gate->note));
  html += FactsInTwo(facts);
  if (!gate->draws.empty())
    html += Fold(
        fmt::format("{} of values", Counted(static_cast<long long>(gate->draws.size()), "draw")),
        DrawTable(gate->draws));
  return html;
}

Html SpeedSection(const Verdict& verdict) {
  const Speed* speed = verdict.speed ? &*verdict.speed : nullptr;
  Html html = GateHead("Gate 2: speed", speed == nullptr                         ? kNotRun
                                        : speed->passed                          ? kPassed
                                        : verdict.outcome == Outcome::kUnsettled ? kUndecided
                                                                                 : kNotPassed);
  if (speed == nullptr) return html;
  const BaselineResult* headline = HeadlineOf(verdict);
  if (headline != nullptr) html += Paragraph(DecisionText(*headline, speed->threshold));
  html += BaselineTable(*speed);
  for (const auto& [name, result] : speed->baselines)
    if (!result.note.empty()) html += Paragraph(name + ": " + result.note, "faint");
  int number = 0;
  for (const auto& [name, result] : speed->baselines) {
    const std::vector<PairFigures> pairs = PairsOf(verdict, name);
    const std::string svg =
        RenderSamplesSvg(pairs, result, name, speed->threshold, fmt::format("pairs{}", number++));
    if (svg.empty()) continue;
    html += Markup("<h3>Pairs against {}</h3>\n", name) + Figure("pairs against " + name, svg);
    html += Fold("The pairs as a table", SamplesTable(pairs, name));
  }
  if (verdict.samples.empty())
    html += Paragraph("The times of single pairs were not kept.", "faint");
  return html;
}

}  // namespace assay
