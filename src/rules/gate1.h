// Gate 1, correctness: compares a candidate's errors against the float64 oracle with the
// reference's own errors. Pure: views in, conclusions out. Every comparison is written so that NaN
// fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/dtype.h"
#include "model/verdict.h"

namespace assay {

// KernelBench's allclose: |y - y_ref| <= absolute + relative * |y_ref|.
struct AllClose {
  double absolute = 0;
  double relative = 0;
};
// Parses "allclose:1e-4" (both tolerances) or "error-ratio" (nullopt inside). Errors (kUsage): any
// other text.
Result<std::optional<AllClose>> ParseTolerance(std::string_view text);

struct CompareRule {
  // Class that the candidate must meet. A class finer than the output's dtype stands for the
  // dtype's own; kExact asks floating-point outputs to equal the reference's.
  PrecisionClass required = PrecisionClass::kFloat32;
  std::optional<AllClose> allclose;  // if set: the only rule, against the reference's native output
  bool special_values = false;       // right on NaN and infinities, too
};

// One output of one call; all buffers are contiguous and hold the same elements.
struct OutputView {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  int64_t count = 0;
  const void* candidate = nullptr;
  const void* reference = nullptr;  // native dtype
  // float64; null for exact dtypes, for timed calls, and where float64 is unsupported
  const double* oracle = nullptr;
  // root mean square on ordinary draws, for outputs whose truth is zero everywhere; 0: unknown
  double ordinary_scale = 0;
};

// The reference's own error against float64, learned on ordinary draws and applied to timed calls.
struct ReferenceError {
  double norm_relative = 0;  // max over draws of ||y_ref - y64|| / ||y64||
  // max over draws and elements of |y_ref - y64| / (scale of the element's row + |y64|)
  double element_relative = 0;
  double root_mean_square = 0;  // max over draws of y64's, NaN and infinities counted as 0
};
// Raises each measure of `learned` to that of another draw, where that is finite.
void RaiseTo(const ReferenceError& seen, ReferenceError* learned);

struct OutputComparison {
  bool passed = false;
  // The larger of norm error / bound and element error / bound; up to 1 passes; may be infinite. An
  // upper estimate for outputs that pass CompareWithReference.
  double error_ratio = 0;
  double max_abs_error = 0;  // against the oracle where there is one, else against the reference
  PrecisionClass shown = PrecisionClass::kBFloat16;  // finest class whose bounds the errors meet
  // False: `shown` has no meaning, as the errors exceed every class, or allclose in timed calls did
  // not look at classes.
  bool meets_a_class = false;
  std::optional<Mismatch> mismatch;  // if failed
};

// Compares an output of one of gate 1's draws. Raises `learned` (may be null) to this draw's
// reference error and takes the bound from it, so that earlier draws of the same kind count. Pass
// null for draws of another kind.
OutputComparison CompareWithOracle(const OutputView& output, const CompareRule& rule,
                                   ReferenceError* learned);
// Returns the element error above which CompareWithOracle, with `learned` null, calls an element
// wrong. Needs an output with an oracle and a rule that is neither exact nor allclose.
double ElementLimitWithOracle(const OutputView& output, const CompareRule& rule);
// Compares with the reference's native output, for timed calls and for problems without a float64
// oracle. The bound adds the reference's own error. Outputs that pass take one pass at memory
// speed.
OutputComparison CompareWithReference(const OutputView& output, const CompareRule& rule,
                                      const ReferenceError& error);

struct MeasuredErrors;  // error_scan.h
// Returns the element limit for a cheap scan of an output on the device (as ScanErrorsCheaply's; 0
// for exact dtypes, whose bytes must agree). Returns nullopt if the rule needs a look at every
// element.
std::optional<double> CheapScanLimit(const OutputView& output, const CompareRule& rule,
                                     const ReferenceError& error);
// Returns CompareWithReference's conclusion if the cheap scan settles it, otherwise nullopt:
// compare every element.
std::optional<OutputComparison> ConcludeCheaply(const OutputView& output, const CompareRule& rule,
                                                const ReferenceError& error,
                                                const MeasuredErrors& cheap);

// Returns the same from ScanErrors' measures against the reference, if it passes; otherwise
// nullopt.
std::optional<OutputComparison> ConcludeWithReference(const OutputView& output,
                                                      const CompareRule& rule,
                                                      const ReferenceError& error,
                                                      const MeasuredErrors& measured);

// Returns CompareWithOracle's conclusion from ScanErrors' measures, without naming an element in a
// failure. Raises `learned` likewise. Returns nullopt if the rule needs a look at every element.
std::optional<OutputComparison> RateWithOracle(const OutputView& output, const CompareRule& rule,
                                               ReferenceError* learned,
                                               const MeasuredErrors& measured);
// Returns the same result if it passes, otherwise nullopt: compare every element.
std::optional<OutputComparison> ConcludeWithOracle(const OutputView& output,
                                                   const CompareRule& rule, ReferenceError* learned,
                                                   const MeasuredErrors& measured);
// Returns true if the reference's own errors are small enough for a draw to judge a candidate.
bool IsUsable(const ReferenceError& error);

// Returns false if this draw cannot judge a candidate: the reference's native output is NaN or
// infinite where float64 is finite; or float64 itself is not finite somewhere (allowed with
// `special_values`); or the reference is so far off that a copy of it could fail. `reason` says
// which.
bool DrawIsMeaningful(const OutputView& output, bool special_values, std::string* reason);
// Returns in words how far off the reference's own output is from float64; empty if it IsUsable().
std::string OffFromFloat64(const ReferenceError& error, const std::string& output);
// Returns how many elements of the reference's output are numbers: neither NaN nor infinite.
int64_t CountNumbers(const OutputView& output);

// How far float32, or the finest class of an output, scatters the reference's outputs on ordinary
// draws, where that hides mistakes.
struct Scatter {
  std::string words;         // empty: it does not
  bool meaningless = false;  // it hides them on ordinary draws, not only on others and in its state
};
Scatter ScatterOf(std::span<const ReferenceError> errors, PrecisionClass native);

// One of the inputs of a failing call, for its hint.
struct InputView {
  std::string name;
  DType dtype = DType::kFloat32;
  int64_t count = 0;
  const void* data = nullptr;
  int64_t inner = 0;  // elements along the last dimension
};
struct HintContext {
  std::string draw_kind;         // "ordinary", "large-offset"...
  bool ordinary_passed = false;  // the candidate is right on ordinary draws
  const void* poison = nullptr;  // the bytes that the output held before the call, or null
  std::vector<InputView> inputs;
};
// The kind of a mistake, and the sentence about it for the candidate's author.
struct Hint {
  std::string text;
  Mistake mistake = Mistake::kOther;
  // A coarser class whose bounds the errors of this call meet, where the text says so.
  std::optional<PrecisionClass> fits = std::nullopt;
};
// Describes a failing output in one sentence for its author, from the pattern of wrong elements:
// "only the last 3 columns are wrong: a boundary"; "every second row"; "all NaN"; "equals its input
// x"; "never written"; "off by a factor of 2.000"; "right on ordinary values, wrong on large
// offsets: cancellation". Never empty, nor kNone.
Hint FailureHint(const OutputView& output, const OutputComparison& comparison,
                 const HintContext& context);

}  // namespace assay
