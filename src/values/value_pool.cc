#include "values/value_pool.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/clock.h"
#include "base/defences.h"
#include "base/trace.h"

namespace assay {
namespace {

// Values of a pool, with their expected outputs.
constexpr uint64_t kPoolBytes = uint64_t{1} << 30, kDevicePoolBytes = uint64_t{1} << 35;

}  // namespace

uint32_t ValuePool::CapacityFor(const Oracle& oracle, uint32_t first) {
  const uint64_t value_bytes = oracle.plan().input_stride + oracle.plan().output_stride;
  const uint64_t pool_bytes = oracle.on_device() ? kDevicePoolBytes : kPoolBytes;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(pool_bytes / value_bytes, 1, oracle.slots_max() - first));
}

ValuePool::ValuePool(Oracle& oracle, uint32_t first, uint32_t capacity, uint64_t seed,
                     std::vector<Draw> probes, bool with_signs)
    : oracle_(oracle),
      random_(seed),
      probes_(std::move(probes)),
      with_signs_(with_signs),
      batches_(first, capacity) {}

void ValuePool::BeginProcess() {
  batches_.BeginProcess(random_);
  probes_seen_ = 0;
  deck_.resize(probes_.size());
  std::iota(deck_.begin(), deck_.end(), size_t{0});
  std::shuffle(deck_.begin(), deck_.end(), random_);
}

HostResult<ValuePool::Values> ValuePool::Take(ValuesFor side, uint32_t count) {
  ValueBatch* batch = side == ValuesFor::kOpponent
                          ? batches_.FindSeen(count, random_)
                          : batches_.Find(count, !Stands(Defence::kFreshValues));
  if (batch == nullptr || !Holds(*batch)) {
    if (batch == nullptr) batch = &batches_.Renew(count);
    if (auto drawn = Refill(*batch); !drawn) {
      batches_.Clear();
      return std::unexpected(drawn.error());
    }
  }
  batch->seen = true;
  if (Stands(Defence::kFreshValues))
    std::shuffle(batch->masters.begin(), batch->masters.end(), random_);
  return Values{std::span<const uint32_t>(batch->masters).first(count), ProbeFor(side)};
}

const Draw* ValuePool::ProbeFor(ValuesFor side) {
  if (side == ValuesFor::kCandidate)
    return probes_seen_ < deck_.size() ? &probes_[deck_[probes_seen_]] : nullptr;
  return probes_seen_ > 0 ? &probes_[deck_[random_() % probes_seen_]] : nullptr;
}

void ValuePool::MarkShown() { ++probes_seen_; }

double ValuePool::CostNs(uint32_t count) {
  const ValueBatch* found = batches_.Find(count, false);
  return found != nullptr && Holds(*found) ? 0 : count * CostOfOneNs();
}

double ValuePool::CostOfOneNs() const {
  return static_cast<double>(drawing_ns_) / static_cast<double>(std::max<int64_t>(1, drawn_));
}

HostResult<uint32_t> ValuePool::MasterOf(const Draw& probe) {
  if (oracle_.seed_of(probe.master) == probe.seed && oracle_.kind_of(probe.master) == probe.kind)
    return probe.master;
  const Span span("make an unusual draw again");
  if (auto shown = oracle_.ShowWeights(probe.seed); !shown) return std::unexpected(shown.error());
  const bool float64 = !oracle_.description().own_check;
  if (auto filled = oracle_.Fill(probe.master, probe.seed, probe.kind, float64); !filled)
    return std::unexpected(filled.error());
  return probe.master;
}

bool ValuePool::Holds(const ValueBatch& batch) const {
  return batch.fill == oracle_.fill_number(batch.first());
}

HostResult<void> ValuePool::Refill(ValueBatch& batch) {
  const Span span("draw values");
  const int64_t begin_ns = MonotonicNs();
  // A batch's masters lie in a row, in whatever order it has them.
  const uint32_t first = batch.first();
  const auto count = static_cast<uint32_t>(batch.masters.size());
  if (auto done = oracle_.FillOrdinary(first, count, random_() >> 2, with_signs_); !done)
    return std::unexpected(done.error());
  batch.fill = oracle_.fill_number(first);
  drawing_ns_ += MonotonicNs() - begin_ns;
  drawn_ += static_cast<int64_t>(batch.masters.size());
  return {};
}

}  // namespace assay
