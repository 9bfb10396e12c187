#include "pipeline/gate1_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/defences.h"
#include "base/trace.h"
#include "judge/moved_elements.h"
#include "pipeline/blame.h"
#include "pipeline/device_checks.h"
#include "pipeline/draw_kinds.h"
#include "pipeline/rounding.h"

namespace assay {

using wire::ArgumentSpec;
using wire::DrawKind;
using wire::Role;

namespace {

constexpr int kOrdinaryDraws = 3;

std::vector<int64_t> Shape(const ArgumentSpec& argument) {
  return {argument.shape, argument.shape + argument.rank};
}

int64_t Count(const ArgumentSpec& argument) {
  const uint32_t element =
      argument.kind == wire::Kind::kTensor ? wire::ElementBytes(argument.dtype) : 8;
  return static_cast<int64_t>(argument.size_bytes / element);
}

bool HasFloats(const wire::Plan& plan, Role role) {
  return std::any_of(
      plan.arguments, plan.arguments + plan.argument_count, [role](const ArgumentSpec& a) {
        return a.role == role && a.kind == wire::Kind::kTensor && IsFloatingPoint(a.dtype);
      });
}

std::vector<InputView> Inputs(const Oracle& oracle, uint32_t master) {
  std::vector<InputView> views;
  const wire::Plan& plan = oracle.plan();
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const ArgumentSpec& argument = plan.arguments[i];
    if (argument.role != Role::kInput || argument.kind != wire::Kind::kTensor) continue;
    views.push_back(
        {argument.name, argument.dtype, Count(argument), oracle.inputs(master) + argument.offset});
  }
  return views;
}

// What a kernel that looks at nothing could write, tried on every draw.
class Impostors {
 public:
  explicit Impostors(const wire::Plan& plan) : zeros_(plan.output_stride) {}

  // The next draw, whose expected outputs stand in `master`.
  void Try(const Oracle& oracle, uint32_t master, const CompareRule& rule,
           std::span<const ReferenceError> errors) {
    const Span span("try impostors");
    zeros_pass_ = zeros_pass_ && Pass(oracle, master, zeros_, rule, errors);
    if (first_.empty()) {
      const std::byte* outputs = oracle.outputs(master);
      first_.assign(outputs, outputs + oracle.plan().output_stride);
    } else {
      first_passes_ = first_passes_ && Pass(oracle, master, first_, rule, errors);
      ++others_;
    }
  }
  // Why no candidate can be told from one that computes nothing; empty: it can.
  std::string Finding() const {
    if (!Stands(Defence::kDegenerate) || first_.empty()) return {};
    if (zeros_pass_) return "all zeros pass gate 1";
    if (first_passes_ && others_ > 0) return "the output of one draw passes for every other";
    return {};
  }

 private:
  static bool Pass(const Oracle& oracle, uint32_t master, const std::vector<std::byte>& outputs,
                   const CompareRule& rule, std::span<const ReferenceError> errors) {
    return !FailPlainly(oracle, outputs.data(), master, rule) &&
           CheckWithoutHint(oracle, outputs.data(), master, true, rule, errors).passed;
  }

  std::vector<std::byte> zeros_, first_;
  bool zeros_pass_ = true, first_passes_ = true;
  int others_ = 0;
};

void Raise(const ReferenceError& to, ReferenceError* learned) {
  learned->norm_relative = std::max(learned->norm_relative, to.norm_relative);
  learned->element_relative = std::max(learned->element_relative, to.element_relative);
}

std::unexpected<HostTrouble> MeaninglessReference(const std::string& reason) {
  HostTrouble trouble;
  trouble.kind = HostTrouble::Kind::kFailed;
  trouble.failure = wire::Failure::kProblemOutput;
  trouble.message = fmt::format(
      "the reference is meaningless on its own inputs: {}; where that is only rounding, "
      "--tolerance "
      "allclose:1e-2 compares with its native output instead",
      reason);
  return std::unexpected(std::move(trouble));
}

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

PrecisionClass FinestClass(const wire::Plan& plan) {
  for (uint32_t i = 0; i < plan.argument_count; ++i)
    if (plan.arguments[i].role == Role::kOutput && IsFloatingPoint(plan.arguments[i].dtype))
      return NativeClass(plan.arguments[i].dtype);
  return PrecisionClass::kExact;
}

Result<CompareRule> RuleFor(const ProblemRequest& problem, const std::string& asked_precision,
                            const std::string& asked_tolerance, PrecisionClass finest) {
  CompareRule rule;
  rule.required = finest;
  const std::string& precision = asked_precision.empty() ? problem.precision : asked_precision;
  if (!precision.empty()) {
    const auto required = PrecisionClassFromName(precision);
    if (!required)
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

HostResult<DrawSet> DrawSet::Make(Oracle& oracle, const CompareRule& rule, uint64_t seed,
                                  std::span<const DrawKind> skip,
                                  const std::function<void(size_t, size_t)>& progress) {
  const Span span("draw for gate 1");
  DrawSet set;
  std::mt19937_64 random(seed);
  for (int i = 0; i < kOrdinaryDraws; ++i)
    set.draws_.push_back({DrawKind::kOrdinary, random() >> 1, 0, false, {}});
  if (HasFloats(oracle.plan(), Role::kInput) && Stands(Defence::kVariedDraws))
    for (uint64_t kind = 1; kind < wire::kDrawKindCount; ++kind)
      set.draws_.push_back({static_cast<DrawKind>(kind), random() >> 1, 0, false, {}});
  // Masters are shared with the value pool: at most half of them, and one for all where memory is
  // short.
  const auto wanted = static_cast<uint32_t>(set.draws_.size());
  const uint32_t room = std::min(oracle.slots_max() / 2, oracle.oracle_slots_max());
  set.slots_used_ = room >= wanted ? wanted : 1;
  const auto outputs = OutputViews(oracle, 0, nullptr, false).size();
  set.errors_.resize(outputs);
  Impostors impostors(oracle.plan());
  for (size_t i = 0; i < set.draws_.size(); ++i) {
    progress(i, set.draws_.size());
    Draw& draw = set.draws_[i];
    draw.master = set.slots_used_ == 1 ? 0 : static_cast<uint32_t>(i);
    const bool ordinary = draw.kind == DrawKind::kOrdinary;
    if (!ordinary && !oracle.description().float64_supported &&
        HasFloats(oracle.plan(), Role::kOutput)) {
      draw.dropped = true;
      draw.reason =
          "the reference does not run in float64: its own error on such values is unknown";
      continue;
    }
    if (std::find(skip.begin(), skip.end(), draw.kind) != skip.end()) {
      draw.dropped = true;
      draw.reason = "the suite leaves such draws out of this problem";
      continue;
    }
    oracle.ShowWeights(draw.seed);
    auto filled = oracle.Fill(draw.master, draw.seed, draw.kind, true);
    if (!filled) {
      if (ordinary || filled.error().kind != HostTrouble::Kind::kFailed)
        return std::unexpected(filled.error());
      draw.dropped = true;
      draw.reason = filled.error().message;
      continue;
    }
    if (!ordinary && *filled == 0) {
      draw.dropped = true;
      draw.reason = "it would change none of these inputs";
      continue;
    }
    // To allclose a NaN is close to nothing, not even to the reference's.
    const bool special_values = draw.kind == DrawKind::kSpecialValues && !rule.allclose;
    if (!rule.allclose)
      if (const auto there = ReferenceErrorsWhereTheyLie(oracle, draw.master, special_values)) {
        for (size_t output = 0; ordinary && output < there->size(); ++output)
          Raise((*there)[output], &set.errors_[output]);
        impostors.Try(oracle, draw.master, rule, set.errors_);
        continue;
      }
    const Span of_this_draw("errors of a draw, on the host");
    // Under allclose the native output alone is what counts, however far from float64.
    const auto views = OutputViews(oracle, draw.master, nullptr, !rule.allclose);
    for (size_t output = 0; output < views.size(); ++output) {
      std::string reason;
      if (!DrawIsMeaningful(views[output], special_values, &reason)) {
        if (ordinary) return MeaninglessReference(reason);
        draw.dropped = true;
        draw.reason = reason;
      } else if (ordinary) {
        CompareWithOracle(views[output], rule, &set.errors_[output]);
      }
    }
    if (!draw.dropped) impostors.Try(oracle, draw.master, rule, set.errors_);
  }
  set.degenerate_ = impostors.Finding();
  return set;
}

std::vector<Draw> DrawSet::Kept() const {
  std::vector<Draw> kept;
  for (const Draw& draw : draws_)
    if (slots_used_ > 1 && !draw.dropped && draw.kind != DrawKind::kOrdinary) kept.push_back(draw);
  return kept;
}

HostResult<uint32_t> DrawSet::Master(Oracle& oracle, size_t index) const {
  const Draw& draw = draws_[index];
  oracle.ShowWeights(draw.seed);
  if (slots_used_ > 1) return draw.master;
  if (auto filled = oracle.Fill(draw.master, draw.seed, draw.kind, true); !filled)
    return std::unexpected(filled.error());
  return draw.master;
}

CallCheck CheckCall(const Oracle& oracle, const LiveSlots& live, const LiveHost& host,
                    uint32_t slot, uint32_t master, bool float64, const CompareRule& rule,
                    std::span<const ReferenceError> errors, const HintContext& context) {
  const CheckedCall call{slot, master, float64,
                         context.draw_kind == DrawKindName(DrawKind::kOrdinary)};
  for (const auto& check : CheckWhereTheyLie(oracle, live, host.outputs, {&call, 1}, rule, errors))
    if (check) return *check;
  const std::byte* written = live.Written(host.outputs, slot);
  CallCheck check = CheckOutputs(oracle, written, master, float64, rule, errors, context);
  const std::string said = check.passed ? "" : host.host.Message();
  // A forward that threw left its outputs unwritten: what stands there says nothing.
  if (!said.empty()) {
    check.hint = said;
    check.mismatch.reset();
    const uint32_t slots[] = {slot};
    check.lacked_memory = SaysOutOfMemory(said) && live.AreUntouched(host.outputs, slots);
    // What was never computed has no error.
    if (check.lacked_memory) check.error_ratio = check.max_abs_error = 0;
  }
  return check;
}

namespace {

// `context` may be null: without a hint then.
CallCheck CompareOutputs(const Oracle& oracle, const std::byte* written, uint32_t master,
                         bool float64, const CompareRule& rule,
                         std::span<const ReferenceError> errors, const HintContext* context) {
  CallCheck check;
  const auto views = OutputViews(oracle, master, written, float64);
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
    if (context == nullptr) continue;
    HintContext full = *context;
    std::vector<std::byte> poison(
        static_cast<size_t>(views[i].count) * wire::ElementBytes(views[i].dtype),
        PoisonByte(views[i].dtype));
    full.poison = poison.data();
    full.inputs = Inputs(oracle, master);
    check.hint = FailureHint(views[i], result, full);
  }
  return check;
}

}  // namespace

CallCheck CheckOutputs(const Oracle& oracle, const std::byte* written, uint32_t master,
                       bool float64, const CompareRule& rule,
                       std::span<const ReferenceError> errors, const HintContext& context) {
  return CompareOutputs(oracle, written, master, float64, rule, errors, &context);
}

CallCheck CheckWithoutHint(const Oracle& oracle, const std::byte* written, uint32_t master,
                           bool float64, const CompareRule& rule,
                           std::span<const ReferenceError> errors) {
  return CompareOutputs(oracle, written, master, float64, rule, errors, nullptr);
}

std::optional<std::string> FindStrayWrites(const LiveSlots& live, const LiveHost& host,
                                           std::span<const uint32_t> called) {
  const wire::Plan& plan = live.plan();
  if (!Stands(Defence::kGuards)) return std::nullopt;
  if (const auto damage = live.FindDamage(host.outputs, called)) {
    const int64_t distance = damage->distance_bytes;
    return fmt::format(
        "it wrote out of bounds: {} bytes {} {}", std::abs(distance) + (distance >= 0 ? 1 : 0),
        distance >= 0 ? "past the end of output" : "before the start of output", damage->output);
  }
  if (!Stands(Defence::kPoison)) return std::nullopt;
  std::vector<bool> was_called(plan.slot_count);
  for (const uint32_t slot : called) was_called[slot] = true;
  std::vector<uint32_t> others;
  for (uint32_t slot = 0; slot < plan.slot_count; ++slot)
    if (!was_called[slot]) others.push_back(slot);
  if (!live.AreUntouched(host.outputs, others))
    return "it wrote into the outputs of a call that it was not asked to make";
  return std::nullopt;
}

namespace {

// One call of the candidate on one draw, checked against the oracle.
HostResult<CallCheck> RunDraw(const Gate1Setup& setup, LiveHost& host, size_t index, uint32_t slot,
                              bool ordinary_passed, Gate1Result* result) {
  const Draw& draw = setup.draws.draws()[index];
  auto master = setup.draws.Master(setup.oracle, index);
  if (!master) return std::unexpected(master.error());
  const wire::Plan& plan = setup.live.plan();
  const std::vector<uint32_t> masters(plan.slot_count, *master);
  setup.live.FillInputs(setup.oracle, masters);
  setup.live.Poison(host.outputs);
  const uint32_t order[] = {slot};
  auto block = setup.live.RunBlock(host.host, host.outputs, order, setup.call_timeout_s);
  if (!block && block.error().kind == HostTrouble::Kind::kVoid)
    return RunDraw(setup, host, index, slot, ordinary_passed, result);
  if (!block) return std::unexpected(block.error());
  result->timed_ns += block->time_ns;
  const auto call_ns = static_cast<double>(block->time_ns);
  result->call_ns = result->call_ns == 0 ? call_ns : std::min(result->call_ns, call_ns);
  HintContext context;
  context.draw_kind = DrawKindName(draw.kind);
  context.ordinary_passed = ordinary_passed;
  CallCheck check = CheckCall(setup.oracle, setup.live, host, slot, *master, true, setup.rule,
                              setup.draws.reference_errors(), context);
  if (const auto stray = FindStrayWrites(setup.live, host, order)) {
    check.passed = false;
    check.lacked_memory = false;
    check.hint = *stray;
  } else if (!check.passed) {
    const RoundingSetup rounding{setup.options, setup.oracle, setup.rule,
                                 setup.draws.reference_errors()};
    auto again = CheckForRounding(rounding, draw, *master, setup.live.Written(host.outputs, slot),
                                  context, std::move(check));
    if (!again) return std::unexpected(again.error());
    check = std::move(*again);
  }
  if (check.mismatch && draw.kind == DrawKind::kOrdinary && ordinary_passed &&
      setup.oracle.weights_vary())
    check.hint +=
        "; an earlier call was right, with other weights: what depends on weights must be done in "
        "every call (--weights constant allows to keep it)";
  return check;
}

std::string AboutLeftOut(const CallCheck& check) {
  if (check.left_out == 0) return {};
  return fmt::format(
      "{} of {} elements are left out: the truth itself moves there as far as the candidate is off "
      "when inputs change in their last bits",
      check.left_out, check.elements);
}

}  // namespace

HostResult<Gate1Result> RunGate1(const Gate1Setup& setup, LiveHost& host) {
  Gate1Result result;
  Correctness& correctness = result.correctness;
  correctness.passed = true;
  correctness.tolerance = setup.tolerance_text;
  correctness.required_class = PrecisionClassName(setup.rule.required);
  PrecisionClass shown = FinestClass(setup.live.plan());
  bool meets_a_class = true;
  std::mt19937 random(std::random_device{}());
  const auto& draws = setup.draws.draws();
  bool ordinary_passed = false;
  for (size_t i = 0; i < draws.size(); ++i) {
    setup.progress(i, draws.size());
    DrawRecord record{std::string(DrawKindName(draws[i].kind)), draws[i].seed, "passed", "", 0};
    if (draws[i].dropped || !correctness.passed) {
      record.result = "dropped";
      record.reason = draws[i].dropped ? draws[i].reason : "not run: an earlier draw failed";
      correctness.draws.push_back(std::move(record));
      continue;
    }
    const auto slot = static_cast<uint32_t>(random() % setup.live.plan().slot_count);
    auto check = RunDraw(setup, host, i, slot, ordinary_passed, &result);
    if (!check) return std::unexpected(check.error());
    ++correctness.calls_checked;
    result.lacked_memory = check->lacked_memory;
    result.could_not_ask = check->could_not_ask;
    correctness.error_ratio = std::max(correctness.error_ratio, check->error_ratio);
    correctness.max_abs_error = std::max(correctness.max_abs_error, check->max_abs_error);
    shown = std::max(shown, check->shown);
    meets_a_class = meets_a_class && check->meets_a_class;
    record.error_ratio = check->error_ratio;
    if (check->passed) {
      record.reason = AboutLeftOut(*check);
      ordinary_passed = ordinary_passed || draws[i].kind == DrawKind::kOrdinary;
    } else {
      correctness.passed = false;
      correctness.hint = check->hint;
      correctness.first_mismatch = check->mismatch;
      record.result = "failed";
      record.reason = check->hint;
    }
    correctness.draws.push_back(std::move(record));
  }
  if (meets_a_class) correctness.precision_class = PrecisionClassName(shown);
  return result;
}

}  // namespace assay
