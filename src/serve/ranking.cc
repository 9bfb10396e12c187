#include "serve/ranking.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace assay {
namespace {

constexpr std::array kCurveSteps{0.0, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5,  1.75,
                                 2.0, 2.5,  3.0, 4.0,  5.0, 6.0, 8.0, 10.0, 15.0, 20.0};

bool Counts(const BoardRow& row, const BoardQuery& query) {
  const BoardEntry& entry = row.entry;
  const bool machine = entry.role == Role::kMachine;
  return (query.problem.empty() || entry.problem == query.problem) &&
         (query.size.empty() || entry.size == query.size) &&
         (query.precision.empty() || entry.precision == query.precision) &&
         (query.device.empty() || entry.gpu_or_cpu == query.device) &&
         (query.by == Players::kBoth || machine == (query.by == Players::kMachines)) &&
         (query.problems.empty() || query.problems.contains(entry.problem));
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

PlayerBoard RankPlayers(const std::vector<BoardRow>& rows, const BoardQuery& query, int64_t asked) {
  struct Author {
    const BoardRow* row = nullptr;
    int64_t entries = 0;
  };
  std::unordered_map<size_t, Author> authors;
  std::unordered_map<size_t, std::unordered_map<size_t, Best>> best;  // author -> problem
  std::unordered_map<size_t, Best> of_all;
  for (const BoardRow& row : rows) {
    if (!Counts(row, query)) continue;
    Author& author = authors[row.author];
    author.row = &row;
    ++author.entries;
    Improve(row, &best[row.author][row.problem]);
    Improve(row, &of_all[row.problem]);
  }
  PlayerBoard board;
  board.p = query.p;
  board.asked = std::max(asked, static_cast<int64_t>(of_all.size()));
  for (const auto& [number, author] : authors) {
    Player player;
    player.name = author.row->entry.author;
    player.role = author.row->entry.role;
    player.entries = author.entries;
    for (const auto& [problem, of_problem] : best[number]) {
      player.correct += of_problem.correct ? 1 : 0;
      player.certified += IsCertified(of_problem, query.p) ? 1 : 0;
      player.plain += IsPlain(of_problem, query.p) ? 1 : 0;
      if (of_problem.certified_correct) player.speeds.push_back(of_problem.certified);
    }
    std::ranges::sort(player.speeds, std::greater<>());
    board.players.push_back(std::move(player));
  }
  std::ranges::sort(board.players, [](const Player& one, const Player& other) {
    if (one.certified != other.certified) return one.certified > other.certified;
    return std::tie(one.name, one.role) < std::tie(other.name, other.role);
  });
  for (size_t i = 0; i < board.players.size(); ++i) {
    const bool ties = i > 0 && board.players[i].certified == board.players[i - 1].certified;
    board.players[i].rank = ties ? board.players[i - 1].rank : static_cast<int64_t>(i) + 1;
  }
  for (const double p : kCurveSteps) {
    CurvePoint point{p, 0, 0};
    for (const auto& [problem, of_problem] : of_all) {
      point.certified += IsCertified(of_problem, p) ? 1 : 0;
      point.plain += IsPlain(of_problem, p) ? 1 : 0;
    }
    board.curve.push_back(point);
  }
  return board;
}

std::vector<BoardRow> Fouls(const std::vector<BoardRow>& rows, const BoardQuery& query,
                            size_t limit) {
  std::vector<BoardRow> fouls;
  for (auto row = rows.rbegin(); row != rows.rend() && fouls.size() < limit; ++row)
    if (row->entry.foul && Counts(*row, query)) fouls.push_back(*row);
  return fouls;
}

}  // namespace assay
