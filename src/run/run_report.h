// What people read of a run: its plan, a line a candidate, and the sums. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "report/frame.h"
#include "run/rows.h"

namespace assay {

// The plan: its problems and forms, what was judged before, and what cannot be judged.
// `judged`: of each item, whether it has a verdict.
std::string RenderPlan(const RunPlan& plan, const std::vector<bool>& judged,
                       const CardStyle& style);

// How long what is left will take, by what the verdicts of `rows` took; empty without such rows.
std::string RenderEstimate(const std::vector<RunRow>& rows, size_t left);

// One line, with its end: problem, sample, outcome, ratio; and why it is no better.
std::string RenderRunRow(const RunRow& row, const CardStyle& style);

// Outcomes in the order of model/outcome.h: "12 faster, 3 slower, 1 wrong, 2 not judged".
std::string OutcomeCounts(const std::vector<const RunRow*>& rows);

// Counts what is done, and how fast, for the progress line.
class RunPace {
 public:
  RunPace(size_t all, int64_t now_ns) : all_(all), begin_ns_(now_ns) {}
  void Add(const RunRow& row);
  // "7 of 90, 3 faster, 4.2 a minute, 20 min left"
  std::string Text(int64_t now_ns) const;
  double fraction() const {
    return all_ == 0 ? 1 : static_cast<double>(done_) / static_cast<double>(all_);
  }

 private:
  size_t all_;
  int64_t begin_ns_;
  size_t done_ = 0, faster_ = 0;
};

}  // namespace assay
