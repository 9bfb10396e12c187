// Bounds the error of each precision class. Every constant of gate 1 is here; docs/measurement.md
// derives them and gate1_numerics_test.cc holds them against honest and dishonest programs.
//
// Theory of operation. Errors are measured in two ways. Over the whole output: ||y - truth|| /
// ||truth||. And for each element: |y - truth| / (scale + |truth|), where scale is the root mean
// square of the element's row (but no less than 1/32 of the whole output's). Each may reach
//     factor * u + reference_factor * (the same measure of the reference's own error),
// with u the unit roundoff of the class.
#pragma once

#include <cstdint>

#include "model/dtype.h"
#include "rules/gate1.h"

namespace assay {

// A row's scale is at least this share of the whole output's root mean square, so that a row whose
// true values are all zero may hold errors that are rounding at the scale of its neighbours.
inline constexpr double kRowScaleFloor = 1.0 / 32;

// No class accepts larger relative errors than this, however badly the reference does, but at
// elements of scattered outputs.
inline constexpr double kBoundMax = 0.25;

// A reference with a larger norm-wise relative error against float64 cannot judge anything.
inline constexpr double kReferenceErrorMax = 0.125;

// A reference that is norm-wise off by more, and by more than 64 units of roundoff, tells mistakes
// from rounding on ordinary draws alone. Rounding moves each of its elements then: batch norms of
// two values return 1 or -1 by the sign of their difference.
inline constexpr double kScatteredFrom = 0.01, kScatteredFromRoundoffs = 64;

// Elements of such an output may be off by this, within its norm's kBoundMax: a copy's are, now and
// then. A row of zeros has elements that are off by more.
inline constexpr double kScatteredElementMax = 0.5;

// With a larger error on ordinary draws, and more than those units, not even these tell.
inline constexpr double kScatteredMax = 0.03;

// Whether a reference of class `native` is scattered by this norm-wise error.
bool IsScattered(double norm_relative, PrecisionClass native);

struct ErrorBounds {
  double norm = 0;
  double element = 0;
};

// Returns the bounds that class `precision` allows to an output of dtype class `native` with
// `count` elements, where the reference shows `error`. Both classes are floating point, and
// `precision` is not finer than `native`. Coarser classes have wider bounds.
ErrorBounds BoundsFor(PrecisionClass precision, PrecisionClass native, const ReferenceError& error,
                      int64_t count);

// Returns the next coarser floating-point class; for kBFloat16, which has none, kExact.
PrecisionClass NextCoarser(PrecisionClass precision);

}  // namespace assay
