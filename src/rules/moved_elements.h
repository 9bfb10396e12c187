// Elements where the truth itself moves, as far as a candidate is off, when inputs change by
// rounding alone: two scores of a steep softmax that are nearly the same, a value at a threshold.
// There an honest program may take the other side than the reference, and whether the reference
// happens to take the right one is luck. Pure.
//
// Theory of operation. A program is called right here if its output is that of inputs which differ
// from the given ones in their last bits (backward error analysis: Higham, Accuracy and Stability
// of Numerical Algorithms, chapter 1). So the truth is computed again for inputs that were nudged,
// each element by a random share of itself up to 2^-NudgeBits, and an element is left out where the
// candidate is off by at most kMovedFactor times what its truth moved by. This is for choices that
// few elements hang on: where more than kMovedShareMax of an output moves, its condition is bad
// throughout, which the reference's own error is there to measure (error_bounds.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rules/gate1.h"

namespace assay {

// A candidate that takes more choices than so many otherwise is no honest one with bad luck. A
// choice is a row where rows are vectors of 16 elements and more, else an element.
inline constexpr size_t kChoicesMax = 8;

// Each nudge shows one side of a choice or the other.
inline constexpr int kNudges = 8;

inline constexpr double kMovedFactor = 4;
inline constexpr double kMovedShareMax = 1.0 / 8;

// Inputs are nudged by up to this power of a half of themselves: 16 u where a class's bound is
// hundreds of u, 2 u in the half precisions, whose bound is that.
int NudgeBits(PrecisionClass required);

struct MovedElement {
  int64_t index = 0;
  double moved = 0;  // largest |nudged truth - truth|, over all nudges
};

// Those of one output, whatever a candidate gives: collected nudge by nudge.
class MovedElements {
 public:
  // `output` has the reference and the oracle, which need not outlive this.
  MovedElements(const OutputView& output, const CompareRule& rule);
  // The truth of another nudge, all of its elements. False from then on: too much moves, and
  // nothing is left out.
  bool See(const double* truth, const double* nudged);
  // By index.
  const std::vector<MovedElement>& elements() const { return elements_; }

 private:
  OutputView view_;  // of nudged truths, as float64
  double limit_ = 0;
  bool too_much_ = false;
  std::vector<MovedElement> elements_;
};

// Whether rounding may be all that is wrong with an output that CompareWithOracle, with `learned`
// null, fails: what is wrong are finite numbers, and few choices; the rule is neither exact nor
// allclose.
bool MayBeRounding(const OutputView& output, const CompareRule& rule);

// CompareWithOracle's conclusion, with `learned` null, once wrong elements are left out which
// `moved` (by index) explains; nothing where it does not explain each that is wrong. `left_out` is
// set to their number.
std::optional<OutputComparison> CompareBesideMoved(const OutputView& output,
                                                   const CompareRule& rule,
                                                   std::span<const MovedElement> moved,
                                                   int64_t* left_out);

}  // namespace assay
