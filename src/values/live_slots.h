// The slots that hosts under test see.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hosts/host.h"
#include "machine/shared_region.h"
#include "values/device_memory.h"
#include "values/device_slots.h"
#include "values/oracle.h"
#include "values/slot_layout.h"

namespace assay {

// Where one host's outputs lie: in the machine's memory, or on the device.
struct HostOutputs {
  SharedRegion memory;
  std::shared_ptr<const DeviceRegion> device;
  // On a device, where the host leaves results: and the address at which it says that it has it.
  DeviceRegion results;
  uint64_t results_at = 0;
};

// Inputs that every host under test maps read-only, and the plan that goes with them. Both sides of
// a pair read the same inputs from the same pages; outputs belong to each side alone. What the
// judge does to either while no host runs.
class LiveSlots {
 public:
  // `device`: where the slots lie; null: in the machine's memory.
  static Result<LiveSlots> Create(const Oracle& oracle, JudgeDevice* device = nullptr);

  const wire::Plan& plan() const { return *plan_.as<wire::Plan>(); }
  uint32_t capacity() const { return capacity_; }
  uint64_t inputs_bytes() const { return inputs_.size_bytes(); }
  bool on_device() const { return device_ != nullptr; }

  // How many slots hosts prepare when they next enter blocks; at most capacity().
  void SetSlotCount(uint32_t count);
  uint32_t slot_count_most() const { return slot_count_most_; }  // so far
  // Copies masters[i] into slot i, for each i, past the caches. No host may run.
  void FillInputs(const Oracle& oracle, std::span<const uint32_t> masters);
  // Copies one master into one slot.
  void FillInput(const Oracle& oracle, uint32_t slot, uint32_t master);
  // Zeroes what was filled since the last time: a process that starts sees no values before its
  // turn. No host may run.
  void Clear();
  // Drops a slot's inputs, or those of several and the weights, from the caches: the side that ran
  // before had read them.
  void FlushInput(uint32_t slot) const;
  void FlushInputs(const Oracle& oracle, std::span<const uint32_t> slots) const;

  // On a device: whether these slots' inputs, and the weights, are as the judge put them there.
  bool InputsHold(std::span<const uint32_t> slots) const;
  // On a device: whether it was seen at other work since the last time of asking, while all hosts
  // were stopped.
  bool TakeBusy() const;
  // On a device: a candidate begins; something failed while its processes live; and, once they are
  // gone, whether it had taken the memory that others need (DeviceMemory).
  void BeginCandidate();
  void NoteTrouble() const;
  bool MemoryIsShort() const { return memory_ && memory_->IsShort(); }
  bool MemoryHoldsFewHosts() const { return memory_ && memory_->HoldsFewHosts(); }
  // What hosts that start take of the device's memory, and when.
  struct Starting {
    bool trusted;  // they share their outputs
    bool leaves;   // each has memory to leave results in
    bool ahead;    // not before hosts of the other side, which start with them, have theirs
  };
  // How many of `wanted` hosts may start at the same time, by what is free there (DeviceMemory).
  int HostsAtATime(int wanted, Starting hosts) const;
  std::optional<std::string> MemoryTaken() const;
  // On a device with NVML: its clock now.
  std::optional<ClockState> Clock() const;

  // Outputs for one host.
  Result<HostOutputs> CreateOutputs() const;
  // The same for a trusted one: on a device all of these, of which one runs at a time, have one
  // memory.
  Result<HostOutputs> CreateTrustedOutputs() const;
  // Shares plan, inputs, weights and the host's own outputs with a host.
  HostResult<void> Attach(Host& host, const Oracle& oracle, const HostOutputs& outputs,
                          bool inputs_writable) const;
  // On a device: memory that it may leave results in, where it has none yet. It must not be in
  // blocks.
  HostResult<void> AttachResults(Host& host, HostOutputs* outputs) const;
  // Poisons outputs and sets their guards, in all slots or in one.
  void Poison(const HostOutputs& outputs) const;
  void PoisonSlot(const HostOutputs& outputs, uint32_t slot) const;
  // Reads outputs as checking them does.
  void Read(const HostOutputs& outputs) const;
  // Runs one block and looks whether outputs change once it is done (Host::RunBlock). Results that
  // were left are in the slots then.
  HostResult<BlockResult> RunBlock(Host& host, const HostOutputs& outputs,
                                   std::span<const uint32_t> order, double timeout_s) const;
  // The same with poisoned outputs and on whatever its slots hold, for a block that does not count:
  // again where the host slept badly, whose third time in a row is its end.
  HostResult<void> RunUncounted(Host& host, const HostOutputs& outputs,
                                std::span<const uint32_t> order, double timeout_s) const;
  // What a host wrote in one slot; valid until the next call of this.
  const std::byte* Written(const HostOutputs& outputs, uint32_t slot) const;
  // On a device: errors of outputs, measured where they lie (DeviceSlots); nothing where the device
  // fails.
  std::optional<std::vector<JudgeKernels::Compared>> Compare(
      const Oracle& oracle, const HostOutputs& outputs,
      std::span<const DeviceSlots::PlacedOutput> placed) const;
  std::optional<std::vector<JudgeKernels::Measured>> CompareWithTruth(
      const Oracle& oracle, const HostOutputs& outputs,
      std::span<const DeviceSlots::PlacedOutput> placed) const;
  // Guards of these slots, and slots that must not have been written (values/slot_layout.h).
  std::optional<GuardDamage> FindDamage(const HostOutputs& outputs,
                                        std::span<const uint32_t> slots) const;
  bool AreUntouched(const HostOutputs& outputs, std::span<const uint32_t> slots) const;

 private:
  LiveSlots() = default;
  HostResult<void> AttachDevice(Host& host, const HostOutputs& outputs) const;
  void FetchLeft(const Host& host, const HostOutputs& outputs, const LeftResults& left) const;
  // Keeps the first error of the device's; RunBlock() tells it.
  void Note(Result<void> done) const;
  template <typename T>
  T NoteOr(Result<T> result, T otherwise) const {
    auto found = NoteOrNothing(std::move(result));
    return found ? std::move(*found) : std::move(otherwise);
  }
  template <typename T>
  std::optional<T> NoteOrNothing(Result<T> result) const {
    if (result) return std::move(*result);
    Note(std::unexpected(std::move(result).error()));
    return std::nullopt;
  }

  SharedRegion plan_, inputs_;
  // With device slots `inputs_` holds the numbers among the inputs, at the same places.
  std::unique_ptr<DeviceSlots> device_;
  mutable std::optional<DeviceMemory> memory_;
  mutable std::shared_ptr<const DeviceRegion> trusted_outputs_;
  mutable std::optional<Error> device_error_;
  std::vector<std::byte> unread_;  // stands for outputs that cannot be fetched
  uint32_t capacity_ = 0;
  uint64_t results_bytes_ = 0;  // on a device: lent to each host that leaves its results
  uint32_t slot_count_most_ = 0;
  uint32_t filled_ = 0;  // slots that may hold values
  uint64_t guard_ = 0;
};

}  // namespace assay
