// Measures which operators of the reference the values of gate 1 can see: an operator that could be
// left out, or computed carelessly, without a draw that shows it is a hole, whatever its kind.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "correctness/draw_set.h"
#include "correctness/mutants.h"
#include "model/verdict.h"

namespace assay {

// The effect of one mutant on one draw.
struct MutantOnDraw {
  bool changed = false;  // an output differs in value from the reference's
  bool passed = true;    // the draw does not tell it from the reference
};

// The steps of LookAtOperators, for tests. `kinds` are those of the draws in their order; of the
// first `plain` a glance at a few values does not tell the kind. `show` makes a draw ready, by its
// place in the order; `run` runs a mutant on it; `is_over` says that the time has ended.
struct CoverageSteps {
  std::vector<std::string> kinds;
  size_t plain = 0;
  std::function<HostResult<void>(size_t draw)> show;
  std::function<HostResult<MutantOnDraw>(size_t mutant)> run;
  std::function<bool()> is_over;
};
// Runs each mutant on draw after draw until one shows it, the first of each operator before the
// second of any. Operators without a mutant that changes an output do not count. One that only
// draws after the plain ones show is not seen.
HostResult<OperatorCoverage> CoverageOf(const MutantCatalog& catalog, const CoverageSteps& steps);

// Runs the mutants of the reference's operators on the draws, for `seconds` at most, but for the
// one that runs then. Returns nullopt where that cannot be: values lie on a device, there is one
// master, the problem has a check of its own, zeros or a constant solve it, or calls take too long.
// Overwrites the last master. Errors: trouble of the oracle's host.
HostResult<std::optional<OperatorCoverage>> LookAtOperators(Oracle& oracle, const DrawSet& draws,
                                                    const CompareRule& rule, double seconds);

}  // namespace assay
