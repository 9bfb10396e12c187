#include "values/device_slots.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/defences.h"
#include "base/trace.h"
#include "rules/elements.h"
#include "values/slot_layout.h"

namespace assay {
namespace {

using gpu::Comparison;
using gpu::ElementType;
using gpu::Line;

// Lines of output that the judge copies as a block ends, over all of its slots, and their size.
constexpr uint32_t kSampledLines = 2048;
constexpr uint64_t kLineBytes = 128;
// Flushes that find out how long one takes.
constexpr int kFlushesFirst = 5;
// The shortest of so many shows if the memory serves others, too; a block waits for its end at most
// so long: as the driver clears 60 GB on an H200.
constexpr int kFlushesInARow = 3;
constexpr int64_t kSharedMaxNs = 150'000'000;
// What is written to push everything else out of the caches, in sizes of the second level.
constexpr uint64_t kFlushFactor = 3;
// Vectors that the judge's kernels read.
constexpr uint64_t kStep = 16;

Comparison SameBytes(cuda::Pointer there, cuda::Pointer own, uint64_t size_bytes) {
  const auto bytes = static_cast<long long>(size_bytes);
  return {reinterpret_cast<const void*>(there),
          reinterpret_cast<const void*>(own),
          bytes,
          bytes,
          0,
          ElementType::kBytes,
          nullptr,
          nullptr};
}

}  // namespace

Result<DeviceSlots> DeviceSlots::Create(JudgeDevice& device, const wire::Plan& plan,
                                        std::shared_ptr<const VariedWeights> weights,
                                        uint32_t capacity, uint64_t guard) {
  DeviceSlots slots(device, plan);
  const Gpu& gpu = device.gpu();
  slots.capacity_ = capacity;
  ASSAY_ASSIGN_OR_RETURN(slots.inputs_, DeviceRegion::Shared(gpu, capacity * plan.input_stride));
  ASSAY_ASSIGN_OR_RETURN(slots.weights_, DeviceRegion::Shared(gpu, WeightsBytes(plan, capacity)));
  ASSAY_ASSIGN_OR_RETURN(slots.constructed_, DeviceRegion::Private(gpu, WeightsBytes(plan, 1)));
  slots.varied_ = std::move(weights);
  const std::vector<std::byte>& constructed = slots.varied_->constructed();
  if (!constructed.empty())
    ASSAY_RETURN_IF_ERROR(
        slots.Upload(slots.constructed_.address(), constructed.data(), constructed.size()));
  slots.filled_from_.resize(capacity);
  slots.versions_.resize(capacity);
  ASSAY_ASSIGN_OR_RETURN(
      slots.flushed_,
      DeviceRegion::Private(gpu, kFlushFactor * std::max<uint64_t>(1, gpu.facts().l2_bytes)));
  ASSAY_ASSIGN_OR_RETURN(slots.sampled_, DeviceRegion::Private(gpu, kSampledLines * kLineBytes));
  ASSAY_ASSIGN_OR_RETURN(slots.sample_lines_,
                         DeviceRegion::Private(gpu, kSampledLines * sizeof(Line)));
  ASSAY_RETURN_IF_ERROR(slots.PlanPoison(guard));
  ASSAY_ASSIGN_OR_RETURN(GpuTimer timer, GpuTimer::Create(gpu));
  slots.timer_.emplace(std::move(timer));
  for (int flush = 0; flush < kFlushesFirst; ++flush) ASSAY_RETURN_IF_ERROR(slots.FlushCaches());
  slots.busy_ = false;
  return slots;
}

Result<void> DeviceSlots::PlanPoison(uint64_t guard) {
  std::vector<std::byte> frame;
  uint64_t begin = 0;
  const auto add_guard = [&](uint64_t end) {
    guards_.push_back({begin, end - begin, frame.size()});
    for (uint64_t i = 0; i < end - begin; ++i)
      frame.push_back(static_cast<std::byte>(guard >> 8 * (i % sizeof guard)));
    frame.resize((frame.size() + kStep - 1) / kStep * kStep);
  };
  ForEachOutput(*plan_, [&](const wire::ArgumentSpec& output) {
    add_guard(output.offset);
    begin = output.offset + output.size_bytes;
    if (wire::IsChangedInput(output)) return;
    poisoned_.push_back({output.offset, output.size_bytes, frame.size()});
    const std::byte poison = Stands(Defence::kPoison) ? PoisonByte(output.dtype) : std::byte{0};
    poison_words_.push_back(0x01010101u * static_cast<unsigned>(poison));
    frame.insert(frame.end(), kStep, poison);
  });
  add_guard(plan_->output_stride);
  ASSAY_ASSIGN_OR_RETURN(frame_, DeviceRegion::Private(device_->gpu(), frame.size()));
  return Upload(frame_.address(), frame.data(), frame.size());
}

Result<DeviceRegion> DeviceSlots::CreateOutputs() const {
  return DeviceRegion::Shared(device_->gpu(), capacity_ * plan_->output_stride);
}

Result<DeviceRegion> DeviceSlots::CreateResults(uint64_t size_bytes) const {
  const Gpu& gpu = device_->gpu();
  ASSAY_ASSIGN_OR_RETURN(DeviceRegion memory, DeviceRegion::Shared(gpu, size_bytes));
  // Pairs share values: nothing that an earlier process left there may come to the next.
  ASSAY_RETURN_IF_ERROR(
      gpu.Check(gpu.driver().set_words(memory.address(), 0, memory.size_bytes() / 4, nullptr),
                "clear memory for results on the GPU"));
  ASSAY_RETURN_IF_ERROR(gpu.Synchronize());
  return memory;
}

Result<void> DeviceSlots::Copy(cuda::Pointer target, cuda::Pointer source, uint64_t size_bytes) {
  const Gpu& gpu = device_->gpu();
  return gpu.Check(gpu.driver().copy_on_device(target, source, size_bytes, nullptr),
                   "copy on the GPU");
}

Result<void> DeviceSlots::Upload(cuda::Pointer target, const std::byte* source,
                                 uint64_t size_bytes) {
  const Gpu& gpu = device_->gpu();
  ASSAY_RETURN_IF_ERROR(gpu.Check(gpu.driver().copy_to_device(target, source, size_bytes, nullptr),
                                  "copy to the GPU"));
  return gpu.Synchronize();
}

Result<bool> DeviceSlots::AllWithin(std::span<const Comparison> comparisons) {
  ASSAY_ASSIGN_OR_RETURN(const auto compared, device_->kernels().Compare(comparisons));
  return std::all_of(compared.begin(), compared.end(),
                     [](const JudgeKernels::Compared& one) { return one.within; });
}

Result<void> DeviceSlots::FillInput(uint32_t slot, cuda::Pointer master) {
  ASSAY_CHECK(slot < capacity_);
  filled_from_[slot] = master;
  return Copy(inputs_.address() + slot * plan_->input_stride, master, plan_->input_stride);
}

Result<void> DeviceSlots::FillWeights(std::span<const uint32_t> slots,
                                      std::span<const uint64_t> versions) {
  if (plan_->weights_stride == 0) return {};
  std::vector<gpu::VariedTensor> tensors;
  for (size_t i = 0; i < slots.size(); ++i) {
    std::optional<uint64_t>& version = versions_[slots[i]];
    if (version == versions[i]) continue;
    if (!version || versions[i] == 0)
      ASSAY_RETURN_IF_ERROR(
          Copy(WeightsOf(slots[i]), constructed_.address(), plan_->weights_stride));
    version = versions[i];
    PlaceVersion(*varied_, *version, constructed_.address(), WeightsOf(slots[i]), &tensors);
  }
  return device_->kernels().Vary(tensors);
}

Result<bool> DeviceSlots::WeightsStand(std::span<const uint32_t> slots) {
  std::vector<Comparison> same;
  std::vector<gpu::VariedTensor> tensors;
  for (const uint32_t slot : slots) {
    if (!versions_[slot]) continue;
    PlaceVersion(*varied_, *versions_[slot], constructed_.address(), WeightsOf(slot), &tensors);
    for (const VariedWeights::Tensor& tensor : varied_->others())
      same.push_back(SameBytes(WeightsOf(slot) + tensor.offset,
                               constructed_.address() + tensor.offset, tensor.size_bytes));
  }
  ASSAY_ASSIGN_OR_RETURN(const bool others_stand, AllWithin(same));
  if (!others_stand) return false;
  return device_->kernels().AreVaried(tensors);
}

Result<bool> DeviceSlots::InputsStand(std::span<const uint32_t> slots) {
  std::vector<Comparison> comparisons;
  for (const uint32_t slot : slots)
    if (filled_from_[slot] != 0)
      comparisons.push_back(SameBytes(inputs_.address() + slot * plan_->input_stride,
                                      filled_from_[slot], plan_->input_stride));
  ASSAY_ASSIGN_OR_RETURN(const bool inputs_stand, AllWithin(comparisons));
  if (!inputs_stand) return false;
  return WeightsStand(slots);
}

Result<void> DeviceSlots::Clear(uint32_t slots) {
  const Gpu& gpu = device_->gpu();
  if (slots == 0) return {};
  std::fill(filled_from_.begin(), filled_from_.end(), 0);
  for (uint32_t slot = 0; slot < slots; ++slot)
    if (versions_[slot].value_or(0) != 0) {
      const uint32_t one[] = {slot};
      const uint64_t none[] = {0};
      ASSAY_RETURN_IF_ERROR(FillWeights(one, none));
    }
  return gpu.Check(
      gpu.driver().set_words(inputs_.address(), 0, slots * plan_->input_stride / 4, nullptr),
      "clear the slots on the GPU");
}

Result<double> DeviceSlots::TimeFlush() {
  const Gpu& gpu = device_->gpu();
  ASSAY_RETURN_IF_ERROR(timer_->Begin());
  ASSAY_RETURN_IF_ERROR(
      gpu.Check(gpu.driver().set_words(flushed_.address(), static_cast<unsigned>(random_()),
                                       flushed_.size_bytes() / 4, nullptr),
                "flush the GPU's caches"));
  return timer_->End();
}

Result<void> DeviceSlots::FlushCaches() {
  const Gpu& gpu = device_->gpu();
  ASSAY_RETURN_IF_ERROR(
      gpu.Check(gpu.driver().context_reset_persisting_l2(), "reset the GPU's second-level cache"));
  ASSAY_RETURN_IF_ERROR(gpu.Synchronize());
  const int64_t begin_ns = MonotonicNs();
  ASSAY_ASSIGN_OR_RETURN(double shortest_ms, TimeFlush());
  const int64_t took_ns = MonotonicNs() - begin_ns;
  flush_ns_ = flush_ns_ == 0 ? took_ns : std::min(flush_ns_, took_ns);
  busy_ = busy_ || WasNotAlone(took_ns, flush_ns_);
  const auto repeat = [&]() -> Result<void> {
    for (int flush = 1; flush < kFlushesInARow; ++flush) {
      ASSAY_ASSIGN_OR_RETURN(const double ms, TimeFlush());
      shortest_ms = std::min(shortest_ms, ms);
    }
    return {};
  };
  ASSAY_RETURN_IF_ERROR(repeat());
  if (!flush_times_.HadAll(shortest_ms)) {
    const assay::Span span("others use the device's memory");
    while (!flush_times_.HadAll(shortest_ms) && MonotonicNs() - begin_ns < kSharedMaxNs) {
      ASSAY_ASSIGN_OR_RETURN(shortest_ms, TimeFlush());
      ASSAY_RETURN_IF_ERROR(repeat());
    }
  }
  flush_times_.Add(shortest_ms);
  return {};
}

Result<void> DeviceSlots::PoisonOutput(cuda::Pointer slot, const Span& output, unsigned word) {
  const Gpu& gpu = device_->gpu();
  const uint64_t words = output.size_bytes / sizeof word;
  const uint64_t rest = output.size_bytes % sizeof word;
  const cuda::Pointer begin = slot + output.begin;
  if (words > 0)
    ASSAY_RETURN_IF_ERROR(gpu.Check(gpu.driver().set_words(begin, word, words, nullptr),
                                    "poison outputs on the GPU"));
  return rest == 0 ? Result<void>()
                   : Copy(begin + words * sizeof word, frame_.address() + output.at, rest);
}

Result<void> DeviceSlots::Poison(const DeviceRegion& outputs, uint32_t first, uint32_t count) {
  ASSAY_CHECK(first + count <= capacity_);
  const uint64_t stride = plan_->output_stride;
  if (count == 0) return {};
  const cuda::Pointer begin = outputs.address() + first * stride;
  for (const Span& guard : guards_)
    ASSAY_RETURN_IF_ERROR(Copy(begin + guard.begin, frame_.address() + guard.at, guard.size_bytes));
  for (size_t i = 0; i < poisoned_.size(); ++i)
    ASSAY_RETURN_IF_ERROR(PoisonOutput(begin, poisoned_[i], poison_words_[i]));
  // Twice as many each time.
  for (uint64_t done = 1; done < count; done *= 2)
    ASSAY_RETURN_IF_ERROR(
        Copy(begin + done * stride, begin, std::min<uint64_t>(done, count - done) * stride));
  std::vector<const wire::ArgumentSpec*> changed;
  ForEachChangedInput(*plan_,
                      [&](const wire::ArgumentSpec& output) { changed.push_back(&output); });
  for (uint32_t slot = first; slot < first + count; ++slot)
    for (const wire::ArgumentSpec* output : changed)
      ASSAY_RETURN_IF_ERROR(
          Copy(OutputOf(outputs, slot, *output), InputOf(slot, *output), output->size_bytes));
  return device_->gpu().Synchronize();
}

Result<void> DeviceSlots::PlanSample(const DeviceRegion& outputs, std::span<const uint32_t> slots) {
  const uint64_t stride = plan_->output_stride;
  const uint64_t line_bytes = sample_line_bytes_ = std::min(kLineBytes, stride);
  std::vector<const wire::ArgumentSpec*> parts;
  ForEachOutput(*plan_, [&](const wire::ArgumentSpec& output) {
    if (output.size_bytes > 0) parts.push_back(&output);
  });
  sample_sources_.clear();
  std::vector<Line> lines;
  for (const cuda::Pointer source : ChooseLines(outputs, slots, parts, kSampledLines, line_bytes))
    AddSampledLine(source, &lines);
  if (lines.empty()) return {};
  return Upload(sample_lines_.address(), reinterpret_cast<const std::byte*>(lines.data()),
                lines.size() * sizeof lines[0]);
}

std::vector<cuda::Pointer> DeviceSlots::ChooseLines(
    const DeviceRegion& outputs, std::span<const uint32_t> slots,
    std::span<const wire::ArgumentSpec* const> parts, uint32_t count, uint64_t line_bytes) {
  const uint64_t stride = plan_->output_stride;
  std::vector<cuda::Pointer> lines;
  for (uint32_t i = 0; i < count && !parts.empty() && !slots.empty(); ++i) {
    // Every slot has its turn, at places that nobody knows.
    const uint32_t slot = slots[i % slots.size()];
    const wire::ArgumentSpec& output = *parts[random_() % parts.size()];
    const uint64_t place = uint64_t{random_()} << 32 | random_();
    const uint64_t begin = (output.offset + place % output.size_bytes) / 8 * 8;
    lines.push_back(outputs.address() + slot * stride + std::min(begin, stride - line_bytes));
  }
  return lines;
}

void DeviceSlots::AddSampledLine(cuda::Pointer source, std::vector<Line>* lines) {
  const cuda::Pointer target = sampled_.address() + sample_sources_.size() * kLineBytes;
  sample_sources_.push_back(source);
  lines->push_back({reinterpret_cast<const unsigned long long*>(source),
                    reinterpret_cast<unsigned long long*>(target)});
}

Result<void> DeviceSlots::TakeSample() {
  return device_->kernels().CopyLines(sample_lines_.address(),
                                      static_cast<int>(sample_sources_.size()),
                                      static_cast<int>(sample_line_bytes_ / 8));
}

void DeviceSlots::PlanLeft(const DeviceRegion& outputs, std::span<const uint32_t> slots) {
  std::vector<std::pair<size_t, const wire::ArgumentSpec*>> parts;
  std::vector<const wire::ArgumentSpec*> changed;
  const size_t calls = slots.size();
  size_t results = 0;
  ForEachResult(*plan_, [&](const wire::ArgumentSpec& output) {
    if (output.size_bytes > 0) parts.emplace_back(results, &output);
    ++results;
  });
  ForEachChangedInput(*plan_, [&](const wire::ArgumentSpec& output) {
    if (output.size_bytes > 0) changed.push_back(&output);
  });
  planned_changed_ = ChooseLines(outputs, slots, changed, kSampledLines / 2,
                                 std::min(kLineBytes, plan_->output_stride));
  planned_.clear();
  const uint32_t lines = kSampledLines - static_cast<uint32_t>(planned_changed_.size());
  for (uint32_t i = 0; i < lines && !parts.empty() && calls > 0; ++i) {
    const auto& [number, output] = parts[random_() % parts.size()];
    const uint64_t place = uint64_t{random_()} << 32 | random_();
    // Every call has its turn, at places that nobody knows.
    planned_.push_back({i % calls * results + number, place % output->size_bytes});
  }
  sample_sources_.reserve(planned_.size() + planned_changed_.size());
  left_lines_.reserve(planned_.size() + planned_changed_.size());
}

Result<void> DeviceSlots::SampleLeft(const DeviceRegion& memory, uint64_t theirs,
                                     std::span<const uint64_t> addresses) {
  sample_sources_.clear();
  left_lines_.clear();
  sample_line_bytes_ = kLineBytes;
  const uint64_t last = memory.size_bytes() - kLineBytes;
  for (const auto& [result, place] : planned_) {
    const uint64_t at = addresses[result] - theirs + place;
    if (addresses[result] < theirs || at >= memory.size_bytes()) continue;
    AddSampledLine(memory.address() + std::min(at / 8 * 8, last), &left_lines_);
  }
  for (const cuda::Pointer source : planned_changed_) AddSampledLine(source, &left_lines_);
  if (left_lines_.empty()) return {};
  // No wait between: it would give time to what still runs.
  const Gpu& gpu = device_->gpu();
  ASSAY_RETURN_IF_ERROR(
      gpu.Check(gpu.driver().copy_to_device(sample_lines_.address(), left_lines_.data(),
                                            left_lines_.size() * sizeof left_lines_[0], nullptr),
                "copy to the GPU"));
  return TakeSample();
}

Result<void> DeviceSlots::CopyLeft(const DeviceRegion& outputs,
                                   std::span<const LeftResults::Piece> left) {
  for (const LeftResults::Piece& piece : left)
    ASSAY_RETURN_IF_ERROR(Copy(outputs.address() + piece.place, piece.address, piece.size_bytes));
  return device_->gpu().Synchronize();
}

Result<bool> DeviceSlots::SampleStillHolds() {
  std::vector<Comparison> comparisons;
  for (size_t i = 0; i < sample_sources_.size(); ++i)
    comparisons.push_back(
        SameBytes(sample_sources_[i], sampled_.address() + i * kLineBytes, sample_line_bytes_));
  return AllWithin(comparisons);
}

Result<std::vector<JudgeKernels::Compared>> DeviceSlots::Compare(
    const Oracle& oracle, const DeviceRegion& outputs, std::span<const PlacedOutput> placed) {
  std::vector<Comparison> comparisons;
  for (const auto& [output, slot, master, limit, has_truth] : placed) {
    Comparison comparison{};
    comparison.candidate = reinterpret_cast<const void*>(
        outputs.address() + slot * plan_->output_stride + output->offset);
    comparison.expected =
        reinterpret_cast<const void*>(oracle.device_outputs(master) + output->offset);
    comparison.type = DeviceType(output->dtype);
    comparison.element_limit = limit;
    const auto count = static_cast<int64_t>(output->size_bytes / wire::ElementBytes(output->dtype));
    const bool exact =
        comparison.type == ElementType::kBytes || comparison.type == ElementType::kBool;
    comparison.elements = exact ? static_cast<long long>(output->size_bytes) : count;
    comparison.row_elements =
        exact ? comparison.elements
              : RowElements({output->shape, output->shape + output->rank}, count);
    comparisons.push_back(comparison);
  }
  return device_->kernels().Compare(comparisons);
}

Result<std::vector<JudgeKernels::Measured>> DeviceSlots::CompareWithTruth(
    const Oracle& oracle, const DeviceRegion& outputs, std::span<const PlacedOutput> placed) {
  std::vector<gpu::TruthComparison> comparisons;
  for (const auto& [output, slot, master, limit, has_truth] : placed) {
    comparisons.push_back(oracle.AgainstTruth(
        *output, outputs.address() + slot * plan_->output_stride + output->offset, master));
    if (!has_truth) comparisons.back().truth = nullptr;
  }
  return device_->kernels().CompareWithTruth(comparisons);
}

void DeviceSlots::AddGuards(const DeviceRegion& outputs, std::span<const uint32_t> slots,
                            std::vector<Comparison>* comparisons) const {
  for (const uint32_t slot : slots)
    for (const Span& guard : guards_)
      comparisons->push_back(
          SameBytes(outputs.address() + slot * plan_->output_stride + guard.begin,
                    frame_.address() + guard.at, guard.size_bytes));
}

Result<bool> DeviceSlots::GuardsStand(const DeviceRegion& outputs,
                                      std::span<const uint32_t> slots) {
  std::vector<Comparison> comparisons;
  AddGuards(outputs, slots, &comparisons);
  return AllWithin(comparisons);
}

Result<bool> DeviceSlots::AreUntouched(const DeviceRegion& outputs,
                                       std::span<const uint32_t> slots) {
  std::vector<Comparison> comparisons;
  AddGuards(outputs, slots, &comparisons);
  for (const uint32_t slot : slots)
    for (const Span& output : poisoned_) {
      const cuda::Pointer begin = outputs.address() + slot * plan_->output_stride + output.begin;
      const uint64_t head = std::min(output.size_bytes, kStep);
      if (head == 0) continue;
      comparisons.push_back(SameBytes(begin, frame_.address() + output.at, head));
      // All bytes equal the first ones: the range equals itself moved.
      if (output.size_bytes > kStep)
        comparisons.push_back(SameBytes(begin, begin + kStep, output.size_bytes - kStep));
    }
  ForEachChangedInput(*plan_, [&](const wire::ArgumentSpec& output) {
    for (const uint32_t slot : slots)
      if (output.size_bytes > 0)
        comparisons.push_back(
            SameBytes(OutputOf(outputs, slot, output), InputOf(slot, output), output.size_bytes));
  });
  return AllWithin(comparisons);
}

Result<void> DeviceSlots::Fetch(const DeviceRegion& outputs, uint32_t slot, uint64_t begin,
                                std::span<std::byte> target) const {
  return device_->gpu().CopyToHost(
      target.data(), outputs.address() + slot * plan_->output_stride + begin, target.size());
}

Result<const std::byte*> DeviceSlots::Fetch(const DeviceRegion& outputs, uint32_t slot) {
  fetched_.resize(plan_->output_stride);
  ASSAY_RETURN_IF_ERROR(Fetch(outputs, slot, 0, fetched_));
  return fetched_.data();
}

}  // namespace assay
