#include "correctness/call_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>

#include "base/defences.h"
#include "correctness/device_checks.h"
#include "correctness/own_check.h"
#include "hosts/blame.h"
#include "rules/moved_elements.h"
#include "rules/selection.h"
#include "values/draw_kinds.h"
#include "values/slot_layout.h"

namespace assay {

using wire::ArgumentSpec;
using wire::DrawKind;
using wire::Role;

namespace {

std::vector<int64_t> Shape(const ArgumentSpec& argument) {
  return {argument.shape, argument.shape + argument.rank};
}

int64_t Count(const ArgumentSpec& argument) {
  const uint32_t element =
      argument.kind == wire::Kind::kTensor ? wire::ElementBytes(argument.dtype) : 8;
  return static_cast<int64_t>(argument.size_bytes / element);
}

std::vector<InputView> Inputs(const Oracle& oracle, uint32_t master) {
  std::vector<InputView> views;
  const wire::Plan& plan = oracle.plan();
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const ArgumentSpec& argument = plan.arguments[i];
    if (argument.role != Role::kInput || argument.kind != wire::Kind::kTensor) continue;
    views.push_back({argument.name, argument.dtype, Count(argument),
                     oracle.inputs(master) + argument.offset,
                     argument.rank > 0 ? argument.shape[argument.rank - 1] : 1});
  }
  return views;
}

std::string HintAboutUntouched(std::string_view input) {
  return fmt::format(
      "it leaves {0} as it was: the reference's forward changes its input {0} in place, and so "
      "must the candidate",
      input);
}

// Why output number `index` is wrong if it is a changed input that was not touched; else nothing.
std::string HintAboutUntouched(const Oracle& oracle, const std::byte* written, uint32_t master,
                               size_t index) {
  const wire::Plan& plan = oracle.plan();
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const ArgumentSpec& output = plan.arguments[i];
    if (output.role != Role::kOutput || index-- != 0) continue;
    if (!wire::IsChangedInput(output)) return {};
    const ArgumentSpec& input = plan.arguments[output.twin - 1];
    if (std::memcmp(written + output.offset, oracle.inputs(master) + input.offset,
                    output.size_bytes) != 0)
      return {};
    return HintAboutUntouched(input.name);
  }
  return {};
}

const ArgumentSpec* OutputOf(const wire::Plan& plan, size_t number) {
  const ArgumentSpec* output = nullptr;
  ForEachOutput(plan, [&](const ArgumentSpec& each) {
    if (number-- == 0) output = &each;
  });
  return output;
}

// The rows of a call's output on the host, with those of the inputs beside them.
class RowsOnHost {
 public:
  RowsOnHost(const Oracle& oracle, const LiveSlots& live, const HostOutputs& outputs,
             const CheckedCall& call, const WrongRows& wrong)
      : written_(wrong.rows.size_bytes), expected_(wrong.rows.size_bytes) {
    const ArgumentSpec& rows = wrong.rows;
    live.Read(outputs, call.slot, rows.offset, written_);
    oracle.Read(wire::Region::kOutputs, call.master, rows.offset, expected_);
    view_ = ViewOf(rows);
    view_.candidate = written_.data();
    view_.reference = expected_.data();
    view_.ordinary_scale = call.errors[wrong.output].root_mean_square;
    if (call.float64 && oracle.description().float64_supported) {
      truth_.resize(static_cast<size_t>(view_.count));
      oracle.Read(wire::Region::kOracle, call.master, rows.oracle_offset,
                  std::as_writable_bytes(std::span(truth_)));
      view_.oracle = truth_.data();
    }
    ReadInputs(oracle, call.master, wrong);
  }

  const OutputView& view() const { return view_; }
  const std::vector<InputView>& inputs() const { return inputs_; }
  // The output is an input that is changed in place, and these rows of it are as they were.
  bool untouched() const { return untouched_; }

 private:
  void ReadInputs(const Oracle& oracle, uint32_t master, const WrongRows& wrong) {
    const wire::Plan& plan = oracle.plan();
    const ArgumentSpec* output = OutputOf(plan, wrong.output);
    for (uint32_t i = 0; i < plan.argument_count; ++i) {
      const ArgumentSpec& input = plan.arguments[i];
      if (input.role != Role::kInput || input.kind != wire::Kind::kTensor ||
          input.rank < wrong.leading || input.size_bytes == 0 ||
          !std::equal(input.shape, input.shape + wrong.leading, output->shape))
        continue;
      const auto rows = std::accumulate(
          input.shape, input.shape + wrong.leading, uint64_t{1},
          [](uint64_t count, int64_t size) { return count * static_cast<uint64_t>(size); });
      const uint64_t row_bytes = input.size_bytes / rows;
      std::vector<std::byte>& bytes =
          read_.emplace_back(static_cast<uint64_t>(wrong.rows.shape[0]) * row_bytes);
      oracle.Read(wire::Region::kInputs, master,
                  input.offset + static_cast<uint64_t>(wrong.first_row) * row_bytes, bytes);
      inputs_.push_back({input.name, input.dtype,
                         static_cast<int64_t>(bytes.size() / wire::ElementBytes(input.dtype)),
                         bytes.data(), input.shape[input.rank - 1]});
      untouched_ = untouched_ ||
                   (wire::IsChangedInput(*output) && output->twin == i + 1 && bytes == written_);
    }
  }

  std::vector<std::byte> written_, expected_;
  std::vector<double> truth_;
  OutputView view_;
  std::deque<std::vector<std::byte>> read_;
  std::vector<InputView> inputs_;
  bool untouched_ = false;
};

bool IsInteger(DType dtype) { return !IsFloatingPoint(dtype) && dtype != DType::kBool; }

}  // namespace

OutputView ViewOf(const ArgumentSpec& argument) {
  OutputView view;
  view.name = argument.name;
  view.dtype = argument.dtype;
  view.shape = Shape(argument);
  view.count = Count(argument);
  return view;
}

std::vector<OutputView> OutputViews(const Oracle& oracle, uint32_t master,
                                    const std::byte* candidate, bool float64) {
  std::vector<OutputView> views;
  const wire::Plan& plan = oracle.plan();
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const ArgumentSpec& argument = plan.arguments[i];
    if (argument.role != Role::kOutput) continue;
    OutputView view = ViewOf(argument);
    view.reference = oracle.outputs(master) + argument.offset;
    view.candidate = candidate != nullptr ? candidate + argument.offset : view.reference;
    if (float64 && oracle.description().float64_supported && IsFloatingPoint(argument.dtype))
      view.oracle = reinterpret_cast<const double*>(oracle.oracle(master) + argument.oracle_offset);
    views.push_back(std::move(view));
  }
  return views;
}

std::vector<OutputView> OutputViews(const Oracle& oracle, uint32_t master,
                                    const std::byte* candidate, bool float64,
                                    std::span<const ReferenceError> errors) {
  auto views = OutputViews(oracle, master, candidate, float64);
  for (size_t i = 0; i < views.size(); ++i) views[i].ordinary_scale = errors[i].root_mean_square;
  return views;
}

PrecisionClass FinestClass(const wire::Plan& plan) {
  for (uint32_t i = 0; i < plan.argument_count; ++i)
    if (plan.arguments[i].role == Role::kOutput && IsFloatingPoint(plan.arguments[i].dtype))
      return NativeClass(plan.arguments[i].dtype);
  return PrecisionClass::kExact;
}

Result<CompareRule> RuleFor(const ProblemRequest& problem, const std::string& asked_precision,
                            const std::string& asked_tolerance, const Oracle& oracle) {
  return RuleFor(problem, asked_precision, asked_tolerance, FinestClass(oracle.plan()),
                 oracle.description().asks_for_nan);
}

Result<CompareRule> RuleFor(const ProblemRequest& problem, const std::string& asked_precision,
                            const std::string& asked_tolerance, PrecisionClass finest,
                            bool asks_for_nan) {
  CompareRule rule;
  rule.required = finest;
  rule.special_values =
      problem.special_values.empty() ? asks_for_nan : problem.special_values == "required";
  const std::string& precision = asked_precision.empty() ? problem.precision : asked_precision;
  if (!precision.empty()) {
    const auto required = PrecisionClassFromName(precision);
    if (!required || *required == PrecisionClass::kFloat8)
      return UsageError(fmt::format(
          "unknown precision '{}': use float64, float32, tf32, float16 or bfloat16", precision));
    rule.required = *required;
  }
  const std::string& tolerance = asked_tolerance.empty() ? problem.tolerance : asked_tolerance;
  if (!tolerance.empty()) {
    ASSAY_ASSIGN_OR_RETURN(rule.allclose, ParseTolerance(tolerance));
  }
  if (!Stands(Defence::kErrorBounds)) rule.allclose = AllClose{1e-2, 1e-2};
  return rule;
}

namespace {

std::vector<std::byte> PoisonFor(const OutputView& view) {
  return std::vector<std::byte>(static_cast<size_t>(view.count) * wire::ElementBytes(view.dtype),
                                PoisonByte(view.dtype));
}

// Returns their faults; nullopt if these rows are right, or rounding may explain them: the whole
// output tells.
std::optional<CallCheck> CheckRows(const RowsOnHost& rows, const WrongRows& wrong,
                                   const ArgumentSpec& output, const CompareRule& rule,
                                   const ReferenceError& error, const HintContext& context) {
  const OutputView& view = rows.view();
  ReferenceError learned = error;
  const bool ordinary = context.draw_kind == DrawKindName(DrawKind::kOrdinary);
  OutputComparison result = view.oracle != nullptr
                                ? CompareWithOracle(view, rule, ordinary ? &learned : nullptr)
                                : CompareWithReference(view, rule, error);
  if (result.passed || !result.mismatch || MayBeRounding(view, rule)) return std::nullopt;
  result.mismatch->index = IndexInOutput(wrong, output, std::move(result.mismatch->index));
  const std::vector<std::byte> poison = PoisonFor(view);
  HintContext full = context;
  full.poison = poison.data();
  full.inputs = rows.inputs();
  Hint hint{HintAboutUntouched(view.name.substr(0, view.name.rfind("_after"))),
            Mistake::kInputStays};
  if (!rows.untouched()) hint = FailureHint(view, result, full);
  CallCheck check;
  check.passed = check.meets_a_class = false;
  check.error_ratio = result.error_ratio;
  check.max_abs_error = result.max_abs_error;
  check.elements = view.count;
  check.mismatch = std::move(result.mismatch);
  check.hint = std::move(hint.text);
  check.mistake = hint.mistake;
  check.fits = hint.fits;
  check.part = ByteRange{wrong.rows.offset, wrong.rows.size_bytes};
  return check;
}

}  // namespace

CallCheck CheckCall(Oracle& oracle, const LiveSlots& live, const LiveHost& host, uint32_t slot,
                    uint32_t master, bool float64, const CompareRule& rule,
                    std::span<const ReferenceError> errors, const HintContext& context) {
  const CheckedCall call{slot, master, float64,
                         context.draw_kind == DrawKindName(DrawKind::kOrdinary), errors};
  for (const auto& check : CheckWhereTheyLie(oracle, live, host.outputs, {&call, 1}, rule))
    if (check) return *check;
  const auto wrong = FindWrongRows(oracle, live, host.outputs, call, rule);
  auto of_rows = wrong ? CheckRows(RowsOnHost(oracle, live, host.outputs, call, *wrong), *wrong,
                                   *OutputOf(oracle.plan(), wrong->output), rule,
                                   errors[wrong->output], context)
                       : std::nullopt;
  CallCheck check = of_rows ? std::move(*of_rows)
                            : CheckOutputs(oracle, live.Written(host.outputs, slot), master,
                                           float64, rule, errors, context);
  const std::string said = check.passed ? "" : host.host.Message();
  // A forward that threw left its outputs unwritten: what stands there says nothing.
  if (!said.empty()) {
    check.hint = said;
    check.mistake = Mistake::kOther;
    check.not_here = host.host.Failure() == wire::Failure::kCandidateNotHere;
    check.mismatch.reset();
    check.part.reset();
    check.by_check = false;
    check.trouble.reset();
    const uint32_t slots[] = {slot};
    check.lacked_memory = SaysOutOfMemory(said) && live.AreUntouched(host.outputs, slots);
    // What was never computed has no error.
    if (check.lacked_memory) check.error_ratio = check.max_abs_error = 0;
  }
  return check;
}

namespace {

// Compares an integer output by what it selects; nullopt if it selects nothing.
std::optional<OutputComparison> CompareAsSelection(Oracle& oracle, const OutputView& view,
                                                   uint32_t master, size_t output,
                                                   const CompareRule& rule, CallCheck* check,
                                                   std::string* hint) {
  const auto* bytes = static_cast<const std::byte*>(view.candidate);
  // The host may go on meanwhile.
  const std::vector<std::byte> indices(
      bytes, bytes + static_cast<size_t>(view.count) * wire::ElementBytes(view.dtype));
  const auto selected = oracle.Select(master, output, indices);
  if (!selected) {
    check->could_not_ask = true;
    *hint = "what its indices select could not be found out: " + selected.error().message;
    return std::nullopt;
  }
  if (!*selected) return std::nullopt;
  OutputView copy = view;
  copy.candidate = indices.data();
  return CompareSelected(copy, **selected, rule, hint);
}

// Asks the problem's own check about a copy of the outputs: the host may go on meanwhile.
CallCheck AskTheProblem(Oracle& oracle, const std::byte* written, uint32_t master) {
  const std::vector<std::byte> copy(written, written + oracle.plan().output_stride);
  return CheckByProblem(
      OutputViews(oracle, master, copy.data(), false), copy,
      [&](std::span<const std::byte> outputs) { return oracle.AskCheck(master, outputs); });
}

// `context` may be null: without a hint then.
CallCheck CompareOutputs(Oracle& oracle, const std::byte* written, uint32_t master, bool float64,
                         const CompareRule& rule, std::span<const ReferenceError> errors,
                         const HintContext* context) {
  if (oracle.description().own_check) return AskTheProblem(oracle, written, master);
  CallCheck check;
  const auto views = OutputViews(oracle, master, written, float64, errors);
  for (size_t i = 0; i < views.size(); ++i) {
    CompareRule output_rule = rule;
    if (!IsFloatingPoint(views[i].dtype)) output_rule.required = PrecisionClass::kExact;
    const bool with_oracle = views[i].oracle != nullptr;
    // On ordinary values the reference's error over all ordinary draws counts: one draw's may be
    // lucky.
    ReferenceError learned = errors[i];
    const bool ordinary =
        context != nullptr && context->draw_kind == DrawKindName(DrawKind::kOrdinary);
    OutputComparison result =
        with_oracle ? CompareWithOracle(views[i], output_rule, ordinary ? &learned : nullptr)
                    : CompareWithReference(views[i], output_rule, errors[i]);
    if (!result.passed && with_oracle && !ordinary) {
      int64_t left_out = 0;
      if (auto rest =
              CompareBesideMoved(views[i], output_rule, oracle.moved(master, i), &left_out)) {
        result = std::move(*rest);
        check.left_out += left_out;
      }
    }
    std::string of_selection;
    if (!result.passed && IsInteger(views[i].dtype))
      if (auto selected =
              CompareAsSelection(oracle, views[i], master, i, rule, &check, &of_selection))
        result = std::move(*selected);
    check.elements += views[i].count;
    check.error_ratio = std::max(check.error_ratio, result.error_ratio);
    if (std::isnan(result.error_ratio)) check.error_ratio = std::numeric_limits<double>::infinity();
    check.max_abs_error = std::max(check.max_abs_error, result.max_abs_error);
    if (IsFloatingPoint(views[i].dtype)) {
      if (result.meets_a_class) check.shown = std::max(check.shown, result.shown);
      check.meets_a_class = check.meets_a_class && (result.passed || result.meets_a_class);
    }
    if (result.passed || !check.passed) continue;
    check.passed = false;
    check.mismatch = result.mismatch;
    check.hint = of_selection;
    check.mistake = of_selection.empty() ? Mistake::kOther : Mistake::kIndices;
    if (context == nullptr || !of_selection.empty()) continue;
    HintContext full = *context;
    const std::vector<std::byte> poison = PoisonFor(views[i]);
    full.poison = poison.data();
    full.inputs = Inputs(oracle, master);
    Hint hint{HintAboutUntouched(oracle, written, master, i), Mistake::kInputStays};
    if (hint.text.empty()) hint = FailureHint(views[i], result, full);
    check.hint = std::move(hint.text);
    check.mistake = hint.mistake;
    check.fits = hint.fits;
  }
  return check;
}

}  // namespace

CallCheck CheckOutputs(Oracle& oracle, const std::byte* written, uint32_t master, bool float64,
                       const CompareRule& rule, std::span<const ReferenceError> errors,
                       const HintContext& context) {
  return CompareOutputs(oracle, written, master, float64, rule, errors, &context);
}

CallCheck CheckWithoutHint(Oracle& oracle, const std::byte* written, uint32_t master, bool float64,
                           const CompareRule& rule, std::span<const ReferenceError> errors) {
  return CompareOutputs(oracle, written, master, float64, rule, errors, nullptr);
}

std::optional<std::string> FindStrayWrites(const LiveSlots& live, const LiveHost& host,
                                           std::span<const uint32_t> called) {
  const wire::Plan& plan = live.plan();
  if (!Stands(Defence::kGuards)) return std::nullopt;
  if (const auto damage = live.FindDamage(host.outputs, called)) {
    const int64_t distance = damage->distance_bytes;
    return fmt::format("it wrote out of bounds: {} {} {} {}", std::abs(distance),
                       std::abs(distance) == 1 ? "byte" : "bytes",
                       distance >= 0 ? "past the end of output" : "before the start of output",
                       damage->output);
  }
  if (!Stands(Defence::kPoison)) return std::nullopt;
  std::vector<bool> was_called(plan.slot_count);
  for (const uint32_t slot : called) was_called[slot] = true;
  std::vector<uint32_t> others;
  for (uint32_t slot = 0; slot < plan.slot_count; ++slot)
    if (!was_called[slot]) others.push_back(slot);
  if (live.AreUntouched(host.outputs, others)) return std::nullopt;
  if (called.size() == 1)
    if (const auto offset = live.FirstTouchedFrom(called.front(), host.outputs, others))
      return fmt::format("it wrote out of bounds: {}",
                         DistanceText(plan, wire::Role::kOutput, *offset));
  return "it wrote into the memory of another call: its outputs, or an input that is changed in "
         "place";
}

}  // namespace assay
