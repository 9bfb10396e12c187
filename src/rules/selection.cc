#include "rules/selection.h"

#include <fmt/format.h>

#include <limits>

#include "base/check.h"
#include "rules/elements.h"

namespace assay {
namespace {

int64_t FlatIndex(const std::vector<int64_t>& shape, const std::vector<int64_t>& position) {
  int64_t index = 0;
  for (size_t i = 0; i < shape.size(); ++i) index = index * shape[i] + position[i];
  return index;
}

Mismatch IndicesAt(const OutputView& indices, int64_t element, double share_wrong) {
  return {indices.name,
          Position(indices.shape, element),
          LoadOne(indices.dtype, indices.reference, element),
          LoadOne(indices.dtype, indices.candidate, element),
          share_wrong,
          WholeValues{LoadWhole(indices.dtype, indices.reference, element),
                      LoadWhole(indices.dtype, indices.candidate, element)}};
}

// Indices that stand for no element, or for one that stands there already.
OutputComparison Faulty(const OutputView& indices, const SelectedValues& selected,
                        std::string* hint) {
  OutputComparison result;
  result.shown = PrecisionClass::kExact;
  result.error_ratio = result.max_abs_error = std::numeric_limits<double>::infinity();
  const int64_t faults = selected.out_of_range + selected.repeated;
  result.mismatch = IndicesAt(indices, selected.first_fault,
                              static_cast<double>(faults) / static_cast<double>(indices.count));
  const bool outside = selected.out_of_range > 0;
  *hint = fmt::format("{} of the {} indices {}",
                      outside ? selected.out_of_range : selected.repeated, indices.count,
                      !outside               ? "stand twice along the axis"
                      : selected.has_windows ? "lie outside of their window"
                                             : "are out of range");
  return result;
}

}  // namespace

OutputComparison CompareSelected(const OutputView& indices, const SelectedValues& selected,
                                 const CompareRule& rule, std::string* hint) {
  if (selected.out_of_range + selected.repeated > 0) return Faulty(indices, selected, hint);
  OutputView values;
  values.name = indices.name;
  values.dtype = selected.dtype;
  values.shape = indices.shape;
  values.count = indices.count;
  values.candidate = selected.candidate.data();
  values.reference = selected.reference.data();
  const bool floats = IsFloatingPoint(selected.dtype);
  if (selected.has_truth && floats) values.oracle = selected.truth.data();
  CompareRule of_values = rule;
  // Without a floating-point output the problem asks for exact ones: of indices.
  if (rule.required == PrecisionClass::kExact && floats)
    of_values.required = NativeClass(selected.dtype);
  if (selected.exact) of_values = {PrecisionClass::kExact, std::nullopt};
  OutputComparison result = CompareWithOracle(values, of_values, nullptr);
  if (result.passed) return result;
  ASSAY_CHECK(result.mismatch.has_value());
  const int64_t element = FlatIndex(indices.shape, result.mismatch->index);
  const Mismatch mismatch = IndicesAt(indices, element, result.mismatch->share_wrong);
  *hint = fmt::format(
      "index {} selects {:.6g}, where the right one, {}, selects {:.6g}; equal values may stand in "
      "any order",
      mismatch.got, result.mismatch->got, mismatch.expected, result.mismatch->expected);
  result.mismatch = mismatch;
  return result;
}

}  // namespace assay
