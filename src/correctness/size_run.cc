#include "correctness/size_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/trace.h"
#include "hosts/blame.h"
#include "machine/meter.h"

namespace assay {
namespace {

// A call's module has a slot of its own, and its inputs come from either of two others.
constexpr uint32_t kSlots = 2, kSlotsWhereInputsMove = 3;

bool MovesInputs(const AtSize& size) {
  const wire::Plan& plan = size.live.plan();
  return size.hosts.IsPython() && size.live.capacity() >= kSlotsWhereInputsMove &&
         std::none_of(plan.arguments, plan.arguments + plan.argument_count, wire::IsChangedInput);
}

// At the size that was asked for: another one would need a reference of its own for it.
bool ComparesState(const AtSize& size) {
  return size.where.empty() && size.hosts.IsPython() && size.oracle.description().changes_state &&
         !size.options.problem.ignores_state;
}

Result<std::optional<Gate1Result>> RunOnHost(const AtSize& size, const SizeRunTerms& terms,
                                             LiveHost& host, Verdict* verdict) {
  const int64_t begin_ns = MonotonicNs();
  const std::string stage = "correctness (gate 1)" + size.where;
  const Gate1Setup setup{size.oracle,
                         size.options,
                         size.live,
                         size.draws,
                         size.rule,
                         terms.tolerance,
                         terms.call_timeout_s,
                         size.constant_weights,
                         MovesInputs(size),
                         ComparesState(size),
                         [&](size_t done, size_t all) {
                           terms.progress(fmt::format("{}: draw {} of {}", stage, done + 1, all),
                                          static_cast<double>(done) / static_cast<double>(all));
                         }};
  auto result = RunGate1(setup, host);
  if (!result) {
    size.live.NoteTrouble();
    HostTrouble trouble = result.error();
    if (const std::string fault = DescribeFault(host, size.live); !fault.empty())
      trouble.message = fault + "; " + trouble.message;
    ASSAY_RETURN_IF_ERROR(Blame(trouble, "gate 1" + size.where, terms.stop, verdict));
    return std::nullopt;
  }
  if (result->lacked_memory) size.live.NoteTrouble();
  if (size.where.empty() || !result->correctness.passed) AddPrinted(host.host.Output(), verdict);
  verdict->cost.timed_s += Seconds(result->timed_ns);
  verdict->cost.fill_s += Seconds(MonotonicNs() - begin_ns - result->timed_ns);
  Correctness& correctness = result->correctness;
  const std::string weights = NoteOf(host.weights);
  if (!weights.empty())
    correctness.note = weights + (correctness.note.empty() ? "" : "; " + correctness.note);
  result->weights = host.weights;
  return std::move(*result);
}

}  // namespace

Result<std::optional<Gate1Result>> RunAtSize(const AtSize& size, const SizeRunTerms& terms,
                                             Verdict* verdict) {
  const Span span(size.where.empty() ? "gate 1" : "gate 1 at another size");
  const int64_t begin_ns = MonotonicNs();
  size.live.SetSlotCount(
      std::min(MovesInputs(size) ? kSlotsWhereInputsMove : kSlots, size.live.capacity()));
  size.live.Clear();
  auto host = size.hosts.Take(0, 1);
  verdict->cost.start_s += Seconds(MonotonicNs() - begin_ns);
  if (!host) {
    ASSAY_RETURN_IF_ERROR(Blame(host.error(), "loading" + size.where, terms.stop, verdict));
    return std::nullopt;
  }
  auto result = RunOnHost(size, terms, *host, verdict);
  if (terms.ending != nullptr) terms.ending->Add(std::move(*host));
  return result;
}

}  // namespace assay
