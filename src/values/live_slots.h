// The slots that hosts under test see, in the machine's memory or on the device.
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

// The memory of one host's outputs: the machine's, or the device's.
struct HostOutputs {
  SharedRegion memory;
  std::shared_ptr<const DeviceRegion> device;
  // On a device: memory in which the host leaves results, and the address that it claims for it.
  DeviceRegion results;
  uint64_t results_at = 0;
};

// The inputs, which every host under test maps read-only, with their plan, and the judge's work on
// slots while no host runs. Both sides of a pair read the same pages of inputs; each side has its
// own outputs. Not safe for several threads. On a device the first error of its functions is kept,
// and RunBlock() returns it.
class LiveSlots {
 public:
  // `device`: holds the slots; null: they lie in the machine's memory.
  static Result<LiveSlots> Create(const Oracle& oracle, JudgeDevice* device = nullptr);

  const wire::Plan& plan() const { return *plan_.as<wire::Plan>(); }
  uint32_t capacity() const { return capacity_; }
  // Bytes of the inputs and weights of all slots, in the machine's memory.
  uint64_t shared_bytes() const { return inputs_.size_bytes() + weights_.size_bytes(); }
  bool on_device() const { return device_ != nullptr; }

  // Sets how many slots hosts prepare when they next enter blocks; at most capacity().
  void SetSlotCount(uint32_t count);
  uint32_t slot_count_most() const { return slot_count_most_; }  // so far
  // Copies masters[i] into slot i, for each i, past the caches, with the weights that it was
  // computed with. No host may run.
  void FillInputs(const Oracle& oracle, std::span<const uint32_t> masters);
  // Copies one master into one slot.
  void FillInput(const Oracle& oracle, uint32_t slot, uint32_t master);
  // Zeroes all slots filled since the last call, and sets their weights to the constructed ones: a
  // new process sees no values before its turn. No host may run.
  void Clear();
  // Drops inputs and weights of these slots from the caches: the other side may have just read
  // them.
  void FlushInputs(std::span<const uint32_t> slots) const;

  // On a device: returns true if the inputs and weights of these slots are as the judge filled
  // them. Otherwise always true.
  bool InputsHold(std::span<const uint32_t> slots) const;
  // Returns true if the device did other work since the last call of this, while all hosts were
  // stopped. Without a device always false.
  bool TakeBusy() const;
  // On a device, as in DeviceMemory: BeginCandidate notes the free memory, NoteTrouble a failure
  // while the candidate's processes live, and MemoryTaken says, once they are gone, if it took the
  // memory.
  void BeginCandidate();
  void NoteTrouble() const;
  bool MemoryIsShort() const { return memory_ && memory_->IsShort(); }
  bool MemoryHoldsFewHosts() const { return memory_ && memory_->HoldsFewHosts(); }
  // The demand of starting hosts for the device's memory.
  struct Starting {
    bool trusted;  // they share their outputs
    bool leaves;   // each gets memory to leave results in
    bool ahead;    // the other side's hosts start with them, and take memory first
  };
  // Returns how many of `wanted` hosts may start at the same time, by the free memory
  // (DeviceMemory).
  int HostsAtATime(int wanted, Starting hosts) const;
  std::optional<std::string> MemoryTaken() const;
  // Returns the clock of a device with NVML; otherwise nullopt.
  std::optional<ClockState> Clock() const;

  // Makes the outputs of one host.
  Result<HostOutputs> CreateOutputs() const;
  // Makes those of a trusted host. On a device all trusted hosts share one memory, as one runs at a
  // time.
  Result<HostOutputs> CreateTrustedOutputs() const;
  // Shares plan, inputs, weights and the host's own outputs with a host.
  HostResult<void> Attach(Host& host, const HostOutputs& outputs, bool inputs_writable) const;
  // On a device: gives a host memory to leave results in, unless it has some. It must not be in
  // blocks.
  HostResult<void> AttachResults(Host& host, HostOutputs* outputs) const;
  // Poison outputs and set their guards, in all slots or in one, and lay the values of changed
  // inputs there, which must have been filled.
  void Poison(const HostOutputs& outputs) const;
  void PoisonSlot(const HostOutputs& outputs, uint32_t slot) const;
  // Reads all outputs, as a check does.
  void Read(const HostOutputs& outputs) const;
  // Runs one block and watches for changes of outputs after done (Host::RunBlock). Copies results
  // that were left into their slots.
  HostResult<BlockResult> RunBlock(Host& host, const HostOutputs& outputs,
                                   std::span<const uint32_t> order, double timeout_s) const;
  // Runs a block that does not count, with poisoned outputs, on the present inputs. Repeats it
  // after kVoid, which Host::RunBlock makes a foul at the third time in a row.
  HostResult<void> RunUncounted(Host& host, const HostOutputs& outputs,
                                std::span<const uint32_t> order, double timeout_s) const;
  // Copies a part of a host's outputs in one slot.
  void Read(const HostOutputs& outputs, uint32_t slot, uint64_t begin,
            std::span<std::byte> target) const;
  // Returns a host's outputs in one slot; valid until the next call.
  const std::byte* Written(const HostOutputs& outputs, uint32_t slot) const;
  // On a device alone: measure errors of outputs there (DeviceSlots); nullopt if the device fails.
  std::optional<std::vector<JudgeKernels::Compared>> Compare(
      const Oracle& oracle, const HostOutputs& outputs,
      std::span<const DeviceSlots::PlacedOutput> placed) const;
  std::optional<std::vector<JudgeKernels::Measured>> CompareWithTruth(
      const Oracle& oracle, const HostOutputs& outputs,
      std::span<const DeviceSlots::PlacedOutput> placed) const;
  // FindDamage looks at the guards of these slots; AreUntouched returns true if the slots still are
  // poisoned (values/slot_layout.h).
  std::optional<GuardDamage> FindDamage(const HostOutputs& outputs,
                                        std::span<const uint32_t> slots) const;
  bool AreUntouched(const HostOutputs& outputs, std::span<const uint32_t> slots) const;
  // Returns the first changed byte of these slots as an offset from the start of `slot`, or
  // nullopt: there is none, or the slots lie on a device.
  std::optional<int64_t> FirstTouchedFrom(uint32_t slot, const HostOutputs& outputs,
                                          std::span<const uint32_t> slots) const;

 private:
  LiveSlots() = default;
  HostResult<void> AttachDevice(Host& host, const HostOutputs& outputs) const;
  // Lays changed inputs among the outputs of the slots [first, first + count).
  void LayChanged(const HostOutputs& outputs, uint32_t first, uint32_t count) const;
  void FetchLeft(const Host& host, const HostOutputs& outputs, const LeftResults& left) const;
  // Keeps the device's first error; RunBlock() returns it.
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

  void FillSlots(const Oracle& oracle, std::span<const uint32_t> slots,
                 std::span<const uint32_t> masters);
  void CopyInputs(const Oracle& oracle, uint32_t slot, uint32_t master);
  // Shows versions[i] in the copy of slots[i].
  void ShowWeights(std::span<const uint32_t> slots, std::span<const uint64_t> versions);

  SharedRegion plan_, inputs_, weights_;
  // With device slots `inputs_` holds only the numbers among the inputs, at the same offsets.
  std::unique_ptr<DeviceSlots> device_;
  mutable std::optional<DeviceMemory> memory_;
  mutable std::shared_ptr<const DeviceRegion> trusted_outputs_;
  mutable std::optional<Error> device_error_;
  mutable std::vector<std::byte> unread_;  // stands for outputs that cannot be fetched
  uint32_t capacity_ = 0;
  uint64_t results_bytes_ = 0;  // on a device: for each host that leaves its results
  uint64_t working_bytes_ = 0;  // of a host in PyTorch on a device
  uint32_t slot_count_most_ = 0;
  uint32_t filled_ = 0;  // slots that may hold values
  std::shared_ptr<const VariedWeights> varied_;
  // Without a device, the version of the weights in each slot; nullopt: the copy has none yet.
  std::vector<std::optional<uint64_t>> versions_;
  uint64_t guard_ = 0;
};

}  // namespace assay
