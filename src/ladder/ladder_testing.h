// A ladder and results of it, for the tests of this folder.
#pragma once

#include <string>
#include <vector>

#include "ladder/climb.h"
#include "model/sample_verdicts.h"

namespace assay {

inline Ladder TestLadder() {
  Ladder ladder;
  ladder.folder = "kernels/steps";
  ladder.name = "steps";
  ladder.file = "ladder.toml";
  ladder.title = "Steps: one after another";
  ladder.problem = "softmax";
  ladder.device = "cpu";
  ladder.bound = "compute";
  ladder.sizes = {{{"ROWS", "8"}, {"COLUMNS", "4"}}, {{"ROWS", "9"}, {"COLUMNS", "4"}}};
  ladder.rungs = {{"01_naive.cpp", 1, "a loop", 10}, {"02_tiles.cpp", 2, "tiles", 90.5}};
  return ladder;
}

inline LadderRow TestRow(const std::string& file, double speedup,
                         Outcome outcome = Outcome::kSlower) {
  LadderRow row{"abc1234", "2026-11-26T10:00:00+00:00", "steps", {}};
  Verdict& verdict = row.verdict;
  verdict = SampleVerdict(outcome);
  verdict.bottleneck.clear();
  verdict.speed.reset();
  verdict.roofline.reset();
  verdict.problem.set = {{"ROWS", "8"}, {"COLUMNS", "4"}};
  verdict.problem.hash = "problem";
  verdict.problem.dtype = "float32";
  verdict.candidate.path = "kernels/steps/" + file;
  verdict.candidate.hash = file;
  verdict.machine.gpu.clear();
  verdict.machine.cpu = "A Processor";
  verdict.machine.threads = 1;
  verdict.toolchain["pytorch"] = "2.0";
  if (speedup <= 0) return row;
  BaselineResult result;
  result.time_ns = 1e6;
  result.candidate_time_ns = 1e6 / speedup;
  result.speedup = speedup;
  result.ci_low = 0.9 * speedup;
  result.ci_high = 1.1 * speedup;
  result.confidence = 0.75;
  result.decision = "slower";
  verdict.speed.emplace();
  verdict.speed->headline = "eager";
  verdict.speed->baselines["eager"] = result;
  verdict.roofline.emplace();
  verdict.roofline->rate_operations_s = 2.88e11;
  verdict.roofline->instructions = "avx512f";
  verdict.roofline->regime = "compute";
  verdict.roofline->percent_of_peak = 50 * speedup;
  return row;
}

}  // namespace assay
