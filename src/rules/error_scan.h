// Measuring the errors of one output: a precise scan that handles everything, and a cheap one at
// memory speed that either measures a well-behaved output or says that it cannot. Pure;
// error_bounds.h defines the two measures.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "rules/gate1.h"

namespace assay {

struct MeasuredErrors {
  double norm = 0;           // ||y - truth|| / ||truth||; infinite where truth is 0 and y is not
  double element = 0;        // largest |y - truth| / (scale + |truth|)
  double max_abs = 0;        // infinite where a NaN or an infinity stands wrongly
  bool kinds_agree = true;   // NaN where NaN is expected, the same infinities, finite elsewhere
  int64_t worst_index = -1;  // of `element`
  ReferenceError reference;  // the same measures of the reference, where there is an oracle
};

// Truth is the oracle if there is one, else the reference. NaN and infinities that agree are left
// out of the sums. Differences up to one denormal spacing of the dtype count as none.
MeasuredErrors ScanErrors(const OutputView& output);

// Outputs whose root mean square is not below this feel nothing of denormals.
double ScaleAboveDenormals(DType dtype);

// Truth is the reference. Upper estimates: `element` divides by the row's scale alone except in
// rows where that goes beyond `element_limit`. Nothing when the output is not plainly within it, or
// holds NaN or infinities.
std::optional<MeasuredErrors> ScanErrorsCheaply(const OutputView& output, double element_limit);

// Largest |y - reference| / (absolute + relative * |reference|); equal infinities count as no
// error, NaN as infinite.
MeasuredErrors ScanAllClose(const OutputView& output, const AllClose& tolerance);

// Calls `visit(index, got, expected)` for each element that is wrong, in index order: of another
// kind (NaN, infinity) than the truth, or with an element error above `element_limit`. `visit`
// returns false to stop.
using WrongVisitor = std::function<bool(int64_t index, double got, double expected)>;
void VisitWrong(const OutputView& output, double element_limit, const WrongVisitor& visit);
void VisitNotClose(const OutputView& output, const AllClose& tolerance, const WrongVisitor& visit);
// Exact dtypes: elements that differ from the reference, and bool bytes other than 0 and 1.
void VisitInexact(const OutputView& output, const WrongVisitor& visit);

}  // namespace assay
