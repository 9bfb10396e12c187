// A plan and rows for the tests of runs.
#pragma once

#include <string>

#include "model/sample_verdicts.h"
#include "run/plan.h"
#include "run/rows.h"

namespace assay {

// Three candidates: two for 1/23_Softmax, one for 2/40_Matmul.
inline RunPlan TestPlan() {
  RunPlan plan;
  plan.problems.push_back({"23_Softmax", 1, 23, {"KernelBench/level1/23_Softmax.py", "", {}}, "a"});
  plan.problems.push_back({"40_Matmul", 2, 40, {"KernelBench/level2/40_Matmul.py", "", {}}, "b"});
  const auto add = [&](size_t problem, int64_t sample, const std::string& content) {
    const std::string path = "runs/x/" + content + ".py";
    plan.items.push_back({problem, sample, CandidateFromText(path, content).value()});
  };
  add(0, 0, "first");
  add(0, 1, "second");
  add(1, 0, "third");
  return plan;
}

}  // namespace assay
