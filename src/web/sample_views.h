// Views of pages made of committed results, for print_sample_pages and tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/examples.h"
#include "web/board_page.h"
#include "web/compare_page.h"
#include "web/ladder_pages.h"
#include "web/problem_pages.h"
#include "web/run_pages.h"
#include "web/verdict_page.h"

namespace assay {

// The results that sample pages show, by the folder of a checkout.
struct SampleData {
  std::string root;
  Examples examples;
  Suite suite;
};
Result<SampleData> ReadSampleData(const std::string& root);

BoardView SampleBoard(const SampleData& data, const BoardFilter& filter);
VerdictView SampleVerdict(const SampleData& data, const std::string& id);
Result<ProblemView> SampleProblem(const SampleData& data, const std::string& name);
std::vector<ProblemLine> SampleProblems(const SampleData& data);
// A recorded search, bench/results/cpu-2core/search_softmax.jsonl.
Result<RunView> SampleRun(const SampleData& data);
// A ladder with its results on that machine ("cpu-2core", "h100"), a view a size.
Result<std::vector<LadderView>> SampleLadder(const SampleData& data, const std::string& file,
                                             const std::string& machine);

}  // namespace assay
