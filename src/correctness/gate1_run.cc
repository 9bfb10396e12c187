#include "correctness/gate1_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "correctness/rounding.h"
#include "correctness/state_check.h"

namespace assay {

using wire::DrawKind;

namespace {

// Slots of a call: its module and its outputs are those of `slot`, its inputs those of `inputs`.
// Other slots hold the draw of the call before, if any, in `master_before`.
struct Place {
  uint32_t slot = 0, inputs = 0;
  std::optional<uint32_t> master_before;
};

// One call of the candidate on the draw in `master`.
HostResult<BlockResult> Call(const Gate1Setup& setup, LiveHost& host, uint32_t master,
                             const Place& place) {
  std::vector<uint32_t> masters(setup.live.plan().slot_count, place.master_before.value_or(master));
  masters[place.slot] = masters[place.inputs] = master;
  setup.live.FillInputs(setup.oracle, masters);
  setup.live.Poison(host.outputs);
  const uint32_t order[] = {place.slot};
  host.host.TakeInputsOf(place.inputs);
  auto block = setup.live.RunBlock(host.host, host.outputs, order, setup.call_timeout_s);
  host.host.TakeInputsOf(std::nullopt);
  if (!block && block.error().kind == HostTrouble::Kind::kVoid)
    return Call(setup, host, master, place);
  return block;
}

// Returns the bytes that one call wrote; of outputs too large to be looked at whole, the `part`
// that was wrong.
std::vector<std::byte> WrittenBytes(const Gate1Setup& setup, const LiveHost& host, uint32_t slot,
                                    const std::optional<ByteRange>& part) {
  if (part) {
    std::vector<std::byte> bytes(part->size_bytes);
    setup.live.Read(host.outputs, slot, part->begin, bytes);
    return bytes;
  }
  const std::byte* written = setup.live.Written(host.outputs, slot);
  std::vector<std::byte> bytes;
  const wire::Plan& plan = setup.live.plan();
  for (uint32_t i = 0; i < plan.argument_count; ++i)
    if (const wire::ArgumentSpec& argument = plan.arguments[i];
        argument.role == wire::Role::kOutput)
      bytes.insert(bytes.end(), written + argument.offset,
                   written + argument.offset + argument.size_bytes);
  return bytes;
}

// A right call, by its draw and a sample of what it wrote.
struct RightCall {
  size_t index = 0;
  std::vector<std::byte> sample;
};

// Elements of each output, from all over it; empty on a device, where reading takes long.
std::vector<std::byte> SampleOf(const Gate1Setup& setup, const LiveHost& host, uint32_t slot) {
  constexpr uint64_t kElementsMax = 256;
  if (setup.live.on_device()) return {};
  const std::byte* written = setup.live.Written(host.outputs, slot);
  std::vector<std::byte> sample;
  const wire::Plan& plan = setup.live.plan();
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const wire::ArgumentSpec& argument = plan.arguments[i];
    if (argument.role != wire::Role::kOutput) continue;
    const uint64_t element = wire::ElementBytes(argument.dtype);
    const uint64_t count = argument.size_bytes / element;
    const uint64_t step = std::max<uint64_t>(1, count / kElementsMax);
    for (uint64_t at = 0; at < count; at += step) {
      const std::byte* begin = written + argument.offset + at * element;
      sample.insert(sample.end(), begin, begin + element);
    }
  }
  return sample;
}

// Whether a wrong call, which wrote `before`, gave what an earlier one gives for other inputs.
bool GivesAnEarlierResult(const Gate1Setup& setup, LiveHost& host, const Place& place,
                          const std::vector<RightCall>& right,
                          const std::vector<std::byte>& before) {
  const std::vector<std::byte> sample = SampleOf(setup, host, place.slot);
  for (const RightCall& one : right) {
    if (sample.empty() || one.sample != sample) continue;
    const auto master = setup.draws.Master(setup.oracle, one.index);
    return master && Call(setup, host, *master, place) &&
           WrittenBytes(setup, host, place.slot, std::nullopt) == before;
  }
  return false;
}

// Makes the draw's call again, and that of the first draw. Returns how a wrong call depends on more
// than its inputs; empty text: it does not, or nothing could be found out.
Hint HowCallsDiffer(const Gate1Setup& setup, LiveHost& host, size_t index, const Place& place,
                    const HintContext& context, const std::optional<ByteRange>& part,
                    const std::vector<RightCall>& right) {
  const uint32_t slot = place.slot;
  const auto passes = [&](uint32_t master, const HintContext& of) {
    return CheckCall(setup.oracle, setup.live, host, slot, master, true, setup.rule,
                     setup.draws.reference_errors(), of)
        .passed;
  };
  const std::vector<std::byte> before = WrittenBytes(setup, host, slot, part);
  if (!part && GivesAnEarlierResult(setup, host, place, right, before))
    return {
        "gives the results of an earlier call on other inputs: it keeps them, or leaves inputs out",
        Mistake::kLaterCall};
  Hint hint;
  std::string& text = hint.text;
  auto master = setup.draws.Master(setup.oracle, index);
  if (!master || !Call(setup, host, *master, place)) return {};
  if (WrittenBytes(setup, host, slot, part) != before) {
    hint.mistake = Mistake::kRunToRun;
    text = passes(*master, context)
               ? "differs from run to run: the same call, made again, is right"
               : "differs from run to run: the same call, made again, gives other results";
  }
  constexpr const char* kCauses = "; a race, random numbers, or memory that it never set";
  const auto with_causes = [&] {
    if (!text.empty()) text += kCauses;
    return hint;
  };
  if (index == 0) return with_causes();
  HintContext of_first;
  of_first.draw_kind = DrawKindName(DrawKind::kOrdinary);
  master = setup.draws.Master(setup.oracle, 0);
  if (!master || !Call(setup, host, *master, place)) return hint;
  if (passes(*master, of_first)) return with_causes();
  if (text.empty()) hint.mistake = Mistake::kLaterCall;
  text += text.empty() ? "" : "; ";
  text +=
      "the first call was right, and is wrong when it is made again: something is left of earlier "
      "calls, such as scratch that is not cleared";
  return hint;
}

// One call of the candidate on one draw, checked against the oracle.
HostResult<CallCheck> RunDraw(const Gate1Setup& setup, LiveHost& host, size_t index,
                              const Place& place, const std::vector<RightCall>& right,
                              bool ordinary_passed, Gate1Result* result) {
  const Draw& draw = setup.draws.draws()[index];
  auto master = setup.constant_weights ? setup.draws.MasterOfConstant(setup.oracle, index)
                                       : setup.draws.Master(setup.oracle, index);
  if (!master) return std::unexpected(master.error());
  const uint32_t slot = place.slot;
  const uint32_t order[] = {slot};
  const auto block = Call(setup, host, *master, place);
  if (!block) return std::unexpected(block.error());
  result->timed_ns += block->time_ns;
  const auto call_ns = static_cast<double>(block->time_ns);
  result->call_ns = result->call_ns == 0 ? call_ns : std::min(result->call_ns, call_ns);
  HintContext context;
  context.draw_kind = DrawKindName(draw.kind);
  context.ordinary_passed = ordinary_passed;
  CallCheck check = CheckCall(setup.oracle, setup.live, host, slot, *master, true, setup.rule,
                              setup.draws.ErrorsOf(setup.oracle, draw.kind), context);
  if (check.trouble) return std::unexpected(std::move(*check.trouble));
  const auto stray = FindStrayWrites(setup.live, host, order);
  if (stray) {
    check.passed = false;
    check.stray = true;
    check.lacked_memory = check.not_here = false;
    check.hint = *stray;
    check.mistake = Mistake::kStrayWrite;
  } else if (!check.passed && !check.part) {
    const RoundingSetup rounding{setup.options, setup.oracle, setup.rule,
                                 setup.draws.reference_errors()};
    auto again = CheckForRounding(rounding, draw, *master, setup.live.Written(host.outputs, slot),
                                  context, std::move(check));
    if (!again) return std::unexpected(again.error());
    check = std::move(*again);
  }
  if ((!check.mismatch && !check.by_check) || check.stray || check.could_not_ask) return check;
  if (Hint differs = HowCallsDiffer(setup, host, index, place, context, check.part, right);
      !differs.text.empty()) {
    check.hint = check.by_check ? check.hint + "; it " + differs.text : std::move(differs.text);
    check.mistake = differs.mistake;
    check.fits.reset();
  } else {
    result->wrong_values = !check.passed && draw.kind == DrawKind::kOrdinary;
  }
  return check;
}

// A candidate that is right on ordinary values and differs where inputs are NaN or infinite is not
// wrong for that, unless the rule says so.
bool OnlyDiffers(const CallCheck& check, DrawKind kind, const CompareRule& rule) {
  return !check.passed && kind == DrawKind::kSpecialValues && !rule.special_values &&
         !check.stray && !check.lacked_memory;
}

// Whether the candidate would pass this size with a coarser class, after the draw at `failed` alone
// did not pass as it is: makes the calls that are left.
bool PassesWith(PrecisionClass precision, const Gate1Setup& setup, LiveHost& host, size_t failed,
                const Place& place) {
  Gate1Setup coarser = setup;
  coarser.rule.required = precision;
  Gate1Result unused;
  const auto& draws = setup.draws.draws();
  for (size_t i = failed + 1; i < draws.size(); ++i) {
    if (draws[i].dropped) continue;
    const auto check = RunDraw(coarser, host, i, place, {}, true, &unused);
    if (!check || !(check->passed || OnlyDiffers(*check, draws[i].kind, coarser.rule)))
      return false;
  }
  return true;
}

// Names the option that accepts a candidate of coarser precision, if it does.
std::string WithOption(const CallCheck& check, const Gate1Setup& setup, LiveHost& host,
                       size_t failed, const Place& place) {
  const bool fits = check.fits && check.meets_a_class && check.shown <= *check.fits;
  if (!fits || setup.rule.allclose || !PassesWith(*check.fits, setup, host, failed, place))
    return check.hint;
  return fmt::format("{}; with --precision {} all draws of this size pass", check.hint,
                     PrecisionClassName(*check.fits));
}

// Makes the first draw's call once more, and compares what it leaves in its module.
HostResult<void> PassState(const Gate1Setup& setup, LiveHost& host, const Place& place,
                           Correctness* correctness) {
  if (const Scatter scatter =
          ScatterOf(setup.draws.reference_errors(), FinestClass(setup.oracle.plan()));
      !scatter.words.empty()) {
    correctness->note = "what forward changes in its module is not compared: " + scatter.words;
    return {};
  }
  const auto master = setup.constant_weights ? setup.draws.MasterOfConstant(setup.oracle, 0)
                                             : setup.draws.Master(setup.oracle, 0);
  if (!master) return std::unexpected(master.error());
  if (auto called = Call(setup, host, *master, place); !called)
    return std::unexpected(called.error());
  auto check =
      CheckState(setup.oracle, host, place.slot, *master, setup.rule, setup.call_timeout_s);
  if (!check) return std::unexpected(check.error());
  correctness->note = std::move(check->note);
  if (check->wrong.empty()) return {};
  correctness->passed = false;
  correctness->hint = check->wrong + "; --state ignored judges outputs alone";
  correctness->mistake = Mistake::kState;
  return {};
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
  const bool own_check = setup.oracle.description().own_check;
  if (!own_check && !setup.rule.allclose)
    correctness.required_class = PrecisionClassName(setup.rule.required);
  PrecisionClass shown = FinestClass(setup.live.plan());
  bool meets_a_class = true;
  std::mt19937 random(std::random_device{}());
  const auto& draws = setup.draws.draws();
  bool ordinary_passed = false;
  std::vector<RightCall> right;
  Place place{static_cast<uint32_t>(random() % setup.live.plan().slot_count), 0, std::nullopt};
  for (size_t i = 0; i < draws.size(); ++i) {
    setup.progress(i, draws.size());
    DrawRecord record{std::string(DrawKindName(draws[i].kind)), draws[i].seed, "passed", "", 0};
    if (draws[i].dropped || !correctness.passed) {
      record.result = "dropped";
      record.reason = draws[i].dropped ? draws[i].reason : "not run: an earlier draw failed";
      record.for_time = draws[i].for_time;
      correctness.draws.push_back(std::move(record));
      continue;
    }
    const uint32_t slots = setup.live.plan().slot_count;
    if (setup.moves_inputs && slots > 1)
      place.inputs = static_cast<uint32_t>((place.slot + 1 + random() % (slots - 1)) % slots);
    else
      place.slot = place.inputs = static_cast<uint32_t>(random() % slots);
    auto check = RunDraw(setup, host, i, place, right, ordinary_passed, &result);
    place.master_before = draws[i].master;
    if (!check) return std::unexpected(check.error());
    ++correctness.calls_checked;
    if (OnlyDiffers(*check, draws[i].kind, setup.rule)) {
      correctness.differs_on_special_values = check->hint;
      record.result = "differs";
      record.reason = check->hint;
      record.error_ratio = check->error_ratio;
      correctness.draws.push_back(std::move(record));
      continue;
    }
    result.lacked_memory = check->lacked_memory;
    result.could_not_ask = check->could_not_ask;
    result.not_here = check->not_here;
    correctness.error_ratio = std::max(correctness.error_ratio, check->error_ratio);
    // Of huge values the error is huge, too, and right: it would say nothing beside the bound.
    if (draws[i].kind == DrawKind::kOrdinary || !check->passed)
      correctness.max_abs_error = std::max(correctness.max_abs_error, check->max_abs_error);
    shown = std::max(shown, check->shown);
    meets_a_class = meets_a_class && check->meets_a_class;
    record.error_ratio = check->error_ratio;
    if (check->passed) {
      record.reason = AboutLeftOut(*check);
      ordinary_passed = ordinary_passed || draws[i].kind == DrawKind::kOrdinary;
      right.push_back({i, SampleOf(setup, host, place.slot)});
    } else {
      correctness.passed = false;
      correctness.hint = WithOption(*check, setup, host, i, place);
      if (const std::string advice = setup.oracle.AdviceOnManyAnswers();
          !advice.empty() && check->mismatch)
        correctness.hint += "; " + advice;
      correctness.mistake = check->mistake;
      correctness.first_mismatch = check->mismatch;
      record.result = "failed";
      record.reason = correctness.hint;
    }
    correctness.draws.push_back(std::move(record));
  }
  if (correctness.passed && setup.compares_state)
    if (auto compared = PassState(setup, host, place, &correctness); !compared)
      return std::unexpected(compared.error());
  if (meets_a_class && !own_check) correctness.precision_class = PrecisionClassName(shown);
  return result;
}

}  // namespace assay
