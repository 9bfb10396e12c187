// How large an error each precision class may show. Every constant of gate 1 is here;
// docs/measurement.md derives them and gate1_numerics_test.cc holds them against honest and
// dishonest programs.
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

// No class accepts larger relative errors than this, however badly the reference does.
inline constexpr double kBoundMax = 0.25;

// Above this norm-wise relative error against float64 the reference itself says nothing.
inline constexpr double kReferenceErrorMax = 0.125;

struct ErrorBounds {
  double norm = 0;
  double element = 0;
};

// Bounds that class `precision` allows to an output of dtype class `native` (both floating point,
// `precision` not finer than `native`) with `count` elements, where the reference shows `error`.
// Grows with the class.
ErrorBounds BoundsFor(PrecisionClass precision, PrecisionClass native, const ReferenceError& error,
                      int64_t count);

// The next coarser floating-point class; kBFloat16 has none and returns kExact.
PrecisionClass NextCoarser(PrecisionClass precision);

}  // namespace assay
