#include "correctness/draw_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <random>

#include "base/check.h"
#include "base/clock.h"
#include "base/defences.h"
#include "base/trace.h"
#include "correctness/call_check.h"
#include "correctness/device_checks.h"
#include "correctness/impostors.h"
#include "correctness/own_check.h"
#include "rules/draw_choice.h"
#include "rules/error_bounds.h"
#include "values/slot_layout.h"

namespace assay {

using wire::ArgumentSpec;
using wire::DrawKind;
using wire::Role;

namespace {

constexpr std::string_view kOnlyRounding =
    "; where that is only rounding, --tolerance allclose:1e-2 compares with its native output "
    "instead";
template <typename Predicate>
bool HasTensors(const wire::Plan& plan, Role role, const Predicate& of_dtype) {
  return std::any_of(plan.arguments, plan.arguments + plan.argument_count,
                     [&](const ArgumentSpec& a) {
                       return a.role == role && a.kind == wire::Kind::kTensor && of_dtype(a.dtype);
                     });
}

bool HasFloats(const wire::Plan& plan, Role role) {
  return HasTensors(plan, role, IsFloatingPoint);
}

// Whether an unusual kind of draw may change inputs (assay_host/draws.py).
bool MayChange(const wire::Plan& plan, DrawKind kind) {
  if (HasFloats(plan, Role::kInput)) return true;
  return kind == DrawKind::kZeroOne && HasTensors(plan, Role::kInput, [](wire::DType dtype) {
           return dtype == wire::DType::kInt8 || dtype == wire::DType::kUInt8 ||
                  dtype == wire::DType::kInt16;
         });
}

// Drops the draws that do not fit the time, once the first is made.
void LeaveOut(const DrawBudget& budget, double draw_s, std::vector<Draw>* draws) {
  std::vector<DrawKind> kinds;
  for (const Draw& draw : *draws) kinds.push_back(draw.kind);
  const std::vector<size_t> left_out = DrawsLeftOut(kinds, draw_s, budget.seconds);
  for (const size_t i : left_out) {
    (*draws)[i].dropped = true;
    (*draws)[i].for_time = true;
    (*draws)[i].reason = fmt::format("left out for the time: one draw takes {:.1f} s here", draw_s);
  }
  if (!left_out.empty()) budget.cut(draw_s, draws->size() - left_out.size(), draws->size());
}

// Drops all draws but the ordinary ones, on which `errors` were learned, if rounding scatters the
// reference's outputs.
void LeaveOutScattered(const Oracle& oracle, std::span<const ReferenceError> errors,
                       std::vector<Draw>* draws) {
  const std::string why = ScatterOf(errors, FinestClass(oracle.plan())).words;
  if (why.empty()) return;
  for (Draw& draw : *draws)
    if (draw.kind != DrawKind::kOrdinary && !draw.dropped) {
      draw.dropped = true;
      draw.reason = why;
    }
}

std::unexpected<HostTrouble> MeaninglessReference(const std::string& reason) {
  HostTrouble trouble;
  trouble.kind = HostTrouble::Kind::kFailed;
  trouble.failure = wire::Failure::kProblemOutput;
  trouble.message = "the reference is meaningless on its own inputs: " + reason;
  return std::unexpected(std::move(trouble));
}

// Drops a draw of a problem with a check of its own if the reference's outputs do not pass it.
// Errors: that on ordinary values; the check gives no answer there, or ends its host anywhere.
HostResult<void> AskOwnCheck(Oracle& oracle, Draw* draw) {
  auto said = AskAboutReference(oracle, draw->master);
  const bool ordinary = draw->kind == DrawKind::kOrdinary;
  if (!said &&
      (ordinary || said.error().kind != HostTrouble::Kind::kFailed || oracle.EndedByCheck()))
    return std::unexpected(std::move(said).error());
  if (said && !*said) return {};
  draw->dropped = true;
  draw->reason = !said ? said.error().message
                       : "the reference itself does not pass the problem's own check: " + **said;
  if (!ordinary) return {};
  auto refused = HostFailed(HostTrouble::Kind::kFailed, draw->reason);
  refused.error().failure = wire::Failure::kProblemCheck;
  return refused;
}

// Asks the problem's own check about outputs that nobody wrote. Errors: it gives no answer, so a
// candidate could end a judgement by what it writes.
HostResult<void> AskAboutPoison(Oracle& oracle, uint32_t master) {
  std::vector<std::byte> outputs(oracle.plan().output_stride);
  PoisonSlot(oracle.plan(), outputs.data(), 0, 0);
  if (auto said = oracle.AskCheck(master, outputs); !said) return std::unexpected(said.error());
  return {};
}

// The reference's results on one draw. `reason`: why nothing can be judged by it; empty: it can.
struct DrawOutputs {
  std::string reason;
  bool has_numbers = true;  // finite elements
  bool all_numbers = true;
};

// `special_values`: NaN and infinities do not make the draw meaningless.
DrawOutputs Describe(std::span<const OutputView> views, bool special_values) {
  DrawOutputs found;
  int64_t elements = 0, numbers = 0;
  for (const OutputView& view : views) {
    elements += view.count;
    numbers += CountNumbers(view);
    if (std::string reason; !DrawIsMeaningful(view, special_values, &reason)) found.reason = reason;
  }
  found.has_numbers = elements == 0 || numbers > 0;
  found.all_numbers = numbers == elements;
  return found;
}

// Draws on which an impostor that passes in part has to pass whole.
constexpr int kConfirmedOn = 3;

// Whether nothing tells the error of the reference on unusual values.
bool LacksTruth(const Oracle& oracle) {
  return !oracle.description().float64_supported && !oracle.description().own_check &&
         HasFloats(oracle.plan(), Role::kOutput);
}

// Two right outputs of random signs may differ then by half of the norm, and by anything at single
// elements. A candidate that leaves out a rectifier or an absolute value is off by more.
constexpr ReferenceError kUnknownError{kBoundMax, std::numeric_limits<double>::infinity(), 0};

// Why a draw is left out before it is made; empty: it is made.
std::string ReasonToLeaveOut(const Oracle& oracle, const Draw& draw,
                             std::span<const DrawKind> skip) {
  if (draw.kind == DrawKind::kOrdinary) return {};
  if (LacksTruth(oracle) && draw.kind != DrawKind::kSigns)
    return "the reference does not run in float64: its own error on such values is unknown";
  if (std::find(skip.begin(), skip.end(), draw.kind) != skip.end())
    return "such draws are left out of this problem";
  return {};
}

// Says which inputs keep their signs because the reference needs it; empty: none.
std::string NoteOfKeptSigns(const Oracle& oracle) {
  std::vector<std::string> kept;
  const auto arguments = std::span(oracle.plan().arguments, oracle.plan().argument_count);
  size_t tensors = 0;
  for (size_t i = 0; i < arguments.size() && arguments[i].role == Role::kInput; ++i) {
    const bool is_float =
        arguments[i].kind == wire::Kind::kTensor && IsFloatingPoint(arguments[i].dtype);
    tensors += is_float ? 1 : 0;
    if (is_float && i < oracle.KeptSigns().size() && oracle.KeptSigns()[i])
      kept.emplace_back(arguments[i].name);
  }
  if (kept.empty()) return {};
  if (kept.size() == tensors) return "inputs keep their signs: the reference needs it";
  return fmt::format("{} keep{} the sign of {} values: the reference needs it",
                     fmt::join(kept, ", "), kept.size() == 1 ? "s" : "",
                     kept.size() == 1 ? "its" : "their");
}

// Makes a draw in its master, or drops it. Errors: the reference fails on ordinary values.
HostResult<void> FillDraw(Oracle& oracle, Draw* draw) {
  const bool ordinary = draw->kind == DrawKind::kOrdinary;
  if (auto shown = oracle.ShowWeights(draw->seed); !shown) return shown;
  // A check of the problem's own asks nothing of float64.
  const bool float64 = !oracle.description().own_check;
  auto filled = oracle.Fill(draw->master, draw->seed, draw->kind, float64);
  if (!filled && (ordinary || filled.error().kind != HostTrouble::Kind::kFailed))
    return std::unexpected(filled.error());
  draw->dropped = !filled || (!ordinary && *filled == 0);
  if (!draw->dropped) return {};
  const bool needed = filled && draw->kind == DrawKind::kSigns && oracle.KeptSigns().any();
  draw->reason = needed   ? NoteOfKeptSigns(oracle)
                 : filled ? "it would change none of these inputs"
                          : filled.error().message;
  return {};
}

// The reference's own errors, learned from draw to draw, where its outputs are compared with.
class Learning {
 public:
  // Both outlive it.
  Learning(const CompareRule& rule, std::vector<ReferenceError>& errors,
           std::vector<ReferenceError>& of_signs)
      : rule_(rule), errors_(errors), of_signs_(of_signs) {}

  // Learns from an ordinary draw, or one of random signs. Drops a draw that is meaningless. Errors:
  // an ordinary one is.
  HostResult<void> LookAt(const Oracle& oracle, Draw* draw) {
    const bool ordinary = draw->kind == DrawKind::kOrdinary;
    // KernelBench's rule asks nothing of special values.
    const bool special_values =
        not_finite_by_design_ || (draw->kind == DrawKind::kSpecialValues && !rule_.allclose);
    if (!rule_.allclose)
      if (const auto there =
              ReferenceWhereItLies(oracle, draw->master, draw->kind, special_values)) {
        draw->reason = there->reason;
        draw->dropped = !draw->reason.empty();
        if (draw->dropped) return {};
        Learn(draw->kind, [&](size_t output, ReferenceError* learned) {
          RaiseTo(there->errors[output], learned);
        });
        return RefuseScattered(oracle);
      }
    const Span of_this_draw("errors of a draw, on the host");
    // Under allclose the native output alone is what counts, however far from float64.
    const auto views = OutputViews(oracle, draw->master, nullptr, !rule_.allclose);
    const DrawOutputs found = Describe(views, special_values || ordinary);
    draw->reason = found.reason;
    if (draw->reason.empty() && !found.has_numbers && draw->kind != DrawKind::kSpecialValues)
      draw->reason = "every element of its outputs is NaN or infinite";
    draw->dropped = !draw->reason.empty();
    if (ordinary && draw->dropped)
      return MeaninglessReference(draw->reason + AdviceOn(oracle, found.reason));
    if (draw->dropped) return {};
    if (ordinary) not_finite_by_design_ = not_finite_by_design_ || !found.all_numbers;
    Learn(draw->kind, [&](size_t output, ReferenceError* learned) {
      CompareWithOracle(views[output], rule_, learned);
    });
    if (draw->kind == DrawKind::kSigns && LacksTruth(oracle))
      std::ranges::fill(of_signs_, kUnknownError);
    return RefuseScattered(oracle);
  }

 private:
  // Advice on ordinary outputs that are off from float64 for this reason.
  std::string AdviceOn(const Oracle& oracle, const std::string& reason) const {
    if (reason.empty()) return {};
    // The vectors of float64 may have other signs.
    if (const std::string advice = oracle.AdviceOnManyAnswers(); !advice.empty())
      return "; " + advice;
    return rule_.allclose ? "" : std::string(kOnlyRounding);
  }

  HostResult<void> RefuseScattered(const Oracle& oracle) const {
    const Scatter scatter = ScatterOf(errors_, FinestClass(oracle.plan()));
    if (rule_.allclose || !scatter.meaningless) return {};
    return MeaninglessReference(scatter.words + AdviceOn(oracle, scatter.words));
  }

  // Of random signs timed calls have but one draw to learn from: those of ordinary ones count, too.
  template <typename See>
  void Learn(DrawKind kind, const See& see) {
    if (kind == DrawKind::kSigns) of_signs_ = errors_;
    if (kind != DrawKind::kOrdinary && kind != DrawKind::kSigns) return;
    std::vector<ReferenceError>& learned = kind == DrawKind::kSigns ? of_signs_ : errors_;
    for (size_t output = 0; output < learned.size(); ++output) see(output, &learned[output]);
  }

  const CompareRule& rule_;
  std::vector<ReferenceError>&errors_, &of_signs_;
  bool not_finite_by_design_ = false;  // on ordinary values: scores that a mask hides
};

}  // namespace

HostResult<DrawSet> DrawSet::Make(Oracle& oracle, const CompareRule& rule, uint64_t seed,
                                  std::span<const DrawKind> skip,
                                  const std::function<void(size_t, size_t)>& progress,
                                  const DrawBudget& budget) {
  const Span span("draw for gate 1");
  DrawSet set;
  set.special_values_ = rule.special_values;
  std::mt19937_64 random(seed);
  for (uint32_t i = 0; i < kOrdinaryDraws; ++i)
    set.draws_.push_back({DrawKind::kOrdinary, random() >> 1, 0, false, {}});
  for (uint64_t kind = 1; kind < wire::kDrawKindCount; ++kind)
    if (Stands(Defence::kVariedDraws) && MayChange(oracle.plan(), static_cast<DrawKind>(kind)))
      set.draws_.push_back({static_cast<DrawKind>(kind), random() >> 1, 0, false, {}});
  // A patch of each form: the seed's remainder says which (assay_host/draws.py).
  if (set.draws_.back().kind == DrawKind::kPatch) {
    set.draws_.pop_back();
    for (uint64_t form = 0; form < kPatchForms; ++form)
      set.draws_.push_back(
          {DrawKind::kPatch, (random() >> 1) / kPatchForms * kPatchForms + form, 0, false, {}});
  }
  // Masters are shared with the value pool: at most half of them, and one for all where memory is
  // short.
  const auto wanted = static_cast<uint32_t>(set.draws_.size());
  ASSAY_CHECK(wanted <= kDrawsMax);
  const uint32_t room = std::min(oracle.slots_max() / 2, oracle.oracle_slots_max());
  set.slots_used_ = room >= wanted ? wanted : 1;
  ForEachOutput(oracle.plan(), [&](const ArgumentSpec&) { set.errors_.emplace_back(); });
  const bool own_check = oracle.description().own_check;
  Impostors impostors(oracle.plan(), own_check);
  Learning learning(rule, set.errors_, set.signs_errors_);
  const int64_t begin_ns = MonotonicNs();
  for (size_t i = 0; i < set.draws_.size(); ++i) {
    progress(i, set.draws_.size());
    if (i == 1) {
      set.draw_s_ = static_cast<double>(MonotonicNs() - begin_ns) / 1e9;
      LeaveOut(budget, set.draw_s_, &set.draws_);
    }
    Draw& draw = set.draws_[i];
    if (i == kOrdinaryDraws) LeaveOutScattered(oracle, set.errors_, &set.draws_);
    if (draw.dropped) continue;
    draw.master = set.slots_used_ == 1 ? 0 : static_cast<uint32_t>(i);
    draw.reason = ReasonToLeaveOut(oracle, draw, skip);
    draw.dropped = !draw.reason.empty();
    if (draw.dropped) continue;
    if (auto filled = FillDraw(oracle, &draw); !filled) return std::unexpected(filled.error());
    if (draw.dropped) continue;
    const auto looked = own_check ? AskOwnCheck(oracle, &draw) : learning.LookAt(oracle, &draw);
    if (!looked) return std::unexpected(looked.error());
    if (own_check && i == 0)
      if (auto asked = AskAboutPoison(oracle, draw.master); !asked)
        return std::unexpected(asked.error());
    if (draw.dropped) continue;
    if (auto tried = impostors.Try(oracle, draw, rule, set.errors_); !tried)
      return std::unexpected(tried.error());
  }
  for (const Draw& draw : set.draws_)
    if (draw.kind == DrawKind::kSigns &&
        std::find(skip.begin(), skip.end(), draw.kind) == skip.end())
      set.kept_signs_ = NoteOfKeptSigns(oracle);
  if (auto confirmed = set.Confirm(oracle, rule, &impostors); !confirmed)
    return std::unexpected(confirmed.error());
  set.degenerate_ = impostors.Finding();
  set.constant_outputs_ = impostors.NoteOfConstant();
  return set;
}

HostResult<void> DrawSet::Confirm(Oracle& oracle, const CompareRule& rule,
                                  Impostors* impostors) const {
  int confirmed = 0;
  for (size_t i = draws_.size(); i-- > 0 && confirmed < kConfirmedOn && impostors->MustConfirm();) {
    if (draws_[i].dropped || draws_[i].kind == DrawKind::kSpecialValues) continue;
    const auto master = Master(oracle, i);
    if (!master) return std::unexpected(master.error());
    Draw draw = draws_[i];
    draw.master = *master;
    if (auto tried = impostors->Confirm(oracle, draw, rule, errors_); !tried) return tried;
    ++confirmed;
  }
  return {};
}

std::vector<Draw> DrawSet::Kept() const {
  std::vector<Draw> kept;
  for (const Draw& draw : draws_)
    if (!draw.dropped && draw.kind != DrawKind::kOrdinary &&
        (special_values_ || draw.kind != DrawKind::kSpecialValues))
      kept.push_back(draw);
  return kept;
}

const std::vector<ReferenceError>& DrawSet::ErrorsOf(const Oracle& oracle, DrawKind kind) const {
  return kind == DrawKind::kSigns && LacksTruth(oracle) ? signs_errors_ : errors_;
}

bool DrawSet::has_signs() const {
  return std::any_of(draws_.begin(), draws_.end(), [](const Draw& draw) {
    return draw.kind == DrawKind::kSigns && !draw.dropped;
  });
}

HostResult<uint32_t> DrawSet::Master(Oracle& oracle, size_t index) const {
  const Draw& draw = draws_[index];
  if (slots_used_ > 1) return draw.master;
  return FillFirst(oracle, draw, draw.seed);
}

HostResult<uint32_t> DrawSet::MasterOfConstant(Oracle& oracle, size_t index) const {
  return FillFirst(oracle, draws_[index], 0);
}

HostResult<uint32_t> DrawSet::MasterOfOther(Oracle& oracle, const Draw& draw,
                                            uint64_t version) const {
  return FillFirst(oracle, draw, version);
}

HostResult<void> DrawSet::Restore(Oracle& oracle) const {
  if (slots_used_ == 1) return {};
  auto filled = FillFirst(oracle, draws_.front(), draws_.front().seed);
  if (!filled) return std::unexpected(filled.error());
  return {};
}

HostResult<uint32_t> DrawSet::FillFirst(Oracle& oracle, const Draw& draw, uint64_t version) const {
  const uint32_t master = draws_.front().master;
  if (auto shown = oracle.ShowWeights(version); !shown) return std::unexpected(shown.error());
  const bool float64 = !oracle.description().own_check;
  if (auto filled = oracle.Fill(master, draw.seed, draw.kind, float64); !filled)
    return std::unexpected(filled.error());
  return master;
}

}  // namespace assay
