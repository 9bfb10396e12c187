// Searches of the archive: their list, and one of them, live: rate, outcomes, lineage, the best so
// far, cost. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "search/budget.h"
#include "search/journal.h"
#include "search/step.h"
#include "web/layout.h"

namespace assay {

// A step of a search that has ended.
struct RunNode {
  StepKind kind = StepKind::kJudge;
  std::string key;
  Lineage lineage;
  std::string outcome;  // of a verdict; "answered" of a question, "error"
  Ratio ratio;
  std::string verdict;       // its id
  std::string duplicate_of;  // key
  double seconds = 0;        // that the search had taken then
};

struct RunView {
  SearchSettings settings;
  std::string began;     // ISO 8601, UTC
  bool is_live = false;  // a process works on it
  int64_t in_hand = 0;   // steps that were begun and have not ended
  Spending spent;
  std::vector<RunNode> nodes;  // in the order in which they ended
};

// A search as its journal tells it. `began` and `is_live` are the caller's.
RunView ViewOfRun(const Journal& journal);

// Figures that follow from the nodes.
struct RunFigures {
  std::map<std::string, int64_t> outcomes;  // of judgements: "faster" -> 12
  int64_t judged = 0, confirmed_again = 0, asked = 0, duplicates = 0;
  const RunNode* best = nullptr;       // by the first look
  const RunNode* confirmed = nullptr;  // best of those that a second look found faster
  double per_minute = 0;               // judgements; 0: too few
};
RunFigures FiguresOf(const RunView& view);

std::string RenderRunsPage(const std::vector<RunView>& runs, PageFrame frame);
std::string RenderRunPage(const RunView& view, PageFrame frame);

}  // namespace assay
