// The pairs of a verdict against one baseline: a dot a pair, beside the interval and the line at
// the threshold. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/verdict.h"

namespace assay {

// One pair of hosts: what its blocks say.
struct PairFigures {
  std::string order;  // "rccr..."
  double ratio = 0;   // speedup; 0: it has no whole round
  // Medians of a call over its blocks [ns], after what is settled or charged; 0: not known.
  double reference_ns = 0, candidate_ns = 0;
  std::vector<int> sm_mhz;
};
std::vector<PairFigures> PairsOf(const Verdict& verdict, const std::string& baseline);

// Empty where no pair has a ratio. `id`: begins the ids in it.
std::string RenderSamplesSvg(const std::vector<PairFigures>& pairs, const BaselineResult& result,
                             const std::string& baseline, double threshold, std::string_view id);

}  // namespace assay
