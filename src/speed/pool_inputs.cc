#include "speed/pool_inputs.h"

#include "base/defences.h"

namespace assay {

BlockLimits PoolInputs::Limits() const {
  const wire::Plan& plan = values_.live.plan();
  return {values_.live.on_device(), values_.live.capacity(), values_.pool.capacity(),
          values_.pool.CostOfOneNs(), wire::PassedCount(plan) < plan.argument_count};
}

void PoolInputs::Prepare(uint32_t slots) {
  values_.live.SetSlotCount(SlotsToPrepare(slots, values_.live.slot_count_most(), Limits()));
}

HostResult<FilledSlots> PoolInputs::Fill(ValuesFor side, uint32_t slots, uint32_t calls) {
  auto taken = values_.pool.Take(side, slots);
  if (!taken) return std::unexpected(taken.error());
  FilledSlots filled;
  filled.masters.assign(taken->masters.begin(), taken->masters.end());
  // One call of a block, where there are several, has values as unusual as in gate 1: who is right
  // there alone is found out. A block of one call is so now and then.
  const bool with_probe = calls > 1 || random_() % 4 == 0;
  if (taken->probe != nullptr && with_probe && Stands(Defence::kTimedDraws)) {
    filled.probe = taken->probe;
    if (side == ValuesFor::kCandidate) values_.pool.MarkShown();
    filled.probe_slot = static_cast<uint32_t>(random_() % filled.masters.size());
    const auto master = values_.pool.MasterOf(*filled.probe);
    if (!master) return std::unexpected(master.error());
    filled.masters[filled.probe_slot] = *master;
  }
  values_.live.FillInputs(values_.oracle, filled.masters);
  return filled;
}

HostResult<std::vector<uint32_t>> PoolInputs::Take(ValuesFor side, uint32_t count) {
  const auto taken = values_.pool.Take(side, count);
  if (!taken) return std::unexpected(taken.error());
  return std::vector<uint32_t>(taken->masters.begin(), taken->masters.end());
}

void PoolInputs::FillSlot(uint32_t slot, uint32_t master) {
  values_.live.FillInput(values_.oracle, slot, master);
}

}  // namespace assay
