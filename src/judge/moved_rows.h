// Rows in which the truth itself moves as far as a candidate is off when inputs change by rounding
// alone: two scores of a steep softmax that are nearly the same, a value at a threshold. There an
// honest program may take the other side than the reference, and whether the reference happens to
// take the right one is luck. Pure.
//
// Theory of operation. A program is called right here if its output is that of inputs which differ
// from the given ones in their last bits (backward error analysis: Higham, Accuracy and Stability
// of Numerical Algorithms, chapter 1). So the truth is computed again for inputs that were nudged,
// each element by a random share of itself up to 2^-NudgeBits, and a row is left out where what the
// candidate is off by is at most kMovedFactor times what the truth moved by.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "judge/gate1.h"

namespace assay {

// Where more rows are wrong, the draw's condition is no accident: reference_factor of error_bounds
// is for that.
inline constexpr size_t kDoubtfulRowsMax = 8;

// Each nudge shows one side of a choice or the other.
inline constexpr int kNudges = 8;

inline constexpr double kMovedFactor = 4;

// Inputs are nudged by up to this power of a half of themselves: 64 u where a class's bound is
// hundreds of u, 2 u in the half precisions, whose bound is that.
int NudgeBits(PrecisionClass required);

struct MovedRow {
  int64_t begin = 0, count = 0;  // elements of the output
  double moved = 0;              // largest |nudged truth - truth| of an element, over all nudges
};

// Rows with elements that CompareWithOracle, with `learned` null, calls wrong. Empty where rounding
// cannot be all there is to it: NaN or an infinity stands wrongly, too many rows are wrong, the sum
// of small errors is, or the rule is another one (exact, allclose).
std::vector<MovedRow> DoubtfulRows(const OutputView& output, const CompareRule& rule);

// Raises `moved` of each row by what a nudged truth differs from the truth, both of all elements.
void SeeMoved(const double* truth, const double* nudged, std::span<MovedRow> rows);

// CompareWithOracle's conclusion, with `learned` null, once rows are left out whose error `moved`
// explains; nothing where it does not explain each row that is wrong. `left_out` is set to their
// number.
std::optional<OutputComparison> CompareBesideMoved(const OutputView& output,
                                                   const CompareRule& rule,
                                                   std::span<const MovedRow> moved,
                                                   int64_t* left_out);

}  // namespace assay
