// The list of problems, and one problem: its reference, sizes, bound, and ranks. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/verdict.h"
#include "problem/suite.h"
#include "web/board_page.h"
#include "web/layout.h"

namespace assay {

struct ProblemLine {
  SuiteProblem problem;
  int64_t judged = 0;    // candidates
  BoardEntry best = {};  // with the best certified speed; without a verdict: none
};

// All within the frame: of the board alone, the same for all readers. `machine`: of the best ones;
// empty: there are none.
Html RenderProblems(const std::vector<ProblemLine>& problems, const std::string& machine);
std::string RenderProblemsPage(const Html& problems, PageFrame frame);

struct ProblemView {
  SuiteProblem problem;
  std::string reference;                        // the file's text
  std::map<std::string, BoardEntry> best = {};  // by size; of correct, faster candidates
  std::vector<Verdict> shown = {};              // best so far, for the roofline
  std::vector<RankedEntry> entries = {};
  std::string size = {};     // of the entries; empty: all
  std::string machine = {};  // of the entries: "size small, float32, cpu"
  int64_t other_boards = 0;  // of other machines, sizes and precision classes
  int64_t judged = 0;
};

Html RenderProblem(const ProblemView& view);
std::string RenderProblemPage(const std::string& name, const Html& problem, PageFrame frame);

}  // namespace assay
