// Measures the errors of one output. A precise scan handles every output; a cheap one runs at
// memory speed and measures well-behaved outputs only. Pure; error_bounds.h defines the two
// measures.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "rules/gate1.h"

namespace assay {

struct MeasuredErrors {
  // ||y - truth|| / ||truth||. Where the truth is 0, 1/32 of the ordinary scale stands for each of
  // its elements; where that is unknown, any other y is infinitely far.
  double norm = 0;
  double element = 0;        // largest |y - truth| / (scale + |truth|)
  double max_abs = 0;        // infinite if a NaN or an infinity is in a wrong place
  bool kinds_agree = true;   // NaN where NaN is expected, the same infinities, finite elsewhere
  int64_t worst_index = -1;  // the element with the error `element`
  ReferenceError reference;  // the reference's own errors, if there is an oracle
};

// Measures against the oracle if there is one, otherwise against the reference. Sums leave out NaN
// and infinities that agree. Differences up to one denormal spacing of the dtype count as zero.
MeasuredErrors ScanErrors(const OutputView& output);

// Returns the root mean square from which on denormals do not matter to an output.
double ScaleAboveDenormals(DType dtype);

// Measures against the reference. Results are upper estimates: `element` divides by the row's scale
// alone, except in rows where that exceeds `element_limit`. Returns nullopt if the output is not
// clearly within the limit, or holds NaN or infinities.
std::optional<MeasuredErrors> ScanErrorsCheaply(const OutputView& output, double element_limit);

// Returns the largest |y - reference| / (absolute + relative * |reference|) as `element`. Equal
// infinities count as no error, and so does a NaN where the reference has one; any other NaN counts
// as an infinite one.
MeasuredErrors ScanAllClose(const OutputView& output, const AllClose& tolerance);

// Calls `visit(index, got, expected)` for each wrong element, in index order. An element is wrong
// if it is of another kind (NaN, infinity) than the truth, or its element error exceeds
// `element_limit`. `visit` returns false to stop.
using WrongVisitor = std::function<bool(int64_t index, double got, double expected)>;
void VisitWrong(const OutputView& output, double element_limit, const WrongVisitor& visit);
void VisitNotClose(const OutputView& output, const AllClose& tolerance, const WrongVisitor& visit);
// For exact dtypes: visits elements that differ from the reference, and bool bytes other than 0 and
// 1.
void VisitInexact(const OutputView& output, const WrongVisitor& visit);

}  // namespace assay
