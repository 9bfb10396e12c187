// Ranks, from the board's entries. Pure.
//
// Entries that count have ranks: what an author's own runner says has none.
//
// The rule of a problem's board: entries of one size, precision class and device are compared, the
// best of each author. An entry is as good as the lower end of its interval: the speedup that its
// pairs prove, so that luck does not pay. In this order an entry shares the rank of the group above
// it if its interval overlaps that of the group's first; otherwise it begins a group, whose rank is
// its place. Overlap is asked of the first alone, so that ties do not chain.
//
// The rule of the players' board: the number of problems with an entry that is certified to be more
// than p times as fast. Equal numbers share a rank. A player's entries on one device model and in
// one precision class count: those of the query, or else those with the most entries. All of them
// stand together only if it is asked for.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "score/score.h"
#include "serve/board.h"

namespace assay {

enum class Players { kBoth, kHumans, kMachines };

// Which entries count. Empty: any.
struct BoardQuery {
  double p = 1;
  std::string problem = {}, size = {}, precision = {}, device = {};
  std::set<std::string> problems = {};  // of a tier
  Players by = Players::kBoth;
  // Of the players' board: without a device, or a precision class, all count together.
  bool across_devices = false, across_precisions = false;

  bool operator==(const BoardQuery&) const = default;
};

struct PlacedEntry {
  int64_t rank = 0;   // from 1; entries that tie share it
  int64_t group = 0;  // entries that share the rank
  BoardRow row;
};
// A board of entries that may be compared.
struct ProblemBoard {
  std::string problem, size, precision, device;
  std::vector<PlacedEntry> entries;
};
// The boards of a problem; the one with the most entries first.
std::vector<ProblemBoard> RankProblem(const std::vector<BoardRow>& rows, const BoardQuery& query);

struct Competitor {
  int64_t rank = 0;
  std::string name;
  Role role = Role::kStudent;
  int64_t entries = 0;               // that were judged
  int64_t correct = 0;               // problems with a correct entry
  int64_t certified = 0, plain = 0;  // problems more than p times as fast
  double mean_speedup = 0;           // geometric, of the problems' best entries; 0: none
  // Of each problem with a correct entry the best certified speedup, from the largest; 0: correct
  // alone. So the count for any p can be read.
  std::vector<double> speeds;
};
struct PlayerBoard {
  double p = 1;
  int64_t asked = 0;                    // problems
  std::string device, precision;        // whose entries count; empty: of all, or there is none
  int64_t devices = 0, precisions = 0;  // that have entries, before one is chosen
  std::vector<Competitor> players;
  // Problems that anybody's entry is certified to be more than p times as fast on, over p.
  Curve humans, machines;
};
// `asked`: how many problems there are, at least those with an entry.
PlayerBoard RankPlayers(const std::vector<BoardRow>& rows, const BoardQuery& query, int64_t asked);

// The newest entry of the row's candidate, by its source, on each device model, at the same problem
// and size; by the device's name.
std::vector<BoardRow> OnEachDevice(const std::vector<BoardRow>& rows, const BoardRow& row);

// Entries that broke a rule, newest first.
std::vector<BoardRow> Fouls(const std::vector<BoardRow>& rows, const BoardQuery& query,
                            size_t limit);
// Entries that the authors' own runners judged, newest first. They have no rank.
std::vector<BoardRow> OfOwnRunners(const std::vector<BoardRow>& rows, const BoardQuery& query,
                                   size_t limit);

}  // namespace assay
