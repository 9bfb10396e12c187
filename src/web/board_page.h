// The board: who solves how many problems how fast, and the ranks on one problem. Pure.
#pragma once

#include <string>
#include <vector>

#include "score/score.h"
#include "serve/types.h"
#include "web/fast_p_chart.h"
#include "web/layout.h"

namespace assay {

enum class BoardSide { kHuman, kMachine, kBoth };
std::string_view BoardSideName(BoardSide side);  // "human", "machine", "both"

// The question that a board answers. Empty: any; of precision and processor those with the most
// entries, and "all" for all together.
struct BoardFilter {
  double p = 1;
  std::string problem, tier, precision, size, processor;
  BoardSide by = BoardSide::kBoth;
};

// The query of a board's URL for this filter, with '?'; "/" alone where all is as at first.
std::string BoardUrl(const BoardFilter& filter);

struct BoardPlayer {
  int64_t rank = 0;
  bool tied = false;  // others have the same rank
  std::string name;
  Role role = Role::kStudent;
  Share fast;               // certified to be more than p times as fast, of the problems asked for
  int64_t correct = 0;      // problems
  double mean_speedup = 0;  // geometric, over the correct ones; 0: none
  int64_t judged = 0;       // candidates
};

struct RankedEntry {
  int64_t rank = 0;  // 0: it has none
  bool tied = false;
  BoardEntry entry;
  bool is_disputed = false;  // a spot check disagrees
};

// Entries that may be compared.
struct RankedBoard {
  std::string title;  // "size small, float32, cpu"
  std::vector<RankedEntry> entries;
};

struct BoardFoul {
  BoardEntry entry;
  std::string rule;
};

struct BoardView {
  BoardFilter filter;
  // The choices.
  std::vector<std::string> problems, tiers, precisions, sizes, processors;
  int64_t asked = 0;               // problems
  std::vector<FastPCurve> curves;  // humans, machines
  std::vector<BoardPlayer> players;
  std::vector<RankedEntry> entries;  // of one problem; else empty
  std::vector<BoardFoul> fouls;
  std::vector<BoardEntry> of_own_runners;  // judged by their authors' own: without a rank
  std::string rank_rule;                   // one sentence: when do players share a rank
  // The machine and the precision class that players are compared on; empty: all. How many there
  // are.
  std::string on_processor = {}, on_precision = {};
  int64_t processors_with_entries = 0, precisions_with_entries = 0;
  // The title of `entries`, and further boards of the same problem.
  std::string entries_title = {};
  std::vector<RankedBoard> boards = {};
};

// All within the frame: of the board alone, the same for all readers.
Html RenderBoard(const BoardView& view);
std::string RenderBoardPage(const BoardFilter& filter, const Html& board, PageFrame frame);
std::string RenderBoardPage(const BoardView& view, PageFrame frame);

// The ranks on one problem, for its own page, too.
Html RankedTable(const std::vector<RankedEntry>& entries, bool with_sizes);

}  // namespace assay
