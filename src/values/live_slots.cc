#include "values/live_slots.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/defences.h"
#include "base/trace.h"

namespace assay {
namespace {

// Memory that the live slots may take at most on the processor, unless two slots need more.
constexpr uint64_t kLiveBytesMax = uint64_t{512} << 20;
// Lines of output compared between "done" and the freeze, about 30 us later.
constexpr uint32_t kSampleLines = 128;
// The same of results that are read in their host's memory, where a line takes longer: the look
// itself must not give time to whoever still writes, and blocks are many.
constexpr uint32_t kLeftSampleLines = 32;
// Of each result that was left: a call that leaves out a tenth of it passes once in 800.
constexpr uint32_t kPoisonedLines = 64;

uint32_t ResultCount(const wire::Plan& plan) {
  uint32_t count = 0;
  ForEachResult(plan, [&](const wire::ArgumentSpec&) { ++count; });
  return count;
}

}  // namespace

Result<LiveSlots> LiveSlots::Create(const Oracle& oracle, JudgeDevice* device) {
  LiveSlots live;
  ASSAY_ASSIGN_OR_RETURN(live.plan_, SharedRegion::Create("assay-plan", sizeof(wire::Plan)));
  *live.plan_.as<wire::Plan>() = oracle.plan();
  const wire::Plan& plan = live.plan();
  const uint64_t affordable =
      device == nullptr
          ? kLiveBytesMax / (plan.input_stride + plan.weights_stride + plan.output_stride)
          : oracle.MemoryShared().slots;
  const uint64_t told = wire::kResultsMax / std::max<uint64_t>(1, ResultCount(plan));
  live.capacity_ = static_cast<uint32_t>(std::clamp<uint64_t>(
      affordable, device == nullptr ? 2 : 1, std::min<uint64_t>(wire::kCallsMax + 64, told)));
  ASSAY_ASSIGN_OR_RETURN(live.inputs_,
                         SharedRegion::Create("assay-inputs", live.capacity_ * plan.input_stride));
  if (device == nullptr) {
    ASSAY_ASSIGN_OR_RETURN(
        live.weights_, SharedRegion::Create("assay-weights", WeightsBytes(plan, live.capacity_)));
    live.versions_.resize(live.capacity_);
    ASSAY_RETURN_IF_ERROR(live.weights_.SealAgainstNewWriters());
  }
  if (Stands(Defence::kReadOnlyInputs)) ASSAY_RETURN_IF_ERROR(live.inputs_.SealAgainstNewWriters());
  ASSAY_RETURN_IF_ERROR(live.plan_.SealAgainstNewWriters());
  std::random_device random;
  live.guard_ = uint64_t{random()} << 32 | random();
  if (device != nullptr) {
    ASSAY_ASSIGN_OR_RETURN(
        DeviceSlots slots,
        DeviceSlots::Create(*device, plan, oracle.varied_weights(), live.capacity_, live.guard_));
    live.device_ = std::make_unique<DeviceSlots>(std::move(slots));
    live.results_bytes_ = LeftResultsBytes(plan, live.capacity_, oracle.memory_bytes());
    // As it loads, a host draws inputs and has a copy of them.
    live.working_bytes_ =
        2 * plan.input_stride +
        std::max(plan.output_stride, static_cast<uint64_t>(oracle.account().peak_bytes));
    live.memory_.emplace(device->gpu(),
                         HostBytes({.outputs_bytes = live.capacity_ * plan.output_stride,
                                    .results_bytes = live.results_bytes_,
                                    .weights_bytes = plan.weights_stride,
                                    .working_bytes = live.working_bytes_}),
                         oracle.FitsBarely());
  }
  live.SetSlotCount(std::min(2u, live.capacity_));
  // Hosts load their weights from here.
  const uint32_t first[] = {0};
  live.varied_ = oracle.varied_weights();
  live.ShowWeights(first, std::vector<uint64_t>{0});
  return live;
}

void LiveSlots::Note(Result<void> done) const {
  if (!done && !device_error_) device_error_ = std::move(done).error();
}

void LiveSlots::SetSlotCount(uint32_t count) {
  ASSAY_CHECK(count <= capacity_);
  plan_.as<wire::Plan>()->slot_count = count;
  slot_count_most_ = std::max(slot_count_most_, count);
}

void LiveSlots::FillInputs(const Oracle& oracle, std::span<const uint32_t> masters) {
  std::vector<uint32_t> slots(masters.size());
  std::iota(slots.begin(), slots.end(), 0u);
  FillSlots(oracle, slots, masters);
}

void LiveSlots::FillInput(const Oracle& oracle, uint32_t slot, uint32_t master) {
  FillSlots(oracle, {&slot, 1}, {&master, 1});
}

void LiveSlots::FillSlots(const Oracle& oracle, std::span<const uint32_t> slots,
                          std::span<const uint32_t> masters) {
  std::vector<uint64_t> versions;
  for (size_t i = 0; i < slots.size(); ++i) {
    CopyInputs(oracle, slots[i], masters[i]);
    versions.push_back(oracle.weights_of(masters[i]));
  }
  ShowWeights(slots, versions);
}

void LiveSlots::ShowWeights(std::span<const uint32_t> slots, std::span<const uint64_t> versions) {
  if (device_ != nullptr) return Note(device_->FillWeights(slots, versions));
  const uint64_t stride = plan().weights_stride;
  for (size_t i = 0; i < slots.size() && stride > 0; ++i) {
    std::optional<uint64_t>& version = versions_[slots[i]];
    if (version == versions[i]) continue;
    varied_->Write(versions[i], !version, weights_.data() + slots[i] * stride);
    version = versions[i];
  }
}

void LiveSlots::CopyInputs(const Oracle& oracle, uint32_t slot, uint32_t master) {
  ASSAY_CHECK(slot < plan().slot_count);
  const uint64_t stride = plan().input_stride;
  filled_ = std::max(filled_, slot + 1);
  if (device_ == nullptr)
    return CopyPastCaches(inputs_.data() + slot * stride, oracle.inputs(master), stride);
  Note(device_->FillInput(slot, oracle.device_inputs(master)));
  ForEachNumber(plan(), [&](const wire::ArgumentSpec& number) {
    std::memcpy(inputs_.data() + slot * stride + number.offset,
                oracle.numbers(master) + number.offset, number.size_bytes);
  });
}

void LiveSlots::Clear() {
  const Span span("clear slots");
  if (device_ == nullptr) {
    std::memset(inputs_.data(), 0, filled_ * plan().input_stride);
    for (uint32_t slot = 0; slot < filled_; ++slot)
      if (versions_[slot].value_or(0) != 0) {
        const uint64_t none[] = {0};
        ShowWeights({&slot, 1}, none);
      }
  } else {
    // Of this memory only numbers are in use there: touching the rest would take the time, and the
    // memory, of as many bytes as lie on the device.
    for (uint32_t slot = 0; slot < filled_; ++slot)
      ForEachNumber(plan(), [&](const wire::ArgumentSpec& number) {
        std::memset(inputs_.data() + slot * plan().input_stride + number.offset, 0,
                    number.size_bytes);
      });
    Note(device_->Clear(filled_));
  }
  filled_ = 0;
}

bool LiveSlots::InputsHold(std::span<const uint32_t> slots) const {
  const Span span("inputs hold");
  return device_ == nullptr || NoteOr(device_->InputsStand(slots), true);
}

void LiveSlots::BeginCandidate() {
  if (memory_) memory_->Begin();
  device_error_.reset();
}

void LiveSlots::NoteTrouble() const {
  if (memory_) memory_->NoteTrouble();
}

std::optional<std::string> LiveSlots::MemoryTaken() const {
  return memory_ ? memory_->Taken() : std::nullopt;
}

bool LiveSlots::TakeBusy() const { return device_ != nullptr && device_->TakeBusy(); }

std::optional<ClockState> LiveSlots::Clock() const {
  return device_ != nullptr ? device_->Clock() : std::nullopt;
}

void LiveSlots::FlushInputs(std::span<const uint32_t> slots) const {
  if (device_ != nullptr) return Note(device_->FlushCaches());
  for (const uint32_t slot : slots) {
    FlushFromCaches(inputs_.data() + slot * plan().input_stride, plan().input_stride);
    FlushFromCaches(weights_.data() + slot * plan().weights_stride, plan().weights_stride);
  }
}

Result<HostOutputs> LiveSlots::CreateOutputs() const {
  const Span span("make outputs");
  HostOutputs outputs;
  if (device_ != nullptr) {
    ASSAY_ASSIGN_OR_RETURN(DeviceRegion memory, device_->CreateOutputs());
    outputs.device = std::make_shared<const DeviceRegion>(std::move(memory));
    return outputs;
  }
  ASSAY_ASSIGN_OR_RETURN(outputs.memory,
                         SharedRegion::Create("assay-outputs", capacity_ * plan().output_stride));
  ASSAY_RETURN_IF_ERROR(outputs.memory.SealSize());
  return outputs;
}

Result<HostOutputs> LiveSlots::CreateTrustedOutputs() const {
  if (device_ == nullptr) return CreateOutputs();
  if (trusted_outputs_ == nullptr) {
    ASSAY_ASSIGN_OR_RETURN(HostOutputs outputs, CreateOutputs());
    trusted_outputs_ = std::move(outputs.device);
  }
  HostOutputs outputs;
  outputs.device = trusted_outputs_;
  return outputs;
}

int LiveSlots::HostsAtATime(int wanted, Starting hosts) const {
  if (!memory_) return std::max(wanted, 1);
  const bool in_pytorch = hosts.trusted || hosts.leaves;
  const HostDemand demand{
      .outputs_bytes = hosts.trusted ? 0 : capacity_ * plan().output_stride,
      .results_bytes = hosts.leaves ? results_bytes_ : 0,
      .weights_bytes = in_pytorch ? plan().weights_stride : 0,
      .working_bytes = in_pytorch ? working_bytes_ : 0,
  };
  return memory_->HostsAtATime(wanted, HostBytes(demand), hosts.ahead ? 3 : 2);
}

HostResult<void> LiveSlots::Attach(Host& host, const HostOutputs& outputs,
                                   bool inputs_writable) const {
  if (auto done = host.Attach(wire::Region::kPlan, plan_, false); !done) return done;
  if (device_ != nullptr) return AttachDevice(host, outputs);
  if (auto done = host.Attach(wire::Region::kInputs, inputs_, inputs_writable); !done) return done;
  if (auto done = host.Attach(wire::Region::kWeights, weights_, false); !done) return done;
  return host.Attach(wire::Region::kOutputs, outputs.memory, true);
}

HostResult<void> LiveSlots::AttachDevice(Host& host, const HostOutputs& outputs) const {
  const Span span("attach device memory");
  if (auto done = host.Attach(wire::Region::kNumbers, inputs_, false); !done) return done;
  const struct {
    wire::Region region;
    const DeviceRegion& memory;
  } regions[] = {{wire::Region::kInputs, device_->inputs()},
                 {wire::Region::kWeights, device_->weights()},
                 {wire::Region::kOutputs, *outputs.device}};
  for (const auto& [region, memory] : regions)
    if (auto done = host.AttachDevice(region, memory.fd(), memory.size_bytes()); !done)
      return std::unexpected(done.error());
  return {};
}

HostResult<void> LiveSlots::AttachResults(Host& host, HostOutputs* outputs) const {
  if (device_ == nullptr || outputs->results.size_bytes() > 0) return {};
  const Span span("attach memory for results");
  auto memory = device_->CreateResults(results_bytes_);
  if (!memory) return HostFailed(HostTrouble::Kind::kEnvironment, memory.error().message);
  auto at = host.AttachDevice(wire::Region::kResults, memory->fd(), memory->size_bytes());
  if (!at) return std::unexpected(at.error());
  outputs->results = std::move(*memory);
  outputs->results_at = *at;
  return {};
}

void LiveSlots::Poison(const HostOutputs& outputs) const {
  if (device_ != nullptr) return Note(device_->Poison(*outputs.device, 0, plan().slot_count));
  PoisonOutputs(plan(), outputs.memory.data(), plan().slot_count, guard_);
  LayChanged(outputs, 0, plan().slot_count);
}

void LiveSlots::LayChanged(const HostOutputs& outputs, uint32_t first, uint32_t count) const {
  for (uint32_t slot = first; slot < first + count; ++slot)
    LayChangedInputs(plan(), inputs_.data() + slot * plan().input_stride,
                     outputs.memory.data() + slot * plan().output_stride);
}

void LiveSlots::PoisonSlot(const HostOutputs& outputs, uint32_t slot) const {
  if (device_ != nullptr) return Note(device_->Poison(*outputs.device, slot, 1));
  assay::PoisonSlot(plan(), outputs.memory.data(), slot, guard_);
  LayChanged(outputs, slot, 1);
}

void LiveSlots::Read(const HostOutputs& outputs) const {
  if (device_ == nullptr) ReadOutputs(plan(), outputs.memory.data(), plan().slot_count);
}

HostResult<BlockResult> LiveSlots::RunBlock(Host& host, const HostOutputs& outputs,
                                            std::span<const uint32_t> order,
                                            double timeout_s) const {
  const Span span("run a block");
  if (device_error_) return HostFailed(HostTrouble::Kind::kEnvironment, device_error_->message);
  // In a longer block slots come again once all had their turn.
  const auto slots = order.first(std::min<size_t>(order.size(), plan().slot_count));
  std::optional<OutputSample> sample;
  std::optional<LeftResults> left;
  OutputWatch watch{[&] {
                      sample = OutputSample::Take(plan(), outputs.memory.data(), slots,
                                                  kSampleLines, std::random_device{}());
                    },
                    [&] { return sample->StillHolds(); }};
  if (device_ != nullptr) {
    if (host.results() == wire::Results::kLeft)
      device_->PlanLeft(*outputs.device, slots);
    else
      Note(device_->PlanSample(*outputs.device, slots));
    if (device_error_) return HostFailed(HostTrouble::Kind::kEnvironment, device_error_->message);
    watch = {[&] { Note(device_->TakeSample()); },
             [&] { return NoteOr(device_->SampleStillHolds(), true); }};
  }
  const bool leaves = host.results() == wire::Results::kLeft;
  std::vector<uint64_t> addresses;
  // Changed inputs stay in the slots, wherever results are.
  if (leaves && device_ == nullptr)
    watch = {[&] {
               addresses = AddressesOfResults(host.report(), plan(), slots.size());
               left.emplace(addresses, plan(), slots);
               left->TakeSample(host.pid(), kLeftSampleLines, std::random_device{}());
               sample =
                   OutputSample::Take(plan(), outputs.memory.data(), slots, kSampleLines,
                                      std::random_device{}(), OutputSample::Of::kChangedInputs);
             },
             [&] { return left->SampleStillHolds(host.pid()) && sample->StillHolds(); }};
  if (leaves && device_ != nullptr)
    watch.take = [&] {
      addresses = AddressesOfResults(host.report(), plan(), slots.size());
      Note(device_->SampleLeft(outputs.results, outputs.results_at, addresses));
    };
  auto block = host.RunBlock(watch, order, timeout_s);
  if (block && leaves) {
    bool elsewhere = false;
    if (device_ != nullptr) {
      left.emplace(addresses, plan(), slots);
      elsewhere = !left->Translate(outputs.results_at, outputs.results.size_bytes(),
                                   outputs.results.address());
    }
    block->must_copy = elsewhere || left->Overlap();
    FetchLeft(host, outputs, *left);
  }
  // On a device nobody is kept from writing there.
  if (block && !InputsHold(slots)) {
    HostTrouble trouble;
    trouble.kind = HostTrouble::Kind::kDied;
    trouble.message = "it wrote to its inputs or parameters, which are read-only";
    trouble.wrote_inputs = true;
    return std::unexpected(std::move(trouble));
  }
  return block;
}

void LiveSlots::FetchLeft(const Host& host, const HostOutputs& outputs,
                          const LeftResults& left) const {
  const Span span("fetch what was left");
  if (device_ != nullptr) Note(device_->CopyLeft(*outputs.device, left.pieces()));
  const auto lost =
      device_ != nullptr ? left.lost() : left.Fetch(host.pid(), outputs.memory.data());
  if (device_ == nullptr && Stands(Defence::kPoison))
    left.Poison(host.pid(), kPoisonedLines, std::random_device{}());
  // Whatever lies in the slots of calls that gave nothing.
  for (const uint32_t slot : lost) PoisonSlot(outputs, slot);
}

HostResult<void> LiveSlots::RunUncounted(Host& host, const HostOutputs& outputs,
                                         std::span<const uint32_t> order, double timeout_s) const {
  while (true) {
    Poison(outputs);
    auto block = RunBlock(host, outputs, order, timeout_s);
    if (block) return {};
    if (block.error().kind != HostTrouble::Kind::kVoid) return std::unexpected(block.error());
  }
}

void LiveSlots::Read(const HostOutputs& outputs, uint32_t slot, uint64_t begin,
                     std::span<std::byte> target) const {
  if (device_ != nullptr) return Note(device_->Fetch(*outputs.device, slot, begin, target));
  std::memcpy(target.data(), outputs.memory.data() + slot * plan().output_stride + begin,
              target.size());
}

const std::byte* LiveSlots::Written(const HostOutputs& outputs, uint32_t slot) const {
  if (device_ == nullptr) return outputs.memory.data() + slot * plan().output_stride;
  if (const std::byte* fetched =
          NoteOr<const std::byte*>(device_->Fetch(*outputs.device, slot), nullptr))
    return fetched;
  unread_.resize(plan().output_stride);
  return unread_.data();
}

std::optional<std::vector<JudgeKernels::Compared>> LiveSlots::Compare(
    const Oracle& oracle, const HostOutputs& outputs,
    std::span<const DeviceSlots::PlacedOutput> placed) const {
  return NoteOrNothing(device_->Compare(oracle, *outputs.device, placed));
}

std::optional<std::vector<JudgeKernels::Measured>> LiveSlots::CompareWithTruth(
    const Oracle& oracle, const HostOutputs& outputs,
    std::span<const DeviceSlots::PlacedOutput> placed) const {
  return NoteOrNothing(device_->CompareWithTruth(oracle, *outputs.device, placed));
}

std::optional<GuardDamage> LiveSlots::FindDamage(const HostOutputs& outputs,
                                                 std::span<const uint32_t> slots) const {
  if (device_ == nullptr) return FindGuardDamage(plan(), outputs.memory.data(), slots, guard_);
  if (NoteOr(device_->GuardsStand(*outputs.device, slots), true)) return std::nullopt;
  const uint32_t first[] = {0};
  for (const uint32_t slot : slots)
    if (auto damage = FindGuardDamage(plan(), Written(outputs, slot), first, guard_)) {
      damage->slot = slot;
      return damage;
    }
  return std::nullopt;
}

std::optional<int64_t> LiveSlots::FirstTouchedFrom(uint32_t slot, const HostOutputs& outputs,
                                                   std::span<const uint32_t> slots) const {
  if (device_ != nullptr) return std::nullopt;
  for (const uint32_t other : slots)
    if (const auto offset = FirstTouched(plan(), outputs.memory.data(), other, guard_))
      return (int64_t{other} - int64_t{slot}) * static_cast<int64_t>(plan().output_stride) +
             static_cast<int64_t>(*offset);
  return std::nullopt;
}

bool LiveSlots::AreUntouched(const HostOutputs& outputs, std::span<const uint32_t> slots) const {
  if (device_ != nullptr) return NoteOr(device_->AreUntouched(*outputs.device, slots), true);
  return std::all_of(slots.begin(), slots.end(), [&](uint32_t slot) {
    return SlotIsUntouched(plan(), outputs.memory.data(), slot, guard_) &&
           ChangedInputsStand(plan(), inputs_.data() + slot * plan().input_stride,
                              outputs.memory.data() + slot * plan().output_stride);
  });
}

}  // namespace assay
