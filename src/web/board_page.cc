#include "web/board_page.h"

#include <algorithm>

#include "report/score_chart.h"
#include "report/text.h"
#include "web/parts.h"

namespace assay {
namespace {

constexpr std::string_view kAll = "all";

// `all`: the value for all options together.
Html Select(std::string_view name, std::string_view label, const std::vector<std::string>& options,
            const std::string& chosen, std::string_view all = "") {
  if (options.empty()) return {};
  Html list = Markup("<option value=\"{}\">all</option>", all);
  for (const std::string& option : options)
    list +=
        Markup("<option{}>{}</option>", Html::Trusted(option == chosen ? " selected" : ""), option);
  return Markup(
      "<div><label for=\"f-{0}\">{1}</label><select id=\"f-{0}\" name=\"{0}\">{2}"
      "</select></div>\n",
      name, label, list);
}

Html SideChoice(BoardSide chosen) {
  Html choice;
  for (const BoardSide side : {BoardSide::kBoth, BoardSide::kHuman, BoardSide::kMachine})
    choice +=
        Markup("<label><input type=\"radio\" name=\"by\" value=\"{0}\"{1}><span>{0}</span></label>",
               BoardSideName(side), Html::Trusted(side == chosen ? " checked" : ""));
  return Markup("<fieldset><legend>players</legend><div class=\"choice\">{}</div></fieldset>\n",
                choice);
}

// The board of a problem shows a table for each machine and class; the players' board is of one.
std::string Shown(const BoardFilter& filter, const std::string& asked, const std::string& found) {
  return asked.empty() && filter.problem.empty() ? found : asked;
}

Html Filters(const BoardView& view) {
  const BoardFilter& filter = view.filter;
  Html fields = SideChoice(filter.by);
  fields += Select("problem", "problem", view.problems, filter.problem);
  fields += Select("tier", "tier", view.tiers, filter.tier);
  fields += Select("precision", "precision class", view.precisions,
                   Shown(filter, filter.precision, view.on_precision), kAll);
  fields += Select("size", "size", view.sizes, filter.size);
  fields += Select("processor", "machine", view.processors,
                   Shown(filter, filter.processor, view.on_processor), kAll);
  return fields + Html::Trusted("<div class=\"go\"><button>Show</button></div>\n");
}

Html Presets(const BoardFilter& filter) {
  Html links;
  for (const double p : {0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 4.0}) {
    BoardFilter other = filter;
    other.p = p;
    links += Markup("<a class=\"button\" href=\"{}\"{}>{:g}</a>\n", BoardUrl(other),
                    Html::Trusted(p == filter.p ? " aria-current=\"true\"" : ""), p);
  }
  return Markup(
      "<div class=\"presets\" id=\"board-presets\"><span class=\"label\">p =</span>{}"
      "</div>\n",
      links);
}

Html Dial(const BoardView& view, double end) {
  return Markup(
             "<div class=\"dial\"><label for=\"dial\">p, times as fast as the baseline: <output "
             "id=\"dial-value\" for=\"dial\">{2:.2f}×</output></label><input type=\"range\" "
             "id=\"dial\" name=\"p\" min=\"0\" max=\"{0:g}\" step=\"0.05\" "
             "value=\"{1:g}\"></div>\n",
             end, std::min(view.filter.p, end), view.filter.p) +
         Presets(view.filter);
}

Html CurveTable(const BoardView& view) {
  PageTable table("fast_p as a table", [&] {
    std::vector<Column> columns{{"p", "n"}};
    for (const FastPCurve& curve : view.curves) columns.push_back({curve.name, "n"});
    return columns;
  }());
  for (const double p : {0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 4.0, 8.0}) {
    std::vector<Html> cells{Markup("{:g}", p)};
    for (const FastPCurve& curve : view.curves)
      cells.push_back(Markup("{} of {}", CountAt(curve.curve, p), curve.asked));
    table.AddRow(cells);
  }
  return table.End();
}

Html Shares(const BoardView& view) {
  Html tiles;
  for (const FastPCurve& curve : view.curves) {
    const Share share = ShareOf(CountAt(curve.curve, view.filter.p), curve.asked);
    tiles += Tile(fmt::format("{}, fast at p = {:g}", curve.name, view.filter.p),
                  Text(FormatPercent(share.value())),
                  Markup("{} of {} problems; 95% interval {} to {}", share.count, share.asked,
                         FormatPercent(share.low), FormatPercent(share.high)));
  }
  return Markup("<div id=\"board-shares\">{}</div>\n", tiles.empty() ? Html() : Tiles(tiles));
}

Html Rank(int64_t rank, bool tied) {
  if (rank == 0) return Html::Trusted("–");
  return tied ? Markup("<span title=\"shared\">{}<small> =</small></span>", rank)
              : Markup("{}", rank);
}

Html NothingFits() {
  return Paragraph("No verdict fits this choice yet. Submit a candidate, or widen the choice.",
                   "faint");
}

// The machine and the class that players are compared on.
Html Compared(const BoardView& view) {
  const bool mixes_machines = view.on_processor.empty() && view.processors_with_entries > 1;
  const bool mixes_classes = view.on_precision.empty() && view.precisions_with_entries > 1;
  if (mixes_machines || mixes_classes) {
    std::string across;
    if (mixes_machines) across = Counted(view.processors_with_entries, "machine");
    if (mixes_classes)
      across += (across.empty() ? "" : " and ") +
                fmt::format("{} precision classes", view.precisions_with_entries);
    return Markup(
        "<div class=\"notice bad\"><p>Across {}: a speedup of one says little of another. Choose "
        "one to compare players.</p></div>\n",
        across);
  }
  std::string on;
  for (const std::string& part : {view.on_processor, view.on_precision})
    if (!part.empty()) on += (on.empty() ? "On " : ", ") + part;
  if (on.empty()) return {};
  if (view.processors_with_entries > 1 || view.precisions_with_entries > 1)
    on += ". Other machines and precision classes have boards of their own: choose above";
  return Paragraph(on + ".", "faint");
}

Html Players(const BoardView& view) {
  if (view.players.empty()) return NothingFits();
  PageTable table("players", {{"rank", "rank"},
                              {"player", "name"},
                              {fmt::format("faster than {:g}×", view.filter.p), "n"},
                              {"share", "n"},
                              {"95% interval", ""},
                              {"correct", "n"},
                              {"mean speedup", "n"},
                              {"judged", "n"}});
  for (const BoardPlayer& player : view.players) {
    const Share& fast = player.fast;
    table.Row(
        {Rank(player.rank, player.tied), Markup("{} {}", player.name, RoleTag(player.role)),
         Markup("{} of {}", fast.count, fast.asked), Text(FormatPercent(fast.value())),
         IntervalBar(fast.low, fast.value(), fast.high, {},
                     fmt::format("{} to {}", FormatPercent(fast.low), FormatPercent(fast.high))),
         Markup("{}", player.correct), Text(RatioOrDash(player.mean_speedup)),
         Markup("{}", player.judged)});
  }
  return table.End();
}

// The boards of one problem: only what is judged alike is compared.
Html Boards(const BoardView& view) {
  Html html;
  if (!view.entries_title.empty()) html += Paragraph(view.entries_title, "faint");
  html += RankedTable(view.entries, view.entries_title.empty() && view.filter.size.empty());
  for (const RankedBoard& board : view.boards)
    html += Markup("<h3>{}</h3>\n", board.title) + RankedTable(board.entries, false);
  return html;
}

Html Fouls(const std::vector<BoardFoul>& fouls) {
  if (fouls.empty()) return {};
  PageTable table("fouls", {{"player", "name"},
                            {"problem", "name"},
                            {"rule that was broken", "why"},
                            {"verdict", ""},
                            {"time (UTC)", ""}});
  for (const BoardFoul& foul : fouls)
    table.Row({Markup("{} {}", foul.entry.author, RoleTag(foul.entry.role)),
               ProblemLink(foul.entry.problem), Text(foul.rule), VerdictLink(foul.entry.verdict),
               TimeText(foul.entry.time)});
  return Heading("Fouls") +
         Paragraph("A candidate that breaks a rule has no rank, whatever its speed.", "faint") +
         table.End();
}

Html OfOwnRunners(const std::vector<BoardEntry>& entries) {
  if (entries.empty()) return {};
  PageTable table("judged by their authors' own runners", {{"player", "name"},
                                                           {"problem", "name"},
                                                           {"size", ""},
                                                           {"it says", "n"},
                                                           {"verdict", ""},
                                                           {"judged by", ""},
                                                           {"time (UTC)", ""}});
  for (const BoardEntry& entry : entries)
    table.Row({Markup("{} {}", entry.author, RoleTag(entry.role)), ProblemLink(entry.problem),
               Text(entry.size), Text(RatioOrDash(entry.speedup)), VerdictLink(entry.verdict),
               RunnerText(entry.runner, true), TimeText(entry.time)});
  return Heading("Without a rank") +
         Paragraph(
             "Judged by the author's own runner. This server did not see the judgement, so it "
             "counts nowhere. Runners that a mentor promoted give ranks.",
             "faint") +
         table.End();
}

void AddQuery(std::string_view name, std::string_view value, std::string* url) {
  if (value.empty()) return;
  *url += fmt::format("{}{}={}", url->ends_with('/') ? '?' : '&', name, UrlPart(value));
}

}  // namespace

std::string_view BoardSideName(BoardSide side) {
  return side == BoardSide::kHuman ? "human" : side == BoardSide::kMachine ? "machine" : "both";
}

std::string BoardUrl(const BoardFilter& filter) {
  std::string url = "/";
  if (filter.p != 1) AddQuery("p", fmt::format("{:g}", filter.p), &url);
  AddQuery("problem", filter.problem, &url);
  AddQuery("tier", filter.tier, &url);
  if (filter.by != BoardSide::kBoth) AddQuery("by", BoardSideName(filter.by), &url);
  AddQuery("precision", filter.precision, &url);
  AddQuery("size", filter.size, &url);
  AddQuery("processor", filter.processor, &url);
  return url;
}

Html RankedTable(const std::vector<RankedEntry>& entries, bool with_sizes) {
  std::vector<double> ratios;
  for (const RankedEntry& each : entries) {
    ratios.push_back(each.entry.ci_low);
    ratios.push_back(each.entry.ci_high);
  }
  const BarScale scale = RatioScale(ratios);
  std::vector<Column> columns{{"rank", "rank"}, {"player", "name"}, {"speedup", "n"},
                              {"interval", ""}, {"time", "n"},      {"of the bound", "n"}};
  if (with_sizes) columns.push_back({"size", ""});
  for (const Column& column :
       std::initializer_list<Column>{{"verdict", ""}, {"judged by", ""}, {"day", ""}})
    columns.push_back(column);
  PageTable table("candidates by rank", columns);
  for (const RankedEntry& each : entries) {
    const BoardEntry& entry = each.entry;
    std::vector<Html> cells{
        Rank(each.rank, each.tied),
        Markup("{} {}", entry.author, RoleTag(entry.role)),
        Text(RatioOrDash(entry.speedup)),
        entry.ci_low > 0 ? IntervalBar(entry.ci_low, entry.speedup, entry.ci_high, scale,
                                       RangeText(entry.ci_low, entry.ci_high))
                         : Html(),
        Text(entry.time_ns > 0 ? FormatDuration(entry.time_ns) : "-"),
        Text(entry.percent_of_peak > 0 ? fmt::format("{:.0f}%", entry.percent_of_peak) : "-")};
    if (with_sizes) cells.push_back(Text(entry.size));
    cells.push_back(
        Markup("<a class=\"quiet\" href=\"/verdicts/{}\">{}<span "
               "class=\"hidden-text\">, verdict {}</span></a>",
               UrlPart(entry.verdict), OutcomeBadge(entry.outcome), entry.verdict));
    cells.push_back(Markup(
        "<span class=\"small\">{}{}</span>", entry.runner,
        each.is_disputed
            ? Markup(" <a class=\"tag own\" href=\"/verdicts/{}\">a spot check disagrees</a>",
                     UrlPart(entry.verdict))
            : Html()));
    cells.push_back(DayText(entry.time));
    table.AddRow(cells);
  }
  return table.End();
}

Html RenderBoard(const BoardView& view) {
  const Html rule = view.rank_rule.empty() ? Html() : Paragraph(view.rank_rule, "faint small");
  if (!view.filter.problem.empty()) {
    Html main = Markup(
        "<h1>Board: {}</h1>\n<form class=\"filters\" data-at-once action=\"/\">\n{}"
        "</form>\n",
        ProblemLink(view.filter.problem), Filters(view));
    if (view.entries.empty() && view.boards.empty())
      main += NothingFits();
    else
      main += Boards(view) + rule;
    return main + OfOwnRunners(view.of_own_runners) + Fouls(view.fouls);
  }
  const double end = std::max(DialEnd(view.curves), std::min(view.filter.p, 64.0));
  Html main = Markup(
      "<h1>Board</h1>\n<p class=\"lead\">fast_p: the share of {} that a player solves correctly "
      "and "
      "more than p times as fast as the baseline. A win counts once the judge has decided it over "
      "many pairs of runs; by luck it does so in less than one of a hundred verdicts.</p>\n",
      Counted(view.asked, "problem"));
  // One form has the filters and the dial, so that either keeps the other.
  main += Markup(
      "<form data-at-once action=\"/\">\n<div class=\"filters\">{}</div>\n<div "
      "class=\"cols\"><div>{}</div><div>{}</div></div></form>\n",
      Filters(view),
      Figure("fast_p over p", RenderFastPCurves(view.curves, view.filter.p, end)) + Dial(view, end),
      Shares(view) + Fold("fast_p as a table", CurveTable(view)));
  main += Markup("<div id=\"board-table\">{}{}{}</div>\n", Heading("Players"),
                 Compared(view) + Players(view), rule);
  return main + OfOwnRunners(view.of_own_runners) + Fouls(view.fouls);
}

std::string RenderBoardPage(const BoardFilter& filter, const Html& board, PageFrame frame) {
  frame.place = Place::kBoard;
  frame.title = filter.problem.empty() ? "Board" : "Board, " + filter.problem;
  return RenderPage(frame, board);
}

std::string RenderBoardPage(const BoardView& view, PageFrame frame) {
  return RenderBoardPage(view.filter, RenderBoard(view), std::move(frame));
}

}  // namespace assay
