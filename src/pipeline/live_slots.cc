#include "pipeline/live_slots.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"

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
  ASSAY_RETURN_IF_ERROR(live.inputs_.SealAgainstNewWriters());
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
  for (size_t i = 0; i < masters.size(); ++i)
    CopyPastCaches(inputs_.data() + i * stride, oracle.inputs(masters[i]), stride);
}

void LiveSlots::FlushInputs(const Oracle& oracle, std::span<const uint32_t> slots) const {
  for (const uint32_t slot : slots)
    FlushFromCaches(inputs_.data() + slot * plan().input_stride, plan().input_stride);
  FlushFromCaches(oracle.weights().data(), oracle.weights().size_bytes());
}

Result<SharedRegion> LiveSlots::CreateOutputs() const {
  ASSAY_ASSIGN_OR_RETURN(SharedRegion outputs,
                         SharedRegion::Create("assay-outputs", capacity_ * plan().output_stride));
  ASSAY_RETURN_IF_ERROR(outputs.SealSize());
  return outputs;
}

ValuePool::ValuePool(Oracle& oracle, uint32_t first, uint32_t capacity, uint64_t seed)
    : oracle_(oracle), first_(first), capacity_(capacity), random_(seed) {}

void ValuePool::BeginProcess() {
  order_ = filled_;
  std::shuffle(order_.begin(), order_.end(), random_);
  next_ = 0;
}

HostResult<std::span<const uint32_t>> ValuePool::Take(uint32_t count) {
  ASSAY_CHECK(count <= capacity_);
  while (order_.size() - next_ < count && filled_.size() < capacity_) {
    const uint32_t master = first_ + static_cast<uint32_t>(filled_.size());
    if (auto drawn = Draw(master); !drawn) return std::unexpected(drawn.error());
    filled_.push_back(master);
    order_.push_back(master);
  }
  if (order_.size() - next_ < count) {
    // The pool is full and this process has seen it all: every value is drawn anew.
    for (const uint32_t master : filled_)
      if (auto drawn = Draw(master); !drawn) return std::unexpected(drawn.error());
    BeginProcess();
  }
  const std::span<const uint32_t> taken(order_.data() + next_, count);
  next_ += count;
  return taken;
}

double ValuePool::CostNs(uint32_t count) const {
  const size_t at_hand = order_.size() - next_;
  if (at_hand >= count) return 0;
  const size_t missing = count - at_hand;
  const size_t draws = filled_.size() + missing <= capacity_ ? missing : filled_.size();
  return static_cast<double>(drawing_ns_) / static_cast<double>(std::max<int64_t>(1, drawn_)) *
         static_cast<double>(draws);
}

HostResult<void> ValuePool::Draw(uint32_t master) {
  const int64_t begin_ns = MonotonicNs();
  auto done = oracle_.Fill(master, random_() >> 1, wire::DrawKind::kOrdinary, false);
  drawing_ns_ += MonotonicNs() - begin_ns;
  ++drawn_;
  if (!done) return std::unexpected(done.error());
  return {};
}

}  // namespace assay
