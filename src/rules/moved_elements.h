// Finds elements whose truth moves, as far as a candidate is off, when inputs change by rounding
// alone: two nearly equal scores of a steep softmax, a value at a threshold. There an honest
// program may choose the other side than the reference, and the reference's own choice is luck.
// Pure.
//
// Theory of operation. A program is called right here if its output is that of inputs which differ
// from the given ones in their last bits (backward error analysis: Higham, Accuracy and Stability
// of Numerical Algorithms, chapter 1). So the truth is computed again for nudged inputs: each
// element changes by a random share of itself, up to 2^-NudgeBits. An element is left out if the
// candidate's error is at most kMovedFactor times the movement of its truth. This is for choices
// that few elements depend on. Where more than kMovedShareMax of an output moves, the whole output
// is badly conditioned, and the reference's own error accounts for that (error_bounds.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rules/gate1.h"

namespace assay {

// A candidate that differs in more choices than this is not honest with bad luck. A choice is a row
// where rows have 16 elements or more, otherwise an element.
inline constexpr size_t kChoicesMax = 8;

// Number of nudges: each shows one side of a choice or the other.
inline constexpr int kNudges = 8;

inline constexpr double kMovedFactor = 4;
inline constexpr double kMovedShareMax = 1.0 / 8;

// Returns b: inputs are nudged by up to 2^-b of themselves. 16 u for classes whose bound is
// hundreds of u; 2 u for the half precisions, whose bound is about that.
int NudgeBits(PrecisionClass required);

struct MovedElement {
  int64_t index = 0;
  double moved = 0;  // largest |nudged truth - truth|, over all nudges
};

// The moved elements of one output, collected nudge by nudge. They do not depend on a candidate.
class MovedElements {
 public:
  // `output` has the reference and the oracle, which are read here only.
  MovedElements(const OutputView& output, const CompareRule& rule);
  // Adds one nudge: the truth without it and with it, all elements. Returns false, for good, once
  // too much moves: then nothing is left out.
  bool See(const double* truth, const double* nudged);
  // Ascending by index.
  const std::vector<MovedElement>& elements() const { return elements_; }

 private:
  OutputView view_;  // of nudged truths, as float64
  double limit_ = 0;
  bool too_much_ = false;
  std::vector<MovedElement> elements_;
};

// Returns true if rounding alone may explain an output that CompareWithOracle, with `learned` null,
// fails: the wrong elements are finite and few choices, and the rule is neither exact nor allclose.
bool MayBeRounding(const OutputView& output, const CompareRule& rule);

// Returns CompareWithOracle's conclusion, with `learned` null, without the wrong elements that
// `moved` (by index) explains, and sets `left_out` to their number. Returns nullopt if it does not
// explain every wrong element.
std::optional<OutputComparison> CompareBesideMoved(const OutputView& output,
                                                   const CompareRule& rule,
                                                   std::span<const MovedElement> moved,
                                                   int64_t* left_out);

}  // namespace assay
