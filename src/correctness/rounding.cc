#include "correctness/rounding.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/trace.h"
#include "rules/moved_elements.h"
#include "values/draw_kinds.h"

namespace assay {
namespace {

// The second reference's slots: it fills one at a time.
constexpr uint32_t kSlots = 2;

HostResult<Oracle> OpenSecond(OracleOptions options) {
  options.slots_most = kSlots;
  auto opened = Oracle::Open(std::move(options));
  if (opened) return std::move(*opened);
  const bool interrupted = opened.error().kind == ErrorKind::kInterrupted;
  return HostFailed(interrupted ? HostTrouble::Kind::kInterrupted : HostTrouble::Kind::kEnvironment,
                    opened.error().message);
}

bool SameInputs(const Oracle& known, uint32_t master, const Oracle& second) {
  const wire::Plan& plan = known.plan();
  if (second.plan().argument_count != plan.argument_count) return false;
  const std::byte* ours = known.inputs(master);
  const std::byte* theirs = second.inputs(0);
  return std::all_of(plan.arguments, plan.arguments + plan.argument_count,
                     [&](const wire::ArgumentSpec& a) {
                       return a.role != wire::Role::kInput ||
                              std::memcmp(ours + a.offset, theirs + a.offset, a.size_bytes) == 0;
                     });
}

// One output with a float64 side.
struct Asked {
  size_t output;
  std::vector<double> truth;
  MovedElements moved;
};

// Has the second reference, whose slot 0 holds the draw, compute one nudge after the other. The
// answer has a list an output, empty where nothing may be left out.
HostResult<std::vector<std::vector<MovedElement>>> NudgeAll(Oracle* second, const Draw& draw,
                                                            const CompareRule& rule) {
  std::vector<Asked> asked;
  const auto given = OutputViews(*second, 0, nullptr, true);
  for (size_t i = 0; i < given.size(); ++i)
    if (const double* truth = given[i].oracle)
      asked.push_back({i, {truth, truth + given[i].count}, MovedElements(given[i], rule)});
  const int bits = NudgeBits(std::max(rule.required, FinestClass(second->plan())));
  for (uint64_t nudge = 1; nudge <= kNudges; ++nudge) {
    // By seeds that come from the draw's: nobody knows ahead what moves.
    const Nudge how{draw.seed + nudge, bits};
    if (auto filled = second->FillNudged(0, draw.seed, draw.kind, how); !filled)
      return std::unexpected(filled.error());
    const auto views = OutputViews(*second, 0, nullptr, true);
    if (auto there = second->CopiesHold(); !there) return std::unexpected(there.error());
    bool goes_on = false;
    for (Asked& one : asked) goes_on |= one.moved.See(one.truth.data(), views[one.output].oracle);
    if (!goes_on) break;
  }
  std::vector<std::vector<MovedElement>> elements(given.size());
  for (const Asked& one : asked) elements[one.output] = one.moved.elements();
  return elements;
}

HostResult<void> Ask(const RoundingSetup& setup, const Draw& draw, uint32_t master) {
  const Span span("ask what rounding moves");
  auto second = OpenSecond(setup.options);
  if (!second) return std::unexpected(second.error());
  const uint64_t version = setup.oracle.weights_of(master);
  if (auto shown = second->ShowWeights(version); !shown) return shown;
  if (auto filled = second->Fill(0, draw.seed, draw.kind, true); !filled)
    return std::unexpected(filled.error());
  const auto failed = [](const char* message) {
    return HostFailed(HostTrouble::Kind::kEnvironment, message);
  };
  // As it also says where memory for float64 was short.
  if (!second->description().float64_supported)
    return failed("a second reference does not run in float64");
  if (!SameInputs(setup.oracle, master, *second))
    return failed("a second reference draws other inputs under the same seed");
  auto moved = NudgeAll(&*second, draw, setup.rule);
  if (!moved) return std::unexpected(moved.error());
  setup.oracle.SetMoved(master, std::move(*moved));
  return {};
}

// Whether each output that fails may do so by rounding alone.
bool MayAllBeRounding(const RoundingSetup& setup, uint32_t master, const std::byte* written) {
  bool any = false;
  for (const OutputView& view : OutputViews(setup.oracle, master, written, true, setup.errors)) {
    if (CompareWithOracle(view, setup.rule, nullptr).passed) continue;
    if (!MayBeRounding(view, setup.rule)) return false;
    any = true;
  }
  return any;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

HostResult<CallCheck> CheckForRounding(const RoundingSetup& setup, const Draw& draw,
                                       uint32_t master, const std::byte* written,
                                       const HintContext& context, CallCheck check) {
  if (check.passed || !check.mismatch || !MayLeaveElementsOut(draw.kind)) return check;
  if (setup.oracle.description().own_check || setup.oracle.KnowsMoved(master)) return check;
  // The host may go on meanwhile.
  const std::vector<std::byte> copy(written, written + setup.oracle.plan().output_stride);
  if (!MayAllBeRounding(setup, master, copy.data())) return check;
  if (auto asked = Ask(setup, draw, master); !asked) {
    // Ctrl-C may also have ended that reference.
    const bool interrupted = setup.options.stop.stopped();
    if (interrupted || asked.error().kind == HostTrouble::Kind::kInterrupted)
      return HostFailed(HostTrouble::Kind::kInterrupted, "interrupted");
    check.could_not_ask = true;
    check.hint += "; whether rounding alone explains it could not be found out: " +
                  FirstLine(asked.error().message);
    return check;
  }
  return CheckOutputs(setup.oracle, copy.data(), master, true, setup.rule, setup.errors, context);
}

}  // namespace assay
