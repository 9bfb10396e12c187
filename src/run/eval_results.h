// Results in the layout of KernelBench's eval_results.json, and beside those that it wrote itself.
// Pure.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "run/rows.h"

namespace assay {

// Returns the text of such a file for the rows of one level: for each problem a list of its
// samples. Times are in milliseconds, as KernelBench's CUDA events give them; -1 for samples that
// are not correct. Rows without a verdict are left out, and so are those of UntimedSamples().
std::string EvalResultsText(const std::vector<const RunRow*>& rows);
// Returns the samples that are correct and have no time, such as "23_Softmax #0": KernelBench's
// scripts would take the -1 for a time, and average it.
std::vector<std::string> UntimedSamples(const std::vector<const RunRow*>& rows);

// What a file of that layout says of a sample.
struct EvalResult {
  bool compiled = false, correct = false;
  double runtime_ms = -1;
};
struct EvalResults {
  bool ours = false;                                          // written by EvalResultsText
  std::map<std::pair<int64_t, int64_t>, EvalResult> samples;  // by problem and sample
};
// Reads one, also in its older layout without lists. Errors (kUsage): not such a file.
Result<EvalResults> ReadEvalResults(const std::string& text);

// Returns a line for each sample on which the two disagree: "23_Softmax #0: theirs correct; ours
// wrong: ...".
std::vector<std::string> Disagreements(const EvalResults& theirs,
                                       const std::vector<const RunRow*>& rows);

}  // namespace assay
