// Live slots on the judge's GPU. Inputs, weights and each host's outputs lie in allocations that
// hosts map, too. Masters and expected outputs lie in the oracle's (values/oracle.h), which no host
// under test maps. A device has no read-only mapping, so after every block the judge checks that
// inputs and weights are unchanged, and it compares outputs with values that only it and the oracle
// hold.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "gpu/timer.h"
#include "values/flush_times.h"
#include "values/judge_device.h"
#include "values/left_results.h"
#include "values/oracle.h"

namespace assay {

// Returns true if the device did other work during a flush of its caches. All flushes write the
// same number of bytes; this one took over 1.5 times the shortest, plus 100 us.
inline bool WasNotAlone(int64_t took_ns, int64_t shortest_ns) {
  return 2 * (took_ns - 100'000) > 3 * shortest_ns;
}

class DeviceSlots {
 public:
  // `device` and `plan` must outlive the slots. `weights`: laid out by `plan`.
  static Result<DeviceSlots> Create(JudgeDevice& device, const wire::Plan& plan,
                                    std::shared_ptr<const VariedWeights> weights, uint32_t capacity,
                                    uint64_t guard);

  const DeviceRegion& inputs() const { return inputs_; }
  const DeviceRegion& weights() const { return weights_; }
  Result<DeviceRegion> CreateOutputs() const;
  Result<DeviceRegion> CreateResults(uint64_t size_bytes) const;

  // Copies a master's inputs on the device into a slot.
  Result<void> FillInput(uint32_t slot, cuda::Pointer master);
  // Writes versions of the weights into the slots' copies: versions[i] into slots[i].
  Result<void> FillWeights(std::span<const uint32_t> slots, std::span<const uint64_t> versions);
  // Returns true if the inputs and weights of these slots are as they were filled.
  Result<bool> InputsStand(std::span<const uint32_t> slots);
  // Zeroes the inputs of the slots [0, slots), and sets their weights to the constructed ones.
  Result<void> Clear(uint32_t slots);
  // Removes the slots from the device's caches, and waits while something else uses its memory's
  // bandwidth (FlushTimes). Takes the same time each time unless the device does other work, too;
  // TakeBusy() then returns true once.
  Result<void> FlushCaches();
  bool TakeBusy() { return std::exchange(busy_, false); }
  // Returns the device's clock now; nullopt without NVML.
  std::optional<ClockState> Clock() const {
    if (!device_->clocks()) return std::nullopt;
    return device_->clocks()->Read();
  }
  // Poisons the outputs of the slots [first, first + count), sets their guards, and lays changed
  // inputs there.
  Result<void> Poison(const DeviceRegion& outputs, uint32_t first, uint32_t count);

  // PlanSample chooses lines of these slots' outputs before a block, TakeSample copies them at its
  // end, and SampleStillHolds compares them later: true if they are unchanged.
  Result<void> PlanSample(const DeviceRegion& outputs, std::span<const uint32_t> slots);
  Result<void> TakeSample();
  Result<bool> SampleStillHolds();
  // The same for results that hosts leave, and the changed inputs among `outputs`. PlanLeft chooses
  // the lines before a block of these slots' calls; SampleLeft gets their addresses at its end
  // (AddressesOfResults). The host maps `memory` at `theirs`; lines at other addresses are left
  // out.
  void PlanLeft(const DeviceRegion& outputs, std::span<const uint32_t> slots);
  Result<void> SampleLeft(const DeviceRegion& memory, uint64_t theirs,
                          std::span<const uint64_t> addresses);
  // Copies such results, whose addresses are the judge's, into their slots in `outputs`.
  Result<void> CopyLeft(const DeviceRegion& outputs, std::span<const LeftResults::Piece> left);

  // One output of one call, and the master with the expected values.
  struct PlacedOutput {
    const wire::ArgumentSpec* output;
    uint32_t slot, master;
    double limit;           // element_limit of ScanErrorsCheaply
    bool has_truth = true;  // CompareWithTruth: false takes the reference's output for it
  };
  // Measure errors: Compare against the reference's outputs, by ScanErrorsCheaply's measures;
  // CompareWithTruth against float64, or against the reference's outputs, by ScanErrors'.
  Result<std::vector<JudgeKernels::Compared>> Compare(const Oracle& oracle,
                                                      const DeviceRegion& outputs,
                                                      std::span<const PlacedOutput> placed);
  Result<std::vector<JudgeKernels::Measured>> CompareWithTruth(
      const Oracle& oracle, const DeviceRegion& outputs, std::span<const PlacedOutput> placed);
  // Return true if these slots still are as they were poisoned: GuardsStand looks at their guards,
  // AreUntouched at all bytes.
  Result<bool> GuardsStand(const DeviceRegion& outputs, std::span<const uint32_t> slots);
  Result<bool> AreUntouched(const DeviceRegion& outputs, std::span<const uint32_t> slots);
  // Copies a part of a slot's outputs to the host.
  Result<void> Fetch(const DeviceRegion& outputs, uint32_t slot, uint64_t begin,
                     std::span<std::byte> target) const;
  // Copies a slot's outputs to the host; valid until the next call.
  Result<const std::byte*> Fetch(const DeviceRegion& outputs, uint32_t slot);

 private:
  // A part of a slot's outputs, and where in frame_ its first bytes stand.
  struct Span {
    uint64_t begin, size_bytes, at;
  };
  DeviceSlots(JudgeDevice& device, const wire::Plan& plan) : device_(&device), plan_(&plan) {}
  Result<void> Copy(cuda::Pointer target, cuda::Pointer source, uint64_t size_bytes);
  Result<void> Upload(cuda::Pointer target, const std::byte* source, uint64_t size_bytes);
  Result<double> TimeFlush();  // [ms]
  Result<bool> WeightsStand(std::span<const uint32_t> slots);
  cuda::Pointer OutputOf(const DeviceRegion& outputs, uint32_t slot,
                         const wire::ArgumentSpec& output) const {
    return outputs.address() + slot * plan_->output_stride + output.offset;
  }
  // The value of a changed input.
  cuda::Pointer InputOf(uint32_t slot, const wire::ArgumentSpec& output) const {
    return inputs_.address() + slot * plan_->input_stride +
           plan_->arguments[output.twin - 1].offset;
  }
  cuda::Pointer WeightsOf(uint32_t slot) const {
    return weights_.address() + slot * plan_->weights_stride;
  }
  // Chooses lines of outputs, for each slot in turn.
  std::vector<cuda::Pointer> ChooseLines(const DeviceRegion& outputs,
                                         std::span<const uint32_t> slots,
                                         std::span<const wire::ArgumentSpec* const> parts,
                                         uint32_t count, uint64_t line_bytes);
  void AddSampledLine(cuda::Pointer source, std::vector<gpu::Line>* lines);
  Result<bool> AllWithin(std::span<const gpu::Comparison> comparisons);
  // Finds what lies around and in outputs before a block.
  Result<void> PlanPoison(uint64_t guard);
  // Poisons one output of the slot at that address.
  Result<void> PoisonOutput(cuda::Pointer slot, const Span& output, unsigned word);
  void AddGuards(const DeviceRegion& outputs, std::span<const uint32_t> slots,
                 std::vector<gpu::Comparison>* comparisons) const;

  JudgeDevice* device_;
  const wire::Plan* plan_;
  uint32_t capacity_ = 0;
  std::mt19937 random_{std::random_device{}()};
  DeviceRegion inputs_, weights_, constructed_, flushed_, sampled_, sample_lines_;
  std::vector<std::byte> fetched_;
  std::vector<Span> guards_;                   // of a slot, whole in frame_
  std::vector<Span> poisoned_;                 // outputs of a slot: all but changed inputs
  std::vector<unsigned> poison_words_;         // of these outputs
  DeviceRegion frame_;                         // guards, and 16 bytes of each output's poison
  std::vector<cuda::Pointer> sample_sources_;  // of lines, in order
  uint64_t sample_line_bytes_ = 0;
  // A line of a result that will be left: the index of the result's address, and the offset in it.
  struct PlannedLine {
    size_t result;
    uint64_t place;
  };
  std::vector<PlannedLine> planned_;
  std::vector<cuda::Pointer> planned_changed_;  // lines of changed inputs
  std::vector<gpu::Line> left_lines_;           // must stay while they are sent
  std::optional<GpuTimer> timer_;
  FlushTimes flush_times_;
  int64_t flush_ns_ = 0;  // shortest so far
  bool busy_ = false;
  std::vector<cuda::Pointer> filled_from_;  // by slot; 0: not filled
  std::shared_ptr<const VariedWeights> varied_;
  // The version in each slot; nullopt: the copy has no weights yet.
  std::vector<std::optional<uint64_t>> versions_;
};

}  // namespace assay
