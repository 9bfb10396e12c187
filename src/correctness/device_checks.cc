#include "correctness/device_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "rules/error_scan.h"

namespace assay {
namespace {

using wire::ArgumentSpec;
using wire::Role;

struct Output {
  const ArgumentSpec* spec;
  OutputView view;  // without addresses
};

std::vector<Output> OutputsOf(const wire::Plan& plan) {
  std::vector<Output> outputs;
  for (uint32_t i = 0; i < plan.argument_count; ++i)
    if (plan.arguments[i].role == Role::kOutput)
      outputs.push_back({&plan.arguments[i], ViewOf(plan.arguments[i])});
  return outputs;
}

// Outputs up to this size are looked at whole on the host, larger ones in parts of about that size.
constexpr uint64_t kWholeBytesMax = uint64_t{128} << 20, kPartBytes = uint64_t{32} << 20;

// One output of one call that is being compared.
struct Part {
  size_t call, output;
};

void Add(const OutputComparison& result, const OutputView& view, CallCheck* check) {
  check->error_ratio = std::max(check->error_ratio, result.error_ratio);
  check->max_abs_error = std::max(check->max_abs_error, result.max_abs_error);
  if (IsFloatingPoint(view.dtype) && result.meets_a_class)
    check->shown = std::max(check->shown, result.shown);
}

MeasuredErrors ErrorsOf(const JudgeKernels::Measured& measured) {
  MeasuredErrors errors;
  errors.norm = measured.norm;
  errors.element = measured.element;
  errors.max_abs = measured.max_abs;
  errors.kinds_agree = measured.kinds_agree;
  errors.reference = {measured.reference_norm, measured.reference_element,
                      measured.root_mean_square};
  return errors;
}

// The device's kernels read float32, float16 and bfloat16 against float64.
bool DeviceMeasures(DType dtype) {
  return dtype != DType::kFloat64 && NativeClass(dtype) != PrecisionClass::kFloat8;
}

bool FeelsDenormals(const JudgeKernels::Measured& measured, DType dtype) {
  return measured.root_mean_square < ScaleAboveDenormals(dtype);
}

// What is to be compared of a block's calls, and what comes of it.
class Checks {
 public:
  Checks(const Oracle& oracle, std::span<const CheckedCall> calls, const CompareRule& rule,
         std::vector<Output> outputs)
      : oracle_(oracle),
        calls_(calls),
        rule_(rule),
        outputs_(std::move(outputs)),
        checks_(calls.size(), CallCheck{}) {
    for (size_t call = 0; call < calls.size(); ++call)
      for (size_t output = 0; output < outputs_.size(); ++output)
        if (!Place(call, output)) checks_[call].reset();
  }

  std::vector<std::optional<CallCheck>> Run(const LiveSlots& live, const HostOutputs& outputs) {
    if (const auto compared = live.Compare(oracle_, outputs, native_))
      for (size_t i = 0; i < native_.size(); ++i)
        Conclude(native_parts_[i], native_[i], (*compared)[i]);
    else
      checks_.assign(checks_.size(), std::nullopt);
    if (const auto measured = live.CompareWithTruth(oracle_, outputs, measured_))
      for (size_t i = 0; i < measured_.size(); ++i)
        Conclude(measured_parts_[i], measured_[i].has_truth, (*measured)[i]);
    else
      checks_.assign(checks_.size(), std::nullopt);
    return std::move(checks_);
  }

 private:
  // False: the host must look at this output.
  bool Place(size_t call, size_t output) {
    const auto& [spec, view] = outputs_[output];
    const CheckedCall& checked = calls_[call];
    if (view.count == 0 || NativeClass(view.dtype) == PrecisionClass::kFloat8) return false;
    if (checked.float64 && oracle_.description().float64_supported && IsFloatingPoint(view.dtype)) {
      if (!DeviceMeasures(view.dtype)) return false;
      measured_.push_back({spec, checked.slot, checked.master, 0});
      measured_parts_.push_back({call, output});
      return true;
    }
    const auto limit = CheapScanLimit(view, rule_, checked.errors[output]);
    if (!limit) return false;
    native_.push_back({spec, checked.slot, checked.master, *limit});
    native_parts_.push_back({call, output});
    return true;
  }

  void Settle(Part part, const std::optional<OutputComparison>& result) {
    std::optional<CallCheck>& check = checks_[part.call];
    if (!result) check.reset();
    if (check) Add(*result, outputs_[part.output].view, &*check);
  }

  // An output that the cheap scan does not settle is measured element by element.
  void Conclude(Part part, DeviceSlots::PlacedOutput placed,
                const JudgeKernels::Compared& compared) {
    const OutputView& view = outputs_[part.output].view;
    MeasuredErrors errors;
    errors.norm = compared.norm;
    errors.element = compared.element;
    errors.max_abs = compared.max_abs;
    const auto result =
        compared.within
            ? ConcludeCheaply(view, rule_, calls_[part.call].errors[part.output], errors)
            : std::nullopt;
    if (result || !IsFloatingPoint(view.dtype) || !DeviceMeasures(view.dtype))
      return Settle(part, result);
    placed.has_truth = false;
    measured_.push_back(placed);
    measured_parts_.push_back(part);
  }

  void Conclude(Part part, bool has_truth, const JudgeKernels::Measured& measured) {
    const OutputView& view = outputs_[part.output].view;
    if (DenormalsDecide(measured, view.dtype)) return Settle(part, std::nullopt);
    ReferenceError learned = calls_[part.call].errors[part.output];
    if (!has_truth)
      return Settle(part, ConcludeWithReference(view, rule_, learned, ErrorsOf(measured)));
    Settle(part, ConcludeWithOracle(view, rule_, calls_[part.call].ordinary ? &learned : nullptr,
                                    ErrorsOf(measured)));
  }

  const Oracle& oracle_;
  std::span<const CheckedCall> calls_;
  const CompareRule& rule_;
  std::vector<Output> outputs_;
  std::vector<std::optional<CallCheck>> checks_;
  std::vector<DeviceSlots::PlacedOutput> native_, measured_;
  std::vector<Part> native_parts_, measured_parts_;
};

}  // namespace

std::vector<WrongRows> PartsOf(const ArgumentSpec& output, size_t number) {
  uint32_t leading = 1;
  int64_t rows = output.shape[0];
  while (leading + 1 < output.rank && output.size_bytes / static_cast<uint64_t>(rows) > kPartBytes)
    rows *= output.shape[leading++];
  const uint64_t row_bytes = output.size_bytes / static_cast<uint64_t>(rows);
  const auto step = static_cast<int64_t>(std::max<uint64_t>(1, kPartBytes / row_bytes));
  ArgumentSpec part = output;
  part.rank = output.rank - leading + 1;
  std::copy(output.shape + leading, output.shape + output.rank, part.shape + 1);
  std::vector<WrongRows> parts;
  for (int64_t row = 0; row < rows; row += step) {
    const auto first = static_cast<uint64_t>(row);
    part.shape[0] = std::min(step, rows - row);
    part.size_bytes = static_cast<uint64_t>(part.shape[0]) * row_bytes;
    part.offset = output.offset + first * row_bytes;
    part.oracle_offset = output.oracle_offset +
                         first * (row_bytes / wire::ElementBytes(output.dtype)) * sizeof(double);
    parts.push_back({part, number, leading, row});
  }
  return parts;
}

std::vector<int64_t> IndexInOutput(const WrongRows& wrong, const ArgumentSpec& output,
                                   std::vector<int64_t> index) {
  int64_t row = index.at(0) + wrong.first_row;
  std::vector<int64_t> leading(wrong.leading);
  for (size_t i = wrong.leading; i-- > 0; row /= output.shape[i])
    leading[i] = row % output.shape[i];
  leading.insert(leading.end(), index.begin() + 1, index.end());
  return leading;
}

bool DenormalsDecide(const JudgeKernels::Measured& measured, DType dtype) {
  const bool exact = measured.kinds_agree && measured.norm == 0 && measured.element == 0;
  return !exact && FeelsDenormals(measured, dtype);
}

std::vector<std::optional<CallCheck>> CheckWhereTheyLie(const Oracle& oracle, const LiveSlots& live,
                                                        const HostOutputs& outputs,
                                                        std::span<const CheckedCall> calls,
                                                        const CompareRule& rule) {
  if (!live.on_device() || oracle.description().own_check) return {};
  return Checks(oracle, calls, rule, OutputsOf(oracle.plan())).Run(live, outputs);
}

std::optional<WrongRows> FindWrongRows(const Oracle& oracle, const LiveSlots& live,
                                       const HostOutputs& outputs, const CheckedCall& call,
                                       const CompareRule& rule) {
  if (!live.on_device() || oracle.description().own_check ||
      oracle.plan().output_stride <= kWholeBytesMax)
    return std::nullopt;
  size_t number = 0;
  for (const auto& [spec, view] : OutputsOf(oracle.plan())) {
    if (!IsFloatingPoint(spec->dtype) || spec->rank == 0 || spec->size_bytes == 0)
      return std::nullopt;
    CheckedCall of_output = call;
    of_output.errors = call.errors.subspan(number, 1);
    for (const WrongRows& part : PartsOf(*spec, number)) {
      const auto checks = Checks(oracle, {&of_output, 1}, rule, {{&part.rows, ViewOf(part.rows)}})
                              .Run(live, outputs);
      if (!checks.front()) return part;
    }
    ++number;
  }
  return std::nullopt;
}

bool InputsFailPlainly(const Oracle& oracle, uint32_t master, const CompareRule& rule) {
  constexpr double kPlainly = 2;
  if (!oracle.on_device() || !oracle.description().float64_supported ||
      oracle.description().own_check)
    return false;
  for (const auto& [spec, view] : OutputsOf(oracle.plan())) {
    if (!wire::IsChangedInput(*spec) || !IsFloatingPoint(view.dtype) || view.count == 0 ||
        !DeviceMeasures(view.dtype))
      continue;
    const cuda::Pointer before =
        oracle.device_inputs(master) + oracle.plan().arguments[spec->twin - 1].offset;
    const auto measured = oracle.Measure(*spec, before, master);
    if (!measured || FeelsDenormals(*measured, view.dtype)) continue;
    const auto rated = RateWithOracle(view, rule, nullptr, ErrorsOf(*measured));
    if (rated && rated->error_ratio > kPlainly) return true;
  }
  return false;
}

std::optional<ReferenceOnDraw> ReferenceWhereItLies(const Oracle& oracle, uint32_t master,
                                                    wire::DrawKind kind, bool special_values) {
  if (!oracle.on_device() || !oracle.description().float64_supported) return std::nullopt;
  const bool learns = kind == wire::DrawKind::kOrdinary || kind == wire::DrawKind::kSigns;
  ReferenceOnDraw found;
  for (const auto& [spec, view] : OutputsOf(oracle.plan())) {
    ReferenceError& error = found.errors.emplace_back();
    if (!IsFloatingPoint(view.dtype)) continue;
    if (view.count == 0 || !DeviceMeasures(view.dtype)) return std::nullopt;
    const auto measured =
        oracle.Measure(*spec, oracle.device_outputs(master) + spec->offset, master);
    if (!measured) return std::nullopt;
    error = {measured->reference_norm, measured->reference_element, measured->root_mean_square};
    // Errors without regard to denormals are at least as large as those with it.
    const bool denormals = FeelsDenormals(*measured, view.dtype);
    if (!measured->truth_is_finite && !special_values)
      found.reason =
          fmt::format("the reference gives NaN or infinities in {} even in float64", view.name);
    else if (!measured->reference_kinds_agree)
      found.reason = fmt::format(
          "the reference gives NaN or infinities in {} where float64 gives others", view.name);
    else if (!IsUsable(error) && denormals)
      return std::nullopt;
    else
      found.reason = OffFromFloat64(error, view.name);
    if (learns && denormals) return std::nullopt;
    if (kind == wire::DrawKind::kOrdinary && !found.reason.empty()) return std::nullopt;
    if (!found.reason.empty()) return found;
  }
  return found;
}

}  // namespace assay
