// Live slots on the judge's GPU. Inputs, weights and each host's outputs lie in allocations that
// hosts map, too; masters and expected outputs in those of the oracle's (values/oracle.h), which
// no host under test is shown. What another process does to memory that it maps cannot be
// prevented there: the judge looks after every block whether inputs and weights still are what it
// put there, and compares outputs with what only it and the oracle hold.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "values/judge_device.h"
#include "values/left_results.h"
#include "values/oracle.h"

namespace assay {

// Whether the device worked on something else during a flush of its caches, whose bytes are the
// same each time: it took half as long again as the shortest one, and 100 us.
inline bool WasNotAlone(int64_t took_ns, int64_t shortest_ns) {
  return 2 * (took_ns - 100'000) > 3 * shortest_ns;
}

class DeviceSlots {
 public:
  // How many slots of a plan to make where its values may take so much [bytes]; it may be fewer
  // than the two that are needed.
  static uint64_t CountFor(const wire::Plan& plan, uint64_t memory_bytes);
  // `plan` must stay.
  static Result<DeviceSlots> Create(JudgeDevice& device, const wire::Plan& plan, uint32_t capacity,
                                    uint64_t guard);

  const DeviceRegion& inputs() const { return inputs_; }
  const DeviceRegion& weights() const { return weights_; }
  Result<DeviceRegion> CreateOutputs() const;
  Result<DeviceRegion> CreateResults(uint64_t size_bytes) const;

  // Copies a master's inputs, from where they lie on the device, into a slot.
  Result<void> FillInput(uint32_t slot, cuda::Pointer master);
  // Copies the weights from the processor where `version` says that they changed.
  Result<void> FillWeights(const std::byte* weights, uint64_t version);
  // Whether the inputs of these slots, and the weights, still are as they were filled.
  Result<bool> InputsStand(std::span<const uint32_t> slots);
  Result<void> Clear(uint32_t slots);
  // Leaves nothing of the slots in the device's caches. This takes as long each time, unless the
  // device works on something else, too: then TakeBusy() says so, once.
  Result<void> FlushCaches();
  bool TakeBusy() { return std::exchange(busy_, false); }
  // The device's clock now; nothing without NVML.
  std::optional<ClockState> Clock() const {
    if (!device_->clocks()) return std::nullopt;
    return device_->clocks()->Read();
  }
  // Poisons the outputs of the slots [first, first + count) and sets their guards.
  Result<void> Poison(const DeviceRegion& outputs, uint32_t first, uint32_t count);

  // Chooses lines of these slots' outputs before a block; copies them at its end, at once; and says
  // later whether they still are so.
  Result<void> PlanSample(const DeviceRegion& outputs, std::span<const uint32_t> slots);
  Result<void> TakeSample();
  Result<bool> SampleStillHolds();
  // The same of results that hosts leave: which lines of which are chosen before a block of so many
  // calls, and where they lie is known at its end (AddressesOfResults). The host has `memory` at
  // `theirs`; lines that it claims to have elsewhere are left out.
  void PlanLeft(size_t calls);
  Result<void> SampleLeft(const DeviceRegion& memory, uint64_t theirs,
                          std::span<const uint64_t> addresses);
  // Copies such results, once their places are the judge's, into their slots' in `outputs`.
  Result<void> CopyLeft(const DeviceRegion& outputs, std::span<const LeftResults::Piece> left);

  // One output of one call, which is to be as in a master.
  struct PlacedOutput {
    const wire::ArgumentSpec* output;
    uint32_t slot, master;
    double limit;  // of ScanErrorsCheaply
  };
  // Their errors: against what the reference gives, by ScanErrorsCheaply's measures; and against
  // float64.
  Result<std::vector<JudgeKernels::Compared>> Compare(const Oracle& oracle,
                                                      const DeviceRegion& outputs,
                                                      std::span<const PlacedOutput> placed);
  Result<std::vector<JudgeKernels::Measured>> CompareWithTruth(
      const Oracle& oracle, const DeviceRegion& outputs, std::span<const PlacedOutput> placed);
  // Whether the guards of these slots stand, or whole slots as they were poisoned.
  Result<bool> GuardsStand(const DeviceRegion& outputs, std::span<const uint32_t> slots);
  Result<bool> AreUntouched(const DeviceRegion& outputs, std::span<const uint32_t> slots);
  // A slot's outputs, copied over; valid until the next call of this.
  Result<const std::byte*> Fetch(const DeviceRegion& outputs, uint32_t slot);

 private:
  struct Span {
    uint64_t begin, size_bytes;
  };
  DeviceSlots(JudgeDevice& device, const wire::Plan& plan) : device_(&device), plan_(&plan) {}
  Result<void> Copy(cuda::Pointer target, cuda::Pointer source, uint64_t size_bytes);
  Result<void> Upload(cuda::Pointer target, const std::byte* source, uint64_t size_bytes);
  Result<bool> AllWithin(std::span<const gpu::Comparison> comparisons);
  Result<bool> AreAsPoisoned(const DeviceRegion& outputs, std::span<const uint32_t> slots,
                             std::span<const Span> spans);

  JudgeDevice* device_;
  const wire::Plan* plan_;
  uint32_t capacity_ = 0;
  std::mt19937 random_{std::random_device{}()};
  DeviceRegion inputs_, weights_, own_weights_, poisoned_, flushed_, sampled_, sample_lines_;
  std::vector<std::byte> fetched_;
  std::vector<Span> guards_;  // of a slot
  uint64_t weights_version_ = 0;
  bool has_weights_ = false;
  std::vector<cuda::Pointer> sample_sources_;  // of lines, in order
  uint64_t sample_line_bytes_ = 0;
  // A line of a result that will be left: whose address that is, and how far into it, rounded to
  // what can be copied.
  struct PlannedLine {
    size_t result;
    uint64_t place;
  };
  std::vector<PlannedLine> planned_;
  std::vector<gpu::Line> left_lines_;  // here while they are sent
  int64_t flush_ns_ = 0;               // the shortest
  bool busy_ = false;
  std::vector<cuda::Pointer> filled_from_;  // by slot; 0: not filled
};

}  // namespace assay
