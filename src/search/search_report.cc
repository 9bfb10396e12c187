#include "search/search_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "model/outcome.h"
#include "report/text.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "assay.search.event/1";
constexpr int kBarColumns = 40;
constexpr size_t kCurveLines = 12;

std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json JsonOf(const Ratio& ratio) {
  return {{"value", ratio.value}, {"low", ratio.low}, {"high", ratio.high}};
}

Json JsonOf(const Spending& spending) {
  return {{"usd", spending.usd},
          {"tokens", spending.tokens},
          {"evaluations", spending.evaluations},
          {"seconds", spending.seconds}};
}

std::string CountsText(const OutcomeTable& table) {
  std::string text;
  for (const auto& [name, count] : table.counts())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  return text.empty() ? "nothing judged" : text;
}

// The evaluations at which the best so far grew, and the last one.
std::string RenderCurve(const OutcomeTable& table) {
  std::vector<CurvePoint> steps;
  for (const CurvePoint& point : table.curve())
    if (steps.empty() || point.ratio > steps.back().ratio) steps.push_back(point);
  if (steps.empty() || steps.back().ratio <= 0) return "";
  if (steps.back().evaluations != table.curve().back().evaluations)
    steps.push_back(table.curve().back());
  if (steps.size() > kCurveLines)
    steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(kCurveLines));
  std::string text = "evaluations  best so far\n";
  for (const CurvePoint& point : steps)
    text += fmt::format(
        "{:>11}  {:>8}  {}\n", point.evaluations, FormatRatio(point.ratio),
        Repeated("#", static_cast<int>(kBarColumns * point.ratio / steps.back().ratio)));
  return text;
}

std::string NodeText(const JournalEvent& event) {
  const StepResult& result = event.result;
  std::string text = fmt::format("{}  {}", event.key, event.lineage.operation);
  if (event.lineage.parents.size() > 1) text += fmt::format(" with {}", event.lineage.parents[1]);
  if (!event.lineage.note.empty()) text += fmt::format("  {}", event.lineage.note);
  if (!result.duplicate_of.empty()) return text + "  the same as " + result.duplicate_of;
  if (result.verdict) {
    text += fmt::format("  {}", OutcomeName(result.verdict->outcome));
    if (const Ratio ratio = RatioOf(*result.verdict); ratio.value > 0)
      text += " " + RatioText(ratio);
    if (!result.known.empty()) text += "  known by verdict " + result.verdict->id;
  }
  if (result.answer) {
    text += fmt::format("  {} characters", result.answer->text.size());
    if (result.answer->finish == "length") text += ", cut off at the length limit";
  }
  if (result.error) text += "  error: " + result.error->message;
  return text;
}

}  // namespace

std::string RatioText(const Ratio& ratio) {
  // So few pairs have no interval.
  if (!std::isfinite(ratio.low) || !std::isfinite(ratio.high)) return FormatRatio(ratio.value);
  return fmt::format("{} ({} to {})", FormatRatio(ratio.value), FormatRatio(ratio.low),
                     FormatRatio(ratio.high));
}

std::string ProgressText(const SearchView& view) {
  std::string text =
      fmt::format("{} | {}", DescribeSpending(view.ledger.spent(), view.ledger.limits()),
                  CountsText(view.table));
  const double seconds = view.ledger.spent().seconds;
  if (seconds > 0 && view.ledger.spent().evaluations > 0)
    text += fmt::format(" | {:.1f} a minute",
                        60 * static_cast<double>(view.ledger.spent().evaluations) / seconds);
  if (const SearchNode* best = view.table.best())
    text += fmt::format(" | best {}", RatioText(best->ratio));
  return text;
}

std::string RenderEnd(const OutcomeTable& table, const BudgetLedger& ledger) {
  std::string text;
  if (const SearchNode* result = table.confirmed()) {
    const std::string key = result->lineage.parents.front();
    text += fmt::format("confirmed: {}, {}\n", key, RatioText(result->ratio));
    // An idea is a model's text.
    if (!result->lineage.note.empty())
      text += fmt::format("           {}\n", Printable(result->lineage.note, true));
    text += fmt::format("verdict:   {}\n", result->verdict_id);
  } else if (const SearchNode* best = table.best()) {
    text += fmt::format("nothing was confirmed as faster; the best of the first look is {}, {}\n",
                        best->key, RatioText(best->ratio));
  } else if (table.nodes().empty()) {
    text += "no candidate was judged\n";
  } else {
    const bool correct = std::any_of(
        table.nodes().begin(), table.nodes().end(),
        [](const SearchNode& node) { return node.outcome && IsCorrect(*node.outcome); });
    text += correct ? "nothing was confirmed as faster: no correct candidate could be timed\n"
                    : "no candidate was correct\n";
  }
  for (const auto& [key, node] : table.confirmations())
    if (node.outcome != Outcome::kFaster)
      text += fmt::format("not confirmed: {}, {}\n", key,
                          node.outcome ? OutcomeName(*node.outcome) : "an error");
  text += fmt::format("outcomes:  {}\n", CountsText(table));
  if (table.known() > 0)
    text += fmt::format("known:     {} by earlier searches\n", Counted(table.known(), "verdict"));
  if (table.answers() + table.unanswered() > 0)
    text += fmt::format("answers:   {}; {} judged; {} without an answer\n", table.answers(),
                        Counted(std::ssize(table.nodes()), "candidate"),
                        Counted(static_cast<int64_t>(table.unanswered()), "question"));
  text += fmt::format("spent:     {}\n", DescribeSpending(ledger.spent(), ledger.limits()));
  return text + RenderCurve(table);
}

std::string BeginEvent(const SearchSettings& settings, bool resumed) {
  return Line({{"schema", kSchema},
               {"event", resumed ? "resumed" : "begun"},
               {"search", settings.id},
               {"problem", settings.problem},
               {"strategy", settings.strategy},
               {"proposer", settings.proposer},
               {"seed", fmt::format("{}", settings.seed)},
               {"budget", JsonOf(settings.budget)}});
}

std::string ResultEvent(const Step& step, const StepResult& result, const SearchView& view) {
  Json json = {{"schema", kSchema},
               {"event", "result"},
               {"key", step.key},
               {"kind", StepKindName(step.kind)},
               {"parents", step.lineage.parents},
               {"operation", step.lineage.operation},
               {"note", step.lineage.note}};
  if (result.verdict) {
    json["outcome"] = OutcomeName(result.verdict->outcome);
    json["verdict"] = result.verdict->id;
    json["ratio"] = JsonOf(RatioOf(*result.verdict));
  }
  if (!result.duplicate_of.empty()) json["duplicate_of"] = result.duplicate_of;
  if (!result.known.empty()) json["known"] = true;
  if (result.error) json["error"] = result.error->message;
  json["spent"] = JsonOf(view.ledger.spent());
  return Line(json);
}

std::string EndEvent(const OutcomeTable& table, const BudgetLedger& ledger, bool budget_ended) {
  Json json = {{"schema", kSchema}, {"event", "ended"}, {"budget_ended", budget_ended}};
  if (const SearchNode* result = table.confirmed())
    json["confirmed"] = {{"key", result->lineage.parents.front()},
                         {"verdict", result->verdict_id},
                         {"note", result->lineage.note},
                         {"ratio", JsonOf(result->ratio)}};
  json["outcomes"] = table.counts();
  json["known"] = table.known();
  json["answers"] = table.answers();
  json["unanswered"] = table.unanswered();
  json["spent"] = JsonOf(ledger.spent());
  json["curve"] = Json::array();
  for (const CurvePoint& point : table.curve())
    json["curve"].push_back({point.evaluations, point.ratio});
  return Line(json);
}

std::string RenderReplay(const std::string& search, const ReplayReport& report) {
  std::string text;
  if (report.difference) {
    const ReplayDifference& difference = *report.difference;
    text = fmt::format(
        "search {} differs: the first {} of {} records are the same\n"
        "record {}, {}, at {}\n  recorded: {}\n  replayed: {}\n",
        search, report.same, report.records, difference.sequence, difference.record,
        difference.place, difference.recorded, difference.replayed);
  } else {
    text = fmt::format(
        "search {} is the same: {} records of {} {}, with {} answers and {} verdicts\n", search,
        report.records, report.processes, report.processes == 1 ? "process" : "processes",
        report.answers, report.verdicts);
    if (!report.next.empty()) text += fmt::format("it has not ended: {} comes next\n", report.next);
  }
  return text;
}

std::string ReplayEvent(const std::string& search, const ReplayReport& report) {
  Json json = {
      {"schema", kSchema},         {"event", "replayed"},         {"search", search},
      {"records", report.records}, {"same", report.same},         {"processes", report.processes},
      {"answers", report.answers}, {"verdicts", report.verdicts}, {"next", report.next}};
  if (const auto& difference = report.difference)
    json["difference"] = {{"sequence", difference->sequence},
                          {"record", difference->record},
                          {"place", difference->place},
                          {"recorded", difference->recorded},
                          {"replayed", difference->replayed}};
  return Line(json);
}

std::string RenderTree(const Journal& journal) {
  std::vector<const JournalEvent*> results;
  std::map<std::string, std::vector<const JournalEvent*>> children;
  std::map<std::string, const JournalEvent*> by_key;
  for (const JournalEvent& event : journal.events())
    if (event.kind == JournalEvent::Kind::kResult) {
      results.push_back(&event);
      by_key[event.key] = &event;
    }
  for (const JournalEvent* event : results) {
    const auto& parents = event->lineage.parents;
    const bool has = !parents.empty() && by_key.contains(parents.front());
    children[has ? parents.front() : ""].push_back(event);
  }
  // Depth first, without recursion: chains may be long.
  std::string text;
  std::vector<std::pair<const JournalEvent*, int>> stack;
  const auto push = [&](const std::string& parent, int depth) {
    const auto found = children.find(parent);
    if (found == children.end()) return;
    for (auto child = found->second.rbegin(); child != found->second.rend(); ++child)
      stack.emplace_back(*child, depth);
  };
  push("", 0);
  while (!stack.empty()) {
    const auto [event, depth] = stack.back();
    stack.pop_back();
    text += Repeated("  ", depth) + NodeText(*event) + "\n";
    push(event->key, depth + 1);
  }
  return text;
}

}  // namespace assay
