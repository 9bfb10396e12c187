// Steps: single calls of a pair's two sides, outside of any row of calls (rules/steps.h).
#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/defences.h"
#include "base/median.h"
#include "base/trace.h"
#include "machine/meter.h"
#include "rules/head_start.h"
#include "speed/pair_runner.h"

namespace assay {
namespace {

// Steps of a pair: so many, fewer where calls are long.
constexpr uint32_t kSteps = 5, kStepsMin = 2;
constexpr int64_t kStepsNs = 40'000'000;

}  // namespace

HostResult<bool> PairRunner::RunStep(Side side, uint32_t slot, uint32_t master,
                                     ShortestStep* shortest) {
  {
    Meter meter(&result_->spent.fill_ns);
    setup_.live.PoisonSlot(side.host->outputs, slot);
  }
  const uint32_t order[] = {slot};
  setup_.live.FlushInput(slot);
  block_disturbed_ = setup_.live.TakeBusy();
  auto time = RunFilled(side, order, nullptr);
  if (!time && time.error().kind == HostTrouble::Kind::kVoid) return true;
  if (!time) return TroubleOf(side, time.error());
  // What still ran when it said that it was done.
  if (side.is_candidate && Stands(Defence::kHeadStart))
    *time += static_cast<double>(
        std::max<int64_t>(0, last_look_ns_ - opponents_look_ns_ - kLookSpikeNs));
  shortest->Add(*time, block_disturbed_);
  return !side.is_candidate || CheckOne(side, slot, master, nullptr);
}

HostResult<bool> PairRunner::RunStepsOf(Side reference, Side tried, uint32_t count,
                                        bool own_weights, ShortestStep* of_reference,
                                        ShortestStep* of_candidate) {
  const std::vector<uint32_t> slots = RandomOrder(slots_, count);
  std::vector<uint32_t> masters;
  const int64_t begin_ns = MonotonicNs();
  for (uint32_t step = 0; step < count; ++step) {
    if (step >= kStepsMin && MonotonicNs() - begin_ns > kStepsNs) break;
    {
      Meter meter(&result_->spent.fill_ns);
      if (own_weights || step == 0) {
        const auto taken = setup_.pool.Take(own_weights ? 1 : count);
        if (!taken) return OpponentsTrouble(taken.error());
        masters.insert(masters.end(), taken->masters.begin(), taken->masters.end());
      }
      setup_.live.FillInput(setup_.oracle, slots[step], masters[step]);
    }
    const bool candidate_first = random_() % 2 == 0;
    for (const Side side :
         {candidate_first ? tried : reference, candidate_first ? reference : tried}) {
      auto right = RunStep(side, slots[step], masters[step],
                           side.is_candidate ? of_candidate : of_reference);
      if (!right || !*right) return right;
    }
  }
  return true;
}

HostResult<bool> PairRunner::RunSteps(Side reference, Side tried) {
  const Span span("steps");
  const uint32_t count = std::min({kSteps, slots_, setup_.pool.capacity()});
  StepTimes times;
  times.reference_row_ns = Median({reference_ns_.end() - 2 * rounds_, reference_ns_.end()});
  times.candidate_row_ns = Median({candidate_ns_.end() - 2 * rounds_, candidate_ns_.end()});
  ShortestStep reference_step, candidate_step, reference_changed, candidate_changed;
  auto right = RunStepsOf(reference, tried, count, false, &reference_step, &candidate_step);
  if (right && *right && setup_.oracle.weights_vary())
    right = RunStepsOf(reference, tried, count, true, &reference_changed, &candidate_changed);
  if (!right || !*right) return right;
  times.reference_step_ns = reference_step.time_ns();
  times.candidate_step_ns = candidate_step.time_ns();
  times.reference_changed_ns = reference_changed.time_ns();
  times.candidate_changed_ns = candidate_changed.time_ns();
  const bool stepped = times.reference_step_ns > 0 && times.candidate_step_ns > 0;
  const bool changed = !setup_.oracle.weights_vary() ||
                       (times.reference_changed_ns > 0 && times.candidate_changed_ns > 0);
  ++pairs_stepped_;
  if (!stepped || !changed) ++pairs_without_step_;
  if (stepped) {
    steps_.push_back(times);
    result_->samples.back().alone = CallsAlone{
        std::llround(times.reference_step_ns), std::llround(times.candidate_step_ns),
        std::llround(times.reference_changed_ns), std::llround(times.candidate_changed_ns)};
  }
  return right;
}

}  // namespace assay
