// How many calls the blocks of a pair have.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/defences.h"
#include "base/median.h"
#include "base/trace.h"
#include "machine/meter.h"
#include "speed/pair_runner.h"

namespace assay {
namespace {

// A block of the faster side lasts about this long: the doorbell (1 us spinning, 50 us on a futex)
// and what a head start between wake-up and go could hide (about 50 us) stay near 1%.
constexpr double kBlockNs = 2.5e6;
// On a device, where the values that every call takes are dear.
constexpr double kDeviceBlockNs = 1e6;
// A block of the slower side lasts at most about this long, unless one call does.
constexpr double kSlowBlockNs = 2e8;
// Blocks of a pair, each with values of its own; and slots that a block may have in any case.
constexpr uint32_t kBlocksOfAPair = 8, kSlotsEnough = 64;
// Drawing the values of one block takes at most about this long.
constexpr double kDrawNs = 0.8e9;
// What a host may take to prepare slots anew.
constexpr double kEnterAgainS = 120;
}  // namespace

double PairRunner::block_ns() const { return setup_.live.on_device() ? kDeviceBlockNs : kBlockNs; }

// On a device a pair's values are dear to draw, and lie there for the next: those of all its blocks
// together, unless blocks would get short.
uint32_t PairRunner::PoolRoom() const {
  const uint32_t all = setup_.pool.capacity();
  return setup_.live.on_device() ? std::min(all, std::max(all / kBlocksOfAPair, kSlotsEnough))
                                 : all;
}

uint32_t PairRunner::CallsFor(double reference_ns, double candidate_ns) const {
  const double wanted =
      std::ceil(block_ns() / std::max(100.0, std::min(reference_ns, candidate_ns)));
  const double bearable = std::floor(kSlowBlockNs / std::max(reference_ns, candidate_ns));
  const uint32_t room = std::min(setup_.live.capacity(), PoolRoom());
  const double drawable = std::max(16.0, kDrawNs / std::max(1.0, setup_.pool.CostOfOneNs()));
  const double limit = std::min({double{wire::kCallsMax}, (room - 1) * 8.0 / 9.0, drawable});
  const auto calls = static_cast<uint32_t>(std::max(1.0, std::min({wanted, bearable, limit})));
  if (!setup_.live.on_device()) return calls;
  // Steps of a half or a third: candidates of one problem share the values that were drawn.
  const uint32_t power = std::bit_floor(calls);
  return calls >= power + power / 2 ? power + power / 2 : power;
}

void PairRunner::SetCalls(uint32_t calls) {
  calls_ = calls;
  calls_spare_ = 1 + calls_ / 8;
  slots_ = std::min({setup_.live.capacity(), setup_.pool.capacity(), calls_ + calls_spare_});
  PrepareSlots(slots_);
}

// On a device hosts prepare no fewer slots than before: a warm host keeps its views then, which
// take long to make.
void PairRunner::PrepareSlots(uint32_t count) {
  if (setup_.live.on_device())
    count = std::min(std::bit_ceil(std::max(count, setup_.live.slot_count_most())),
                     setup_.live.capacity());
  setup_.live.SetSlotCount(count);
}

bool PairRunner::MoreCalls(double reference_ns, double candidate_ns) {
  if (!Stands(Defence::kLongBlocks) || budget_->Expired()) return false;
  if (calls_ * std::min(reference_ns, candidate_ns) > block_ns() / 2) return false;
  const uint32_t calls = CallsFor(reference_ns, candidate_ns);
  if (calls < 2 * calls_) return false;
  SetCalls(calls);
  call_ns_ = std::max(100.0, std::min(reference_ns, candidate_ns));
  return true;
}

HostResult<bool> PairRunner::Lengthen(const RoundTimes& block, Side early, Side late) {
  if (!MoreCalls(block.reference_ns[0], block.candidate_ns[0])) return false;
  const Span span("lengthen blocks");
  Meter meter(&result_->spent.start_ns);
  for (const Side side : {early, late})
    if (auto entered = EnterBlocks(*side.host, setup_.live, kEnterAgainS); !entered)
      return TroubleOf(side, entered.error());
  return true;
}

// A candidate that dawdles until its calls are counted out would get blocks so short that what it
// hides of them counts.
bool PairRunner::Grow() {
  const double reference_ns = Median({reference_ns_.end() - 2 * rounds_, reference_ns_.end()});
  const double candidate_ns = Median({candidate_ns_.end() - 2 * rounds_, candidate_ns_.end()});
  if (!MoreCalls(reference_ns, candidate_ns)) return false;
  const size_t kept = reference_ns_.size() - 2 * static_cast<size_t>(rounds_);
  reference_ns_.resize(kept);
  candidate_ns_.resize(kept);
  return true;
}

}  // namespace assay
