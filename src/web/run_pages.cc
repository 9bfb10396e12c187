#include "web/run_pages.h"

#include <algorithm>
#include <cmath>

#include "model/outcome.h"
#include "report/text.h"
#include "web/parts.h"
#include "web/run_chart.h"

namespace assay {
namespace {

constexpr size_t kTreeNodesMax = 500;
constexpr int kReload_s = 10;

std::string RangeOf(const Ratio& ratio) {
  return std::isfinite(ratio.low) && std::isfinite(ratio.high) ? RangeText(ratio.low, ratio.high)
                                                               : "";
}

Html NodeResult(const RunNode& node) {
  if (!node.duplicate_of.empty())
    return Markup("<span class=\"faint\">the same as {}</span>", node.duplicate_of);
  if (node.outcome == "answered") return Html::Trusted("<span class=\"faint\">answered</span>");
  if (node.outcome == "error") return Html::Trusted("<span class=\"badge bad\">! error</span>");
  Html html = OutcomeBadge(node.outcome);
  if (node.ratio.value > 0)
    html += Markup(" {} <span class=\"faint\">{}</span>", FormatRatio(node.ratio.value),
                   RangeOf(node.ratio));
  if (!node.verdict.empty()) html += Markup(" {}", VerdictLink(node.verdict, "verdict"));
  return html;
}

// The lineage as lists within lists: each step under its first parent.
class TreeWriter {
 public:
  explicit TreeWriter(const RunView& view) {
    std::map<std::string, const RunNode*> by_key;
    for (const RunNode& node : view.nodes) by_key[node.key] = &node;
    for (const RunNode& node : view.nodes) {
      const auto& parents = node.lineage.parents;
      const bool has =
          !parents.empty() && by_key.contains(parents.front()) && parents.front() != node.key;
      children_[has ? parents.front() : ""].push_back(&node);
    }
  }

  // Lists below kDepthMax stand beside their parents: a chain may be long.
  Html Write(const std::string& parent, int depth) {
    constexpr int kDepthMax = 40;
    const auto found = children_.find(parent);
    if (found == children_.end()) return {};
    Html items;
    std::vector<const RunNode*> nodes = found->second;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const RunNode* node = nodes[i];
      if (++written_ > kTreeNodesMax) break;
      Html below;
      if (depth < kDepthMax) {
        below = Write(node->key, depth + 1);
      } else if (const auto after = children_.find(node->key); after != children_.end()) {
        nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(i) + 1, after->second.begin(),
                     after->second.end());
      }
      items += Item(*node, below);
    }
    return Markup("<ol{}>\n{}</ol>\n", Html::Trusted(depth == 0 ? " class=\"tree\"" : ""), items);
  }
  bool is_cut() const { return written_ > kTreeNodesMax; }

 private:
  static Html Item(const RunNode& node, const Html& below) {
    const auto& parents = node.lineage.parents;
    return Markup("<li><span class=\"mono\">{}</span> {}{} {}{}{}</li>\n", node.key,
                  node.lineage.operation, parents.size() > 1 ? " with " + parents[1] : "",
                  NodeResult(node), Note(node), below);
  }

  static Html Note(const RunNode& node) {
    return node.lineage.note.empty()
               ? Html()
               : Markup(" <span class=\"faint small\">{}</span>",
                        Shortened(Printable(node.lineage.note, true), 160, true));
  }

  std::map<std::string, std::vector<const RunNode*>> children_;
  size_t written_ = 0;
};

Html RunTiles(const RunView& view, const RunFigures& figures) {
  Html tiles;
  const RunNode* best = figures.confirmed != nullptr ? figures.confirmed : figures.best;
  tiles +=
      Tile(figures.confirmed != nullptr ? "result, confirmed" : "best so far, first look",
           Text(best != nullptr ? FormatRatio(best->ratio.value) : "none"),
           best == nullptr
               ? Html()
               : Markup("{} {}", RangeOf(best->ratio),
                        best->verdict.empty() ? Html() : VerdictLink(best->verdict, "verdict")));
  tiles += Tile("judgements", Markup("{}", figures.judged),
                Markup("and {}; {}", Counted(figures.confirmed_again, "second look"),
                       Counted(figures.duplicates, "duplicate")));
  tiles +=
      Tile("rate", Text(figures.per_minute > 0 ? fmt::format("{:.1f}", figures.per_minute) : "-"),
           Text("judgements a minute"));
  tiles += Tile("cost",
                Text(view.spent.usd > 0 ? fmt::format("${:.2f}", view.spent.usd)
                                        : fmt::format("{:.0f} s", view.spent.seconds)),
                Text(DescribeSpending(view.spent, view.settings.budget)));
  return Tiles(tiles);
}

Html OutcomeTableHtml(const RunFigures& figures) {
  if (figures.outcomes.empty()) return Paragraph("None yet.", "faint");
  PageTable table("outcomes", {{"outcome", "name"}, {"candidates", "n"}, {"share", "n"}}, true);
  for (const auto& [name, count] : figures.outcomes)
    table.Row({OutcomeBadge(name), Markup("{}", count),
               Text(FormatShare(static_cast<double>(count) /
                                static_cast<double>(std::max<int64_t>(figures.judged, 1))))});
  return table.End();
}

Html SettingsFacts(const RunView& view) {
  const SearchSettings& settings = view.settings;
  Html facts = FactRow("problem", ProblemLink(settings.problem));
  facts += FactRow("strategy", Text(settings.strategy));
  facts += FactRow("proposer", Text(settings.proposer));
  facts += FactRow("from", Text(settings.from_name));
  facts += FactRow("began", TimeText(view.began));
  facts += FactRow("seed", Markup("<code>{}</code>", settings.seed));
  facts += FactRow("search", Markup("<code>{}</code>", settings.id));
  if (view.is_live) facts += FactRow("in hand", Markup("{}", view.in_hand));
  return Facts(facts);
}

Html NodeTable(const RunView& view) {
  PageTable table(
      "steps",
      {{"step", "mono"}, {"made by", ""}, {"parents", "mono"}, {"result", "name"}, {"at", "n"}});
  size_t rows = 0;
  for (const RunNode& node : view.nodes) {
    if (++rows > kTreeNodesMax) break;
    std::string parents;
    for (const std::string& parent : node.lineage.parents)
      parents += (parents.empty() ? "" : ", ") + parent;
    table.Row({Text(node.key), Text(node.lineage.operation), Text(parents), NodeResult(node),
               Markup("{:.1f} s", node.seconds)});
  }
  return table.End();
}

Html LiveBadge(const RunView& view) {
  return view.is_live ? Html::Trusted("<span class=\"badge warn\">▸ running</span> ")
                      : Html::Trusted("<span class=\"badge faint\">ended</span> ");
}

}  // namespace

RunView ViewOfRun(const Journal& journal) {
  RunView view;
  view.settings = journal.settings();
  for (const JournalEvent& event : journal.events()) {
    view.spent.seconds = std::max(view.spent.seconds, event.seconds);
    if (event.kind == JournalEvent::Kind::kIntent) ++view.in_hand;
    if (event.kind == JournalEvent::Kind::kReleased || event.kind == JournalEvent::Kind::kLost)
      --view.in_hand;
    if (event.kind == JournalEvent::Kind::kLost) view.spent += event.cost;
    if (event.kind != JournalEvent::Kind::kResult) continue;
    --view.in_hand;
    view.spent += event.cost;
    RunNode node{StepKind::kJudge,          event.key,    event.lineage, "error", {}, "",
                 event.result.duplicate_of, event.seconds};
    if (event.key.starts_with("propose/"))
      node.kind = StepKind::kPropose;
    else if (event.key.starts_with("confirm/"))
      node.kind = StepKind::kConfirm;
    if (event.result.answer) node.outcome = "answered";
    if (event.result.verdict) {
      node.outcome = std::string(OutcomeName(event.result.verdict->outcome));
      node.ratio = RatioOf(*event.result.verdict);
      node.verdict = event.result.verdict->id;
    }
    view.nodes.push_back(std::move(node));
  }
  view.in_hand = std::max<int64_t>(view.in_hand, 0);
  return view;
}

RunFigures FiguresOf(const RunView& view) {
  RunFigures figures;
  const auto better = [](const RunNode& node, const RunNode* than) {
    return node.ratio.value > (than == nullptr ? 0 : than->ratio.value);
  };
  for (const RunNode& node : view.nodes) {
    if (node.kind == StepKind::kPropose) ++figures.asked;
    if (node.kind == StepKind::kConfirm) ++figures.confirmed_again;
    if (node.kind == StepKind::kConfirm && node.outcome == OutcomeName(Outcome::kFaster) &&
        better(node, figures.confirmed))
      figures.confirmed = &node;
    if (node.kind != StepKind::kJudge) continue;
    if (!node.duplicate_of.empty()) {
      ++figures.duplicates;
      continue;
    }
    ++figures.judged;
    ++figures.outcomes[node.outcome];
    if (better(node, figures.best)) figures.best = &node;
  }
  if (figures.judged > 1 && view.spent.seconds > 0)
    figures.per_minute = 60 * static_cast<double>(figures.judged) / view.spent.seconds;
  return figures;
}

namespace {

// "openai:MODEL", "replay": without the file, the program or the address.
std::string ProposerName(const std::string& proposer) {
  const size_t colon = proposer.find(':');
  const std::string kind = proposer.substr(0, colon);
  if (kind != "openai" && kind != "anthropic") return Printable(kind, true);
  return Shortened(Printable(proposer.substr(0, proposer.find('@')), true), 24, true);
}

}  // namespace

std::string RenderRunsPage(const std::vector<RunView>& runs, PageFrame frame) {
  frame.place = Place::kRuns;
  frame.title = "Runs";
  Html main = Html::Trusted(
      "<h1>Runs</h1>\n<p class=\"lead\">Searches for a faster kernel, as the "
      "archive has them.</p>\n");
  if (runs.empty())
    return RenderPage(
        frame, main + Paragraph("No search has been begun. assay search begins one.", "faint"));
  PageTable table("searches", {{"search", "mono"},
                               {"state", ""},
                               {"problem", "name"},
                               {"strategy", ""},
                               {"proposer", ""},
                               {"judgements", "n"},
                               {"best", "n"},
                               {"interval", ""},
                               {"cost", "n"},
                               {"began", ""}});
  for (const RunView& run : runs) {
    const RunFigures figures = FiguresOf(run);
    const RunNode* best = figures.confirmed != nullptr ? figures.confirmed : figures.best;
    table.Row({Markup("<a href=\"/runs/{}\">{}</a>", UrlPart(run.settings.id), run.settings.id),
               LiveBadge(run), ProblemLink(run.settings.problem), Text(run.settings.strategy),
               Text(ProposerName(run.settings.proposer)), Markup("{}", figures.judged),
               Text(best != nullptr ? FormatRatio(best->ratio.value) : "-"),
               Markup("<span class=\"faint nowrap\">{}</span>{}",
                      best != nullptr ? RangeOf(best->ratio) : "",
                      figures.confirmed != nullptr ? Html::Trusted("<br>confirmed") : Html()),
               Text(run.spent.usd > 0 ? fmt::format("${:.2f}", run.spent.usd)
                                      : fmt::format("{:.0f} s", run.spent.seconds)),
               DayText(run.began)});
  }
  return RenderPage(frame, main + table.End());
}

std::string RenderRunPage(const RunView& view, PageFrame frame) {
  frame.place = Place::kRuns;
  frame.title = "Search on " + view.settings.problem;
  if (view.is_live) frame.reload_s = kReload_s;
  const RunFigures figures = FiguresOf(view);
  Html main =
      Markup("<h1>{}{} on {}</h1>\n", LiveBadge(view),
             view.settings.strategy.empty() ? "Search" : "Search by " + view.settings.strategy,
             ProblemLink(view.settings.problem));
  main += RunTiles(view, figures);
  if (const std::string svg = RenderRunSvg(view); !svg.empty()) main += Figure("the search", svg);
  main += Fold("The steps as a table", NodeTable(view));
  main += Markup("<div class=\"cols\"><div>{}</div><div>{}</div></div>\n",
                 Heading("Outcomes") + OutcomeTableHtml(figures),
                 Heading("Settings") + SettingsFacts(view));
  main += Heading("Lineage");
  TreeWriter tree(view);
  if (Html lists = tree.Write("", 0); !lists.empty())
    main += Markup(
        "<div class=\"box\" tabindex=\"0\" role=\"group\" "
        "aria-label=\"lineage\">\n{}</div>\n",
        lists);
  if (tree.is_cut())
    main += Paragraph(
        fmt::format("The first {} steps; assay archive show --tree has all.", kTreeNodesMax),
        "faint");
  main += Markup("<p class=\"screen\"><a href=\"/api/runs/{}\">The search as JSON</a></p>\n",
                 UrlPart(view.settings.id));
  return RenderPage(frame, view.is_live ? Refreshed(main, kReload_s) : main);
}

}  // namespace assay
