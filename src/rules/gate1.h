// Gate 1, correctness: errors of a candidate's outputs against the float64 oracle, held against the
// reference's own errors. Pure: views in, conclusions out. Every comparison is written so that NaN
// fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/dtype.h"
#include "model/verdict.h"

namespace assay {

// allclose as KernelBench has it: |y - y_ref| <= absolute + relative * |y_ref|.
struct AllClose {
  double absolute = 0;
  double relative = 0;
};
// Parses "allclose:1e-4" (both tolerances) or "error-ratio" (nullopt inside). Errors (kUsage).
Result<std::optional<AllClose>> ParseTolerance(std::string_view text);

struct CompareRule {
  // Class that the candidate must meet; one finer than the output's own dtype stands for that
  // dtype's, and kExact asks floating-point outputs to equal the reference's.
  PrecisionClass required = PrecisionClass::kFloat32;
  std::optional<AllClose> allclose;  // set: the only rule, against the reference's native output
};

// One output of one call; all buffers are contiguous and hold the same elements.
struct OutputView {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  int64_t count = 0;
  const void* candidate = nullptr;
  const void* reference = nullptr;  // native dtype
  // float64; null for exact dtypes, timed calls, or where float64 is unsupported.
  const double* oracle = nullptr;
};

// How far the reference itself is from float64, learned on ordinary draws and carried to timed
// calls.
struct ReferenceError {
  double norm_relative = 0;  // max over draws of ||y_ref - y64|| / ||y64||
  // max over draws and elements of |y_ref - y64| / (scale of the element's row + |y64|)
  double element_relative = 0;
};

struct OutputComparison {
  bool passed = false;
  // Worst of the norm's and the elements' error over its bound; up to 1 passes; may be inf. For
  // outputs that pass CompareWithReference an upper estimate.
  double error_ratio = 0;
  double max_abs_error = 0;  // against the oracle where there is one, else against the reference
  PrecisionClass shown = PrecisionClass::kBFloat16;  // finest class whose bounds the errors meet
  // False: `shown` says nothing, the errors are beyond every class (or, in timed calls under
  // allclose, were not looked at).
  bool meets_a_class = false;
  std::optional<Mismatch> mismatch;  // when failed
};

// Gate 1's draws. `learned` (may be null) is raised to this draw's reference error, and the bound
// then counts what earlier draws of the same kind showed: pass null for draws of another kind.
OutputComparison CompareWithOracle(const OutputView& output, const CompareRule& rule,
                                   ReferenceError* learned);
// The element error from which it calls an element wrong on a draw by itself (`learned` null). For
// outputs with an oracle, under a rule that is neither exact nor allclose.
double ElementLimitWithOracle(const OutputView& output, const CompareRule& rule);
// Timed calls, and problems without a float64 oracle: the reference's native output is the expected
// value; the bound adds the reference's own error. Fast: one pass that runs at memory speed for
// outputs that pass.
OutputComparison CompareWithReference(const OutputView& output, const CompareRule& rule,
                                      const ReferenceError& error);

struct MeasuredErrors;  // error_scan.h
// For outputs that are scanned where they lie, on a device, and not here: the element limit of that
// scan (ScanErrorsCheaply's; 0 for exact dtypes, whose bytes must agree), or nothing where the rule
// wants to see every element.
std::optional<double> CheapScanLimit(const OutputView& output, const CompareRule& rule,
                                     const ReferenceError& error);
// What CompareWithReference concludes where such a scan settles it; nothing where it must look.
std::optional<OutputComparison> ConcludeCheaply(const OutputView& output, const CompareRule& rule,
                                                const ReferenceError& error,
                                                const MeasuredErrors& cheap);

// What CompareWithOracle says, without naming an element where it fails, by ScanErrors' measures;
// raises `learned` like it. Nothing where the rule wants to see every element.
std::optional<OutputComparison> RateWithOracle(const OutputView& output, const CompareRule& rule,
                                               ReferenceError* learned,
                                               const MeasuredErrors& measured);
// The same where it passes; else nothing: it must look.
std::optional<OutputComparison> ConcludeWithOracle(const OutputView& output,
                                                   const CompareRule& rule, ReferenceError* learned,
                                                   const MeasuredErrors& measured);
// Whether the reference's own errors are small enough for a draw to say something.
bool IsUsable(const ReferenceError& error);

// False when this draw says nothing: the reference's native output is NaN or infinite where float64
// is finite, or (special_values false) float64 itself is not finite somewhere, or the reference is
// so far off that its own copy could fail. `reason` says which.
bool DrawIsMeaningful(const OutputView& output, bool special_values, std::string* reason);

// What a failing output looks like, in one sentence for its author, from the pattern of wrong
// elements.
struct InputView {
  std::string name;
  DType dtype = DType::kFloat32;
  int64_t count = 0;
  const void* data = nullptr;
};
struct HintContext {
  std::string draw_kind;         // "ordinary", "large-offset"...
  bool ordinary_passed = false;  // the candidate is right on ordinary draws
  const void* poison = nullptr;  // the bytes that the output held before the call, or null
  std::vector<InputView> inputs;
};
// "only the last 3 columns are wrong: a boundary"; "every second row"; "all NaN"; "equals its input
// x"; "never written"; "off by a factor of 2.000"; "right on ordinary values, wrong on large
// offsets: cancellation"; never empty.
std::string FailureHint(const OutputView& output, const OutputComparison& comparison,
                        const HintContext& context);

}  // namespace assay
