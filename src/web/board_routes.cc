#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "model/verdict_json.h"
#include "web/board_page.h"
#include "web/page_routes.h"
#include "web/problem_pages.h"
#include "web/reading.h"
#include "web/replies.h"

namespace assay {
namespace {

constexpr size_t kFoulsShown = 20, kOwnShown = 20, kVerdictsOfRoofline = 4;
constexpr const char* kRankRule =
    "Players with as many problems certified faster than p share a rank. On one problem an entry "
    "shares the rank of the group above it if its interval overlaps that of the group's first.";

std::vector<std::string> ListOf(const std::set<std::string>& names) {
  return {names.begin(), names.end()};
}

using Disputed = std::set<std::string>;  // ids of verdicts that a spot check disagrees with

Result<Disputed> DisputedOf(Hall& hall) {
  ASSAY_ASSIGN_OR_RETURN(const auto differing, hall.spot_checks().Differing());
  return Disputed(differing.begin(), differing.end());
}

std::vector<RankedEntry> EntriesOf(const ProblemBoard& board, const Disputed& disputed) {
  std::vector<RankedEntry> entries;
  for (const PlacedEntry& placed : board.entries) {
    entries.push_back({placed.rank, placed.group > 1, placed.row.entry,
                       disputed.contains(placed.row.entry.verdict)});
  }
  return entries;
}

std::string TitleOf(const ProblemBoard& board) {
  std::string title;
  for (const std::string& part :
       {board.size.empty() ? "" : "size " + board.size, board.precision, board.device})
    if (!part.empty()) title += (title.empty() ? "" : ", ") + part;
  return title;
}

BoardSide SideOf(Players by) {
  return by == Players::kHumans     ? BoardSide::kHuman
         : by == Players::kMachines ? BoardSide::kMachine
                                    : BoardSide::kBoth;
}

void AddPlayers(const PlayerBoard& standings, const BoardQuery& query, BoardView* view) {
  view->asked = standings.asked;
  view->on_processor = standings.device;
  view->on_precision = standings.precision;
  view->processors_with_entries = standings.devices;
  view->precisions_with_entries = standings.precisions;
  std::map<int64_t, int64_t> at_rank;
  for (const Competitor& player : standings.players) ++at_rank[player.rank];
  for (const Competitor& player : standings.players) {
    BoardPlayer line;
    line.rank = player.rank;
    line.tied = at_rank[player.rank] > 1;
    line.name = player.name;
    line.role = player.role;
    line.fast = ShareOf(player.certified, std::max(standings.asked, player.certified));
    line.correct = player.correct;
    line.mean_speedup = player.mean_speedup;
    line.judged = player.entries;
    view->players.push_back(std::move(line));
  }
  if (query.by != Players::kMachines)
    view->curves.push_back({"human", ChartSide::kFirst, standings.humans, standings.asked});
  if (query.by != Players::kHumans)
    view->curves.push_back({"machine", ChartSide::kSecond, standings.machines, standings.asked});
}

Result<BoardView> ViewOf(Hall& hall, const BoardQuery& query, const BoardFilter& filter) {
  ASSAY_ASSIGN_OR_RETURN(const auto standings, hall.Standings(query));
  ASSAY_ASSIGN_OR_RETURN(const Board* board, hall.CaughtUpBoard());
  BoardView view;
  view.filter = filter;
  view.problems = ListOf(board->choices().problems);
  view.sizes = ListOf(board->choices().sizes);
  view.precisions = ListOf(board->choices().precisions);
  view.processors = ListOf(board->choices().devices);
  view.tiers = TiersOf(hall.catalogue());
  view.rank_rule = kRankRule;
  AddPlayers(*standings, query, &view);
  ASSAY_ASSIGN_OR_RETURN(const Disputed disputed, DisputedOf(hall));
  if (!query.problem.empty()) {
    ASSAY_ASSIGN_OR_RETURN(const auto boards, hall.BoardsOf(query));
    for (const ProblemBoard& each : *boards) {
      if (&each != &boards->front()) {
        view.boards.push_back({TitleOf(each), EntriesOf(each, disputed)});
        continue;
      }
      view.entries_title = TitleOf(each);
      view.entries = EntriesOf(each, disputed);
    }
  }
  for (const BoardRow& row : Fouls(board->rows(), query, kFoulsShown))
    view.fouls.push_back({row.entry, row.foul_rule});
  for (const BoardRow& row : OfOwnRunners(board->rows(), query, kOwnShown))
    view.of_own_runners.push_back(row.entry);
  return view;
}

ServedReply ShowBoard(const PageParts& parts, Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_PAGE(const BoardQuery query, BoardQueryOf(hall, request));
  const BoardFilter filter{query.p,
                           query.problem,
                           request.Query("tier"),
                           request.Query("precision"),
                           query.size,
                           request.Query("processor"),
                           SideOf(query.by)};
  const auto render = [&]() -> Result<std::string> {
    ASSAY_ASSIGN_OR_RETURN(const BoardView view, ViewOf(hall, query, filter));
    return RenderBoard(view).text();
  };
  ASSAY_ASSIGN_OR_PAGE(const auto text,
                       hall.TextOfBoard("page, tier " + filter.tier, query, render));
  return HtmlReply(
      RenderBoardPage(filter, Html::Trusted(*text), FrameOf(parts, request, Place::kBoard)));
}

Result<std::string> ProblemsText(Hall& hall) {
  ASSAY_ASSIGN_OR_RETURN(const Board* board, hall.CaughtUpBoard());
  ASSAY_ASSIGN_OR_RETURN(const auto standings, hall.Standings({}));
  const std::string& machine = standings->device;  // whose best are shown
  std::map<std::string, std::pair<int64_t, const BoardRow*>> by_problem;
  for (const BoardRow& row : board->rows()) {
    if (!row.counts()) continue;
    auto& [judged, best] = by_problem[row.entry.problem];
    ++judged;
    if (row.counts_for_players() && row.certified > 0 && row.entry.gpu_or_cpu == machine &&
        (best == nullptr || row.certified > best->certified))
      best = &row;
  }
  std::vector<ProblemLine> lines;
  for (const OfferedProblem& problem : hall.catalogue().all()) {
    ProblemLine line;
    line.problem = problem.facts;
    const auto found = by_problem.find(problem.facts.name);
    if (found != by_problem.end()) {
      line.judged = found->second.first;
      if (found->second.second != nullptr) line.best = found->second.second->entry;
    }
    lines.push_back(std::move(line));
  }
  return RenderProblems(lines, machine).text();
}

ServedReply ShowProblems(const PageParts& parts, Hall& hall, const WebRequest& request) {
  ASSAY_ASSIGN_OR_PAGE(const auto text,
                       hall.TextOfBoard("problems", {}, [&] { return ProblemsText(hall); }));
  return HtmlReply(
      RenderProblemsPage(Html::Trusted(*text), FrameOf(parts, request, Place::kProblems)));
}

// The verdicts of the first entries, for the roofline; those that cannot be read are left out. The
// page shows nothing of them that is hidden from anybody.
std::vector<Verdict> VerdictsOf(Hall& hall, const ProblemBoard& board, const WebRequest& request) {
  std::vector<Verdict> verdicts;
  for (const PlacedEntry& placed : board.entries) {
    if (verdicts.size() >= kVerdictsOfRoofline) break;
    auto read = FindVerdict(hall, placed.row.entry.verdict, request);
    if (read && *read) verdicts.push_back(std::move((*read)->verdict));
  }
  return verdicts;
}

Result<std::string> ProblemText(Hall& hall, const OfferedProblem& problem, BoardQuery query,
                                const WebRequest& request) {
  ProblemView view;
  view.problem = problem.facts;
  view.size = query.size;
  ASSAY_ASSIGN_OR_RETURN(view.reference, hall.catalogue().Text(problem));
  ASSAY_ASSIGN_OR_RETURN(const auto boards, hall.BoardsOf(query));
  query.size.clear();
  ASSAY_ASSIGN_OR_RETURN(const auto all, hall.BoardsOf(query));
  for (const ProblemBoard& board : *all) {
    if (board.entries.empty() || board.device != all->front().device) continue;
    const BoardEntry& first = board.entries.front().row.entry;
    if (first.ci_low > 1) view.best.try_emplace(board.size, first);
  }
  if (!boards->empty()) {
    ASSAY_ASSIGN_OR_RETURN(const Disputed disputed, DisputedOf(hall));
    view.entries = EntriesOf(boards->front(), disputed);
    view.size = boards->front().size;
    view.machine = TitleOf(boards->front());
    view.other_boards = std::ssize(*boards) - 1;
    view.shown = VerdictsOf(hall, boards->front(), request);
  }
  ASSAY_ASSIGN_OR_RETURN(const Board* board, hall.CaughtUpBoard());
  view.judged = std::ranges::count_if(board->rows(), [&](const BoardRow& row) {
    return row.counts() && row.entry.problem == view.problem.name;
  });
  return RenderProblem(view).text();
}

ServedReply ShowProblem(const PageParts& parts, Hall& hall, const WebRequest& request) {
  const auto problem = hall.catalogue().Find(request.captures.at("name"));
  if (!problem) return ErrorPageOf(parts, 404, problem.error().message, &request);
  BoardQuery query;
  query.problem = (*problem)->facts.name;
  query.size = request.Query("size");
  const auto render = [&] { return ProblemText(hall, **problem, query, request); };
  ASSAY_ASSIGN_OR_PAGE(const auto text, hall.TextOfBoard("problem", query, render));
  return HtmlReply(RenderProblemPage(query.problem, Html::Trusted(*text),
                                     FrameOf(parts, request, Place::kProblems)));
}

}  // namespace

void AddBoardPages(const PageParts& parts, std::vector<Route>* routes) {
  const auto with_parts = [&parts](auto handler) {
    return [&parts, handler](Hall& hall, const WebRequest& request) {
      return handler(parts, hall, request);
    };
  };
  routes->push_back({"GET", "/", Access::kReader, with_parts(ShowBoard)});
  routes->push_back({"GET", "/problems", Access::kReader, with_parts(ShowProblems)});
  routes->push_back({"GET", "/problems/{name}", Access::kReader, with_parts(ShowProblem)});
}

}  // namespace assay
