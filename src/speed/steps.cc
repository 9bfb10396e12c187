#include "speed/steps.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/defences.h"
#include "base/trace.h"
#include "machine/meter.h"
#include "rules/head_start.h"

namespace assay {
namespace {

// Steps of a pair: so many, fewer where calls are long.
constexpr uint32_t kSteps = 5, kStepsMin = 2;
constexpr int64_t kStepsNs = 20'000'000;

// The shortest steps of both sides.
struct BothSteps {
  ShortestStep reference, candidate;
};

// Returns the time to charge a step of the candidate: for work that it may have done while it woke,
// and for work that still ran when it said that it was done.
int64_t OutsideTheClockNs(const BlockTime& block, const PairFacts& pair) {
  const int64_t before_ns = pair.wake_free_ns ? block.woken_ns - *pair.wake_free_ns : 0;
  const int64_t after_ns = block.look_ns - pair.opponents_look_ns - kLookSpikeNs;
  return std::max<int64_t>(0, before_ns) + std::max<int64_t>(0, after_ns);
}

// A step of one side on a value of its own, added to `shortest`, but for one that was void. False:
// it was wrong.
HostResult<bool> RunStep(GateParts& parts, const PairFacts& pair, Side& side, uint32_t slot,
                         ShortestStep* shortest) {
  uint32_t master = 0;
  {
    const Meter meter(&parts.ledger.spent.fill_ns);
    const auto taken = parts.inputs.Take(ValuesOf(side), 1);
    if (!taken) return OpponentsTrouble(taken.error());
    master = taken->front();
    parts.inputs.FillSlot(slot, master);
    side.PoisonSlot(slot);
  }
  const uint32_t order[] = {slot};
  side.Flush(order);
  const bool busy = parts.inputs.TakeBusy();
  const auto block = parts.exchange.RunPrepared(side, order, {});
  if (!block && block.error().kind == HostTrouble::Kind::kVoid) return true;
  if (!block) return TroubleOf(side, block.error());
  double time_ns = block->call_ns;
  if (side.is_candidate() && Stands(Defence::kHeadStart))
    time_ns += static_cast<double>(OutsideTheClockNs(*block, pair));
  shortest->Add(time_ns, busy || block->disturbed);
  if (!side.is_candidate()) return true;
  const BlockCheck check = side.CheckOne(slot, master, nullptr);
  parts.ledger.checks.Add(check);
  return !check.wrong;
}

}  // namespace

HostResult<bool> RunSteps(GateParts& parts, const PairFacts& pair, Side& reference,
                          Side& candidate) {
  const Span span("steps");
  const uint32_t count = std::min({kSteps, parts.length.slots, parts.inputs.Limits().pool_slots});
  const std::vector<uint32_t> slots = RandomOrder(parts.length.slots, count, parts.random);
  BothSteps steps;
  const int64_t begin_ns = MonotonicNs();
  for (uint32_t step = 0; step < count; ++step) {
    if (step >= kStepsMin && MonotonicNs() - begin_ns > kStepsNs) break;
    const bool candidate_first = parts.Toss();
    for (const bool is_candidate : {candidate_first, !candidate_first}) {
      auto right = RunStep(parts, pair, is_candidate ? candidate : reference, slots[step],
                           is_candidate ? &steps.candidate : &steps.reference);
      if (!right || !*right) return right;
    }
  }
  parts.ledger.AddSteps({pair.row.reference_ns, pair.row.candidate_ns, steps.reference.time_ns(),
                         steps.candidate.time_ns()});
  return true;
}

}  // namespace assay
