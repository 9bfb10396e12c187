#include "serve/ranking.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace assay {
namespace {

bool Fits(const BoardRow& row, const BoardQuery& query) {
  const BoardEntry& entry = row.entry;
  const bool machine = entry.role == Role::kMachine;
  return row.is_entry() && (query.problem.empty() || entry.problem == query.problem) &&
         (query.size.empty() || entry.size == query.size) &&
         // An entry that failed early has no class: it is one of each.
         (query.precision.empty() || entry.precision.empty() ||
          entry.precision == query.precision) &&
         (query.device.empty() || entry.gpu_or_cpu == query.device) &&
         (query.by == Players::kBoth || machine == (query.by == Players::kMachines)) &&
         (query.problems.empty() || query.problems.contains(entry.problem));
}

bool Counts(const BoardRow& row, const BoardQuery& query) {
  return row.counts() && Fits(row, query);
}

// Proven speed first; of equals the earlier.
bool IsBetter(const BoardRow& one, const BoardRow& other) {
  if (one.entry.ci_low != other.entry.ci_low) return one.entry.ci_low > other.entry.ci_low;
  return one.entry.sequence < other.entry.sequence;
}

void GiveRanks(std::vector<PlacedEntry>* entries) {
  size_t first = 0;
  for (size_t i = 0; i < entries->size(); ++i) {
    const BoardEntry& best = (*entries)[first].row.entry;
    const bool ties = i > first && (*entries)[i].row.entry.ci_high >= best.ci_low;
    if (!ties) first = i;
    (*entries)[i].rank = static_cast<int64_t>(first) + 1;
  }
  std::map<int64_t, int64_t> groups;
  for (const PlacedEntry& entry : *entries) ++groups[entry.rank];
  for (PlacedEntry& entry : *entries) entry.group = groups[entry.rank];
}

// The best of one player's entries for one problem.
struct Best {
  double certified = 0, plain = 0;
  bool correct = false;  // plainly: with weights that were prepared once, too
  bool certified_correct = false;
};

void Improve(const BoardRow& row, Best* best) {
  const Attempt attempt = row.attempt();
  if (!Qualifies(attempt, 0, false)) return;
  best->correct = true;
  best->plain = std::max(best->plain, attempt.speedup);
  if (!Qualifies(attempt, 0, true)) return;
  best->certified_correct = true;
  best->certified = std::max(best->certified, attempt.certified_speedup);
}

// As score/attempt.h has it: p = 0 asks for correctness alone.
bool IsCertified(const Best& best, double p) {
  return best.certified_correct && (p == 0 || best.certified > p);
}
bool IsPlain(const Best& best, double p) { return best.correct && (p == 0 || best.plain > p); }

using BestByProblem = std::unordered_map<size_t, Best>;

// The values of a field that entries have, with their numbers.
std::map<std::string, int64_t> CountBy(const std::vector<BoardRow>& rows, const BoardQuery& query,
                                       std::string BoardEntry::*field) {
  std::map<std::string, int64_t> counts;
  for (const BoardRow& row : rows)
    if (const std::string& value = row.entry.*field; !value.empty() && Counts(row, query))
      ++counts[value];
  return counts;
}

// The value with the most entries; of equals the first by name. Empty: there is none.
std::string Commonest(const std::map<std::string, int64_t>& counts) {
  const auto most =
      std::ranges::max_element(counts, {}, [](const auto& value) { return value.second; });
  return most == counts.end() ? std::string() : most->first;
}

// One device model and one precision class, unless it is asked across them.
BoardQuery Comparable(const std::vector<BoardRow>& rows, BoardQuery query, PlayerBoard* board) {
  const auto devices = CountBy(rows, query, &BoardEntry::gpu_or_cpu);
  board->devices = std::ssize(devices);
  if (query.device.empty() && !query.across_devices) query.device = Commonest(devices);
  const auto precisions = CountBy(rows, query, &BoardEntry::precision);
  board->precisions = std::ssize(precisions);
  if (query.precision.empty() && !query.across_precisions) query.precision = Commonest(precisions);
  board->device = query.device;
  board->precision = query.precision;
  return query;
}

// As score/score.h has it.
Curve CurveOf(const BestByProblem& problems) {
  std::vector<double> ratios;
  for (const auto& [problem, best] : problems)
    if (best.certified > 0) ratios.push_back(best.certified);
  std::ranges::sort(ratios);
  auto left = static_cast<int64_t>(ratios.size());
  Curve curve{{0, left}};
  for (const double ratio : ratios) {
    --left;
    if (curve.back().p == ratio)
      curve.back().count = left;
    else
      curve.push_back({ratio, left});
  }
  return curve;
}

Competitor PlayerOf(const BoardRow& row, const BestByProblem& problems, double p) {
  Competitor player;
  player.name = row.entry.author;
  player.role = row.entry.role;
  double logarithms = 0;
  int64_t measured = 0;
  for (const auto& [problem, best] : problems) {
    player.correct += best.correct ? 1 : 0;
    player.certified += IsCertified(best, p) ? 1 : 0;
    player.plain += IsPlain(best, p) ? 1 : 0;
    if (best.certified_correct) player.speeds.push_back(best.certified);
    if (best.plain <= 0) continue;
    logarithms += std::log(best.plain);
    ++measured;
  }
  if (measured > 0) player.mean_speedup = std::exp(logarithms / static_cast<double>(measured));
  std::ranges::sort(player.speeds, std::greater<>());
  return player;
}

}  // namespace

std::vector<ProblemBoard> RankProblem(const std::vector<BoardRow>& rows, const BoardQuery& query) {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, std::map<size_t, const BoardRow*>> boards;  // the best of each author
  for (const BoardRow& row : rows) {
    if (!Counts(row, query) || row.stage < Stage::kCorrect || row.prepares_weights) continue;
    const BoardEntry& entry = row.entry;
    if (entry.speedup <= 0) continue;
    const BoardRow*& best =
        boards[{entry.problem, entry.size, entry.precision, entry.gpu_or_cpu}][row.author];
    if (best == nullptr || IsBetter(row, *best)) best = &row;
  }
  std::vector<ProblemBoard> ranked;
  for (const auto& [key, authors] : boards) {
    ProblemBoard board;
    std::tie(board.problem, board.size, board.precision, board.device) = key;
    for (const auto& [author, row] : authors) board.entries.push_back({0, 0, *row});
    std::ranges::sort(board.entries, [](const PlacedEntry& one, const PlacedEntry& other) {
      return IsBetter(one.row, other.row);
    });
    GiveRanks(&board.entries);
    ranked.push_back(std::move(board));
  }
  std::ranges::stable_sort(ranked, [](const ProblemBoard& one, const ProblemBoard& other) {
    return one.entries.size() > other.entries.size();
  });
  return ranked;
}

PlayerBoard RankPlayers(const std::vector<BoardRow>& rows, const BoardQuery& asked_query,
                        int64_t asked) {
  struct Author {
    const BoardRow* row = nullptr;
    int64_t entries = 0;
  };
  std::unordered_map<size_t, Author> authors;
  std::unordered_map<size_t, BestByProblem> best;  // by author
  BestByProblem of_humans, of_machines;
  std::set<size_t> seen;
  PlayerBoard board;
  const BoardQuery query = Comparable(rows, asked_query, &board);
  for (const BoardRow& row : rows) {
    if (!Counts(row, query) || !row.counts_for_players()) continue;
    Author& author = authors[row.author];
    author.row = &row;
    ++author.entries;
    Improve(row, &best[row.author][row.problem]);
    Improve(row, &(row.entry.role == Role::kMachine ? of_machines : of_humans)[row.problem]);
    seen.insert(row.problem);
  }
  board.p = query.p;
  board.asked = std::max(asked, static_cast<int64_t>(seen.size()));
  board.humans = CurveOf(of_humans);
  board.machines = CurveOf(of_machines);
  for (const auto& [number, author] : authors) {
    board.players.push_back(PlayerOf(*author.row, best[number], query.p));
    board.players.back().entries = author.entries;
  }
  std::ranges::sort(board.players, [](const Competitor& one, const Competitor& other) {
    if (one.certified != other.certified) return one.certified > other.certified;
    return std::tie(one.name, one.role) < std::tie(other.name, other.role);
  });
  for (size_t i = 0; i < board.players.size(); ++i) {
    const bool ties = i > 0 && board.players[i].certified == board.players[i - 1].certified;
    board.players[i].rank = ties ? board.players[i - 1].rank : static_cast<int64_t>(i) + 1;
  }
  return board;
}

std::vector<BoardRow> OnEachDevice(const std::vector<BoardRow>& rows, const BoardRow& row) {
  std::map<std::string, const BoardRow*> newest;
  for (const BoardRow& other : rows)
    if (other.counts() && other.entry.source_hash == row.entry.source_hash &&
        other.entry.problem == row.entry.problem && other.entry.size == row.entry.size)
      newest[other.entry.gpu_or_cpu] = &other;  // rows ascend
  std::vector<BoardRow> found;
  for (const auto& [device, other] : newest) found.push_back(*other);
  return found;
}

std::vector<BoardRow> Fouls(const std::vector<BoardRow>& rows, const BoardQuery& query,
                            size_t limit) {
  std::vector<BoardRow> fouls;
  for (auto row = rows.rbegin(); row != rows.rend() && fouls.size() < limit; ++row)
    if (row->entry.foul && Counts(*row, query)) fouls.push_back(*row);
  return fouls;
}

std::vector<BoardRow> OfOwnRunners(const std::vector<BoardRow>& rows, const BoardQuery& query,
                                   size_t limit) {
  std::vector<BoardRow> found;
  for (auto row = rows.rbegin(); row != rows.rend() && found.size() < limit; ++row)
    if (row->own_runner && Fits(*row, query)) found.push_back(*row);
  return found;
}

}  // namespace assay
