#include "pipeline/live_slots.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/clock.h"
#include "base/defences.h"

namespace assay {
namespace {

// Memory that the live slots may take at most, unless two slots need more.
constexpr uint64_t kLiveBytesMax = uint64_t{512} << 20;

}  // namespace

Result<LiveSlots> LiveSlots::Create(const Oracle& oracle) {
  LiveSlots live;
  ASSAY_ASSIGN_OR_RETURN(live.plan_, SharedRegion::Create("assay-plan", sizeof(wire::Plan)));
  *live.plan_.as<wire::Plan>() = oracle.plan();
  const wire::Plan& plan = live.plan();
  live.capacity_ = static_cast<uint32_t>(std::clamp<uint64_t>(
      kLiveBytesMax / (plan.input_stride + plan.output_stride), 2, wire::kCallsMax + 64));
  ASSAY_ASSIGN_OR_RETURN(live.inputs_,
                         SharedRegion::Create("assay-inputs", live.capacity_ * plan.input_stride));
  if (Stands(Defence::kReadOnlyInputs)) ASSAY_RETURN_IF_ERROR(live.inputs_.SealAgainstNewWriters());
  ASSAY_RETURN_IF_ERROR(live.plan_.SealAgainstNewWriters());
  std::random_device device;
  live.guard_ = uint64_t{device()} << 32 | device();
  live.SetSlotCount(2);
  return live;
}

void LiveSlots::SetSlotCount(uint32_t count) {
  ASSAY_CHECK(count <= capacity_);
  plan_.as<wire::Plan>()->slot_count = count;
}

void LiveSlots::FillInputs(const Oracle& oracle, std::span<const uint32_t> masters) {
  ASSAY_CHECK(masters.size() <= plan().slot_count);
  const uint64_t stride = plan().input_stride;
  filled_ = std::max(filled_, static_cast<uint32_t>(masters.size()));
  for (size_t i = 0; i < masters.size(); ++i)
    CopyPastCaches(inputs_.data() + i * stride, oracle.inputs(masters[i]), stride);
}

void LiveSlots::FillInput(const Oracle& oracle, uint32_t slot, uint32_t master) {
  ASSAY_CHECK(slot < plan().slot_count);
  const uint64_t stride = plan().input_stride;
  filled_ = std::max(filled_, slot + 1);
  CopyPastCaches(inputs_.data() + slot * stride, oracle.inputs(master), stride);
}

void LiveSlots::Clear() {
  std::memset(inputs_.data(), 0, filled_ * plan().input_stride);
  filled_ = 0;
}

void LiveSlots::FlushInput(uint32_t slot) const {
  FlushFromCaches(inputs_.data() + slot * plan().input_stride, plan().input_stride);
}

void LiveSlots::FlushInputs(const Oracle& oracle, std::span<const uint32_t> slots) const {
  for (const uint32_t slot : slots) FlushInput(slot);
  FlushFromCaches(oracle.weights().data(), oracle.weights().size_bytes());
}

Result<SharedRegion> LiveSlots::CreateOutputs() const {
  ASSAY_ASSIGN_OR_RETURN(SharedRegion outputs,
                         SharedRegion::Create("assay-outputs", capacity_ * plan().output_stride));
  ASSAY_RETURN_IF_ERROR(outputs.SealSize());
  return outputs;
}

ValuePool::ValuePool(Oracle& oracle, uint32_t first, uint32_t capacity, uint64_t seed,
                     std::vector<Draw> probes)
    : oracle_(oracle),
      first_(first),
      capacity_(capacity),
      random_(seed),
      probes_(std::move(probes)),
      probes_seen_(probes_.size()) {}

void ValuePool::BeginProcess() {
  // Which batch comes when differs from process to process.
  std::shuffle(batches_.begin(), batches_.end(), random_);
  for (Batch& batch : batches_) batch.seen = false;
  probes_seen_.assign(probes_.size(), false);
}

ValuePool::Batch* ValuePool::Unseen(uint32_t count) {
  const auto found = std::find_if(batches_.begin(), batches_.end(), [count](const Batch& batch) {
    return batch.masters.size() == count && (!batch.seen || !Stands(Defence::kFreshValues));
  });
  return found == batches_.end() ? nullptr : &*found;
}

ValuePool::Batch& ValuePool::Reusable(uint32_t count) {
  if (placed_ + count > capacity_) {
    // Full: all batches of this size were seen. One of them is filled anew; where there is none,
    // the room is shared out again.
    for (Batch& batch : batches_)
      if (batch.masters.size() == count) return batch;
    batches_.clear();
    placed_ = 0;
  }
  Batch& batch = batches_.emplace_back();
  batch.masters.resize(count);
  std::iota(batch.masters.begin(), batch.masters.end(), first_ + placed_);
  placed_ += count;
  return batch;
}

HostResult<ValuePool::Values> ValuePool::Take(uint32_t count) {
  ASSAY_CHECK(count <= capacity_);
  Batch* batch = Unseen(count);
  if (batch == nullptr) {
    batch = &Reusable(count);
    if (auto drawn = Refill(*batch); !drawn) {
      batches_.clear();
      placed_ = 0;
      return std::unexpected(drawn.error());
    }
    // The next one of this size to be drawn anew is another.
    std::rotate(batches_.begin() + (batch - batches_.data()),
                batches_.begin() + (batch - batches_.data()) + 1, batches_.end());
    batch = &batches_.back();
  }
  batch->seen = true;
  if (Stands(Defence::kFreshValues))
    std::shuffle(batch->masters.begin(), batch->masters.end(), random_);
  oracle_.ShowWeights(batch->weights);
  Values values{batch->masters, nullptr};
  if (batch->probe && !probes_seen_[*batch->probe]) values.probe = &probes_[*batch->probe];
  return values;
}

void ValuePool::MarkShown(const Draw* probe) {
  probes_seen_[static_cast<size_t>(probe - probes_.data())] = true;
}

double ValuePool::CostNs(uint32_t count) const {
  const bool at_hand = std::any_of(batches_.begin(), batches_.end(), [count](const Batch& batch) {
    return batch.masters.size() == count && !batch.seen;
  });
  if (at_hand) return 0;
  return count * CostOfOneNs();
}

double ValuePool::CostOfOneNs() const {
  return static_cast<double>(drawing_ns_) / static_cast<double>(std::max<int64_t>(1, drawn_));
}

HostResult<void> ValuePool::Refill(Batch& batch) {
  const int64_t begin_ns = MonotonicNs();
  batch.probe.reset();
  if (!probes_.empty()) {
    // Dealt like cards: every one comes before one comes again.
    if (deck_.empty()) {
      deck_.resize(probes_.size());
      std::iota(deck_.begin(), deck_.end(), size_t{0});
      std::shuffle(deck_.begin(), deck_.end(), random_);
    }
    batch.probe = deck_.back();
    deck_.pop_back();
  }
  batch.weights = batch.probe ? probes_[*batch.probe].seed : random_() >> 1 | 1;
  oracle_.ShowWeights(batch.weights);
  for (const uint32_t master : batch.masters)
    if (auto done = oracle_.Fill(master, random_() >> 1, wire::DrawKind::kOrdinary, false); !done)
      return std::unexpected(done.error());
  drawing_ns_ += MonotonicNs() - begin_ns;
  drawn_ += static_cast<int64_t>(batch.masters.size());
  return {};
}

}  // namespace assay
