#include "values/slot_layout.h"

#include <algorithm>
#include <cstring>
#include <random>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <fmt/format.h>

#include "base/check.h"
#include "base/defences.h"

namespace assay {
namespace {

using wire::ArgumentSpec;
using wire::Plan;
using wire::Role;

constexpr uint64_t kLine = 64;

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Lays tensors one after another with guards between. Gaps differ from tensor to tensor by odd
// numbers of lines, so that equal sizes do not put every tensor at the same offset within a page (4
// KiB aliasing).
class Layout {
 public:
  uint64_t Place(uint64_t size_bytes) {
    const uint64_t offset = AlignUp(end_ + kGuardBytes + kLine * skew_, kLine);
    skew_ = (skew_ + 5) % 13;
    end_ = offset + size_bytes;
    return offset;
  }
  uint64_t Stride() const { return end_ == 0 ? 0 : AlignUp(end_ + kGuardBytes, 4096) + 5 * kLine; }

 private:
  uint64_t end_ = 0;
  uint64_t skew_ = 1;
};

std::span<const ArgumentSpec> Arguments(const Plan& plan) {
  return {plan.arguments, plan.argument_count};
}

void StoreFence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Repeats the 8 bytes of `guard` over [begin, end), past the caches where the processor can: what
// is written this way is in memory alone, so that the next reader finds it cold.
void FillPattern(std::byte* begin, std::byte* end, uint64_t guard) {
#if defined(__x86_64__)
  // The ranges that are long start and end on cache lines.
  if (reinterpret_cast<uintptr_t>(begin) % 16 == 0) {
    const __m128i pattern = _mm_set1_epi64x(static_cast<long long>(guard));
    for (; end - begin >= 16; begin += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(begin), pattern);
  }
#endif
  while (begin < end) {
    const size_t count = std::min<size_t>(sizeof guard, static_cast<size_t>(end - begin));
    std::memcpy(begin, &guard, count);
    begin += count;
  }
}

uint64_t Repeat(std::byte value) { return 0x0101010101010101 * std::to_integer<uint64_t>(value); }

// First byte of [begin, end) that is not as FillPattern left it, or end.
const std::byte* FindChange(const std::byte* begin, const std::byte* end, uint64_t guard) {
  std::byte pattern[sizeof guard];
  std::memcpy(pattern, &guard, sizeof guard);
  for (const std::byte* at = begin; at < end; ++at)
    if (*at != pattern[static_cast<size_t>(at - begin) % sizeof guard]) return at;
  return end;
}

// Returns the end of the last change of [at, end), whose pattern starts at `begin`; the byte at
// `at` is changed.
const std::byte* ChangesEnd(const std::byte* at, const std::byte* end, const std::byte* begin,
                            uint64_t guard) {
  std::byte pattern[sizeof guard];
  std::memcpy(pattern, &guard, sizeof guard);
  const std::byte* last = end - 1;
  while (last > at && *last == pattern[static_cast<size_t>(last - begin) % sizeof guard]) --last;
  return last + 1;
}

bool IsKnown(Role role) {
  return role == Role::kInput || role == Role::kParameter || role == Role::kOutput;
}

bool IsScalar(wire::Kind kind) {
  return kind == wire::Kind::kInt || kind == wire::Kind::kFloat || kind == wire::Kind::kBool;
}

}  // namespace

bool IsSound(const ArgumentSpec& argument) {
  if (::strnlen(argument.name, wire::kNameBytes) == wire::kNameBytes) return false;
  if (!IsKnown(argument.role)) return false;
  if (argument.kind != wire::Kind::kTensor)
    return IsScalar(argument.kind) && argument.role == Role::kInput && argument.size_bytes == 8;
  const uint32_t element = wire::ElementBytes(argument.dtype);
  if (element == 0 || argument.rank > wire::kRankMax) return false;
  uint64_t size = element;
  for (uint32_t i = 0; i < argument.rank; ++i) {
    if (argument.shape[i] < 0) return false;
    if (__builtin_mul_overflow(size, static_cast<uint64_t>(argument.shape[i]), &size)) return false;
  }
  return size == argument.size_bytes && size <= kRegionBytesMax;
}

bool TwinsAreSound(std::span<const ArgumentSpec> arguments) {
  bool last = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentSpec& argument = arguments[i];
    if (last && !wire::IsChangedInput(argument)) return false;
    last = wire::IsChangedInput(argument);
    if (argument.twin == 0) continue;
    if (argument.twin > arguments.size() || argument.role == Role::kParameter) return false;
    const ArgumentSpec& twin = arguments[argument.twin - 1];
    if (twin.role != (argument.role == Role::kInput ? Role::kOutput : Role::kInput)) return false;
    if (twin.twin != i + 1 || argument.kind != wire::Kind::kTensor || twin.kind != argument.kind ||
        twin.dtype != argument.dtype || twin.rank != argument.rank ||
        !std::equal(twin.shape, twin.shape + twin.rank, argument.shape))
      return false;
  }
  return true;
}

Result<Plan> LayOutSlots(const ProblemDescription& description) {
  if (description.arguments.size() > wire::kArgumentsMax)
    return UsageError(
        fmt::format("the problem has {} inputs, parameters and outputs; at most {} are supported",
                    description.arguments.size(), wire::kArgumentsMax));
  Plan plan{};
  plan.argument_count = static_cast<uint32_t>(description.arguments.size());
  Layout inputs, weights, outputs, oracle;
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    ArgumentSpec& argument = plan.arguments[i];
    argument = description.arguments[i];
    ASSAY_CHECK(IsSound(argument));
    switch (argument.role) {
      case Role::kInput:
        argument.offset = inputs.Place(argument.size_bytes);
        break;
      case Role::kParameter:
        argument.offset = weights.Place(argument.size_bytes);
        break;
      case Role::kOutput: {
        argument.offset = outputs.Place(argument.size_bytes);
        const uint64_t elements = argument.size_bytes / wire::ElementBytes(argument.dtype);
        argument.oracle_offset = oracle.Place(elements * sizeof(double));
        break;
      }
    }
  }
  plan.input_stride = std::max<uint64_t>(inputs.Stride(), 4096);
  plan.output_stride = std::max<uint64_t>(outputs.Stride(), 4096);
  plan.oracle_stride = std::max<uint64_t>(oracle.Stride(), 4096);
  plan.weights_stride = weights.Stride();
  if (std::max({plan.input_stride, plan.output_stride, plan.oracle_stride, plan.weights_stride}) >
      kRegionBytesMax)
    return UsageError("the problem's tensors take more bytes than one process can address");
  return plan;
}

uint64_t WeightsBytes(const Plan& plan, uint64_t slots) {
  return std::max<uint64_t>(4096, slots * plan.weights_stride);
}

uint64_t TensorBytes(const Plan& plan, Role role) {
  uint64_t sum = 0;
  for (const ArgumentSpec& argument : Arguments(plan))
    if (argument.role == role) sum += argument.size_bytes;
  return sum;
}

std::byte PoisonByte(wire::DType dtype) {
  switch (dtype) {
    case wire::DType::kFloat64:
    case wire::DType::kFloat32:
    case wire::DType::kFloat16:
    case wire::DType::kBFloat16:
    case wire::DType::kFloat8E4M3:
    case wire::DType::kFloat8E5M2:
      return std::byte{0xFF};
    default:
      return std::byte{0xA5};
  }
}

void PoisonOutputs(const Plan& plan, std::byte* outputs, uint32_t slots, uint64_t guard) {
  for (uint32_t slot = 0; slot < slots; ++slot) PoisonSlot(plan, outputs, slot, guard);
  FlushFromCaches(outputs, slots * plan.output_stride);
}

void PoisonSlot(const Plan& plan, std::byte* outputs, uint32_t slot, uint64_t guard) {
  std::byte* base = outputs + slot * plan.output_stride;
  std::byte* end = base;
  for (const ArgumentSpec& argument : Arguments(plan)) {
    if (argument.role != Role::kOutput) continue;
    FillPattern(end, base + argument.offset, guard);
    end = base + argument.offset + argument.size_bytes;
    if (Stands(Defence::kPoison))
      FillPattern(base + argument.offset, end, Repeat(PoisonByte(argument.dtype)));
  }
  FillPattern(end, base + plan.output_stride, guard);
  StoreFence();
}

void LayChangedInputs(const Plan& plan, const std::byte* inputs, std::byte* outputs) {
  ForEachChangedInput(plan, [&](const ArgumentSpec& output) {
    CopyPastCaches(outputs + output.offset, inputs + plan.arguments[output.twin - 1].offset,
                   output.size_bytes);
  });
}

bool ChangedInputsStand(const Plan& plan, const std::byte* inputs, const std::byte* outputs) {
  bool stand = true;
  ForEachChangedInput(plan, [&](const ArgumentSpec& output) {
    stand = stand &&
            std::memcmp(outputs + output.offset, inputs + plan.arguments[output.twin - 1].offset,
                        output.size_bytes) == 0;
  });
  return stand;
}

void ReadOutputs(const Plan& plan, const std::byte* outputs, uint32_t slots) {
  const uint64_t size_bytes = slots * plan.output_stride;
  for (uint64_t offset = 0; offset < size_bytes; offset += kLine)
    static_cast<void>(*static_cast<const volatile std::byte*>(outputs + offset));
}

std::optional<GuardDamage> FindGuardDamage(const Plan& plan, const std::byte* outputs,
                                           std::span<const uint32_t> slots, uint64_t guard) {
  for (const uint32_t slot : slots) {
    const std::byte* base = outputs + slot * plan.output_stride;
    const std::byte* end = base;
    const ArgumentSpec* previous = nullptr;
    for (const ArgumentSpec& argument : Arguments(plan)) {
      if (argument.role != Role::kOutput) continue;
      const std::byte* start = base + argument.offset;
      if (const std::byte* at = FindChange(end, start, guard); at != start) {
        const bool after = previous != nullptr && at - end < start - at;
        return GuardDamage{slot, after ? previous->name : argument.name,
                           after ? ChangesEnd(at, start, end, guard) - end : at - start};
      }
      end = start + argument.size_bytes;
      previous = &argument;
    }
    const std::byte* stop = base + plan.output_stride;
    if (const std::byte* at = FindChange(end, stop, guard); at != stop)
      return GuardDamage{slot, previous != nullptr ? previous->name : "",
                         ChangesEnd(at, stop, end, guard) - end};
  }
  return std::nullopt;
}

std::optional<uint64_t> FirstTouched(const Plan& plan, const std::byte* outputs, uint32_t slot,
                                     uint64_t guard) {
  const std::byte* base = outputs + slot * plan.output_stride;
  const auto offset = [&](const std::byte* at) { return static_cast<uint64_t>(at - base); };
  const std::byte* end = base;
  for (const ArgumentSpec& argument : Arguments(plan)) {
    if (argument.role != Role::kOutput) continue;
    const std::byte* start = base + argument.offset;
    if (const std::byte* at = FindChange(end, start, guard); at != start) return offset(at);
    end = start + argument.size_bytes;
    if (wire::IsChangedInput(argument) || argument.size_bytes == 0) continue;
    const std::byte poison = PoisonByte(argument.dtype);
    // All bytes equal the first: the range equals itself moved by one byte.
    if (*start != poison || std::memcmp(start, start + 1, argument.size_bytes - 1) != 0)
      return offset(std::find_if(start, end, [&](std::byte byte) { return byte != poison; }));
  }
  const std::byte* stop = base + plan.output_stride;
  if (const std::byte* at = FindChange(end, stop, guard); at != stop) return offset(at);
  return std::nullopt;
}

std::string DistanceText(const Plan& plan, Role role, int64_t offset) {
  const ArgumentSpec* nearest = nullptr;
  const auto start = [](const ArgumentSpec& argument) {
    return static_cast<int64_t>(argument.offset);
  };
  for (const ArgumentSpec& argument : Arguments(plan)) {
    if (argument.role != role) continue;
    const bool nearer = nearest != nullptr && start(argument) > start(*nearest);
    const bool is_below = start(argument) <= offset;
    if (nearest == nullptr ||
        (is_below ? nearer || start(*nearest) > offset : !nearer && start(*nearest) > offset))
      nearest = &argument;
  }
  if (nearest == nullptr) return {};
  const char* name = role == Role::kInput    ? "input"
                     : role == Role::kOutput ? "output"
                                             : "parameter";
  const int64_t from_start = offset - start(*nearest);
  const int64_t past_end = from_start - static_cast<int64_t>(nearest->size_bytes);
  const auto bytes = [](int64_t count) {
    return fmt::format("{} {}", count, count == 1 ? "byte" : "bytes");
  };
  if (from_start < 0)
    return fmt::format("{} before the start of {} {}", bytes(-from_start), name, nearest->name);
  if (past_end < 0) return fmt::format("byte {} of {} {}", from_start, name, nearest->name);
  return fmt::format("{} past the end of {} {}", bytes(past_end + 1), name, nearest->name);
}

bool SlotIsUntouched(const Plan& plan, const std::byte* outputs, uint32_t slot, uint64_t guard) {
  return !FirstTouched(plan, outputs, slot, guard);
}

#if defined(__x86_64__)
namespace {
__attribute__((target("clflushopt"))) void FlushLines(const std::byte* data, uint64_t size_bytes) {
  for (uint64_t offset = 0; offset < size_bytes; offset += kLine)
    _mm_clflushopt(const_cast<std::byte*>(data + offset));
  _mm_sfence();
}
}  // namespace
#endif

void CopyPastCaches(std::byte* target, const std::byte* source, uint64_t size_bytes) {
  uint64_t done = 0;
#if defined(__x86_64__)
  if (reinterpret_cast<uintptr_t>(target) % 16 == 0) {
    for (; done + 16 <= size_bytes; done += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + done),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + done)));
  }
#endif
  std::memcpy(target + done, source + done, size_bytes - done);
  StoreFence();
#if !defined(__x86_64__)
  FlushFromCaches(target, size_bytes);
#endif
}

void FlushFromCaches(const std::byte* data, uint64_t size_bytes) {
  if (size_bytes == 0) return;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("clflushopt")) {
    FlushLines(data, size_bytes);
  } else {
    for (uint64_t offset = 0; offset < size_bytes; offset += kLine) _mm_clflush(data + offset);
    _mm_mfence();
  }
#elif defined(__aarch64__)
  for (uint64_t offset = 0; offset < size_bytes; offset += kLine)
    asm volatile("dc civac, %0" ::"r"(data + offset) : "memory");
  asm volatile("dsb ish" ::: "memory");
#endif
}

OutputSample OutputSample::Take(const Plan& plan, const std::byte* outputs,
                                std::span<const uint32_t> slots, uint32_t lines, uint64_t seed,
                                Of which) {
  OutputSample sample;
  std::vector<const ArgumentSpec*> tensors;
  for (const ArgumentSpec& argument : Arguments(plan))
    if (argument.role == Role::kOutput && argument.size_bytes > 0 &&
        (which == Of::kAll || wire::IsChangedInput(argument)))
      tensors.push_back(&argument);
  if (tensors.empty() || slots.empty()) return sample;
  sample.lines_.resize(lines);
  std::mt19937_64 random(seed);
  for (Line& line : sample.lines_) {
    const ArgumentSpec& tensor = *tensors[random() % tensors.size()];
    const uint32_t slot = slots[random() % slots.size()];
    const uint64_t line_count = (tensor.size_bytes + kLine - 1) / kLine;
    const uint64_t offset = random() % line_count * kLine;
    line.address = outputs + slot * plan.output_stride + tensor.offset + offset;
    line.size = static_cast<uint32_t>(std::min(kLine, tensor.size_bytes - offset));
    std::memcpy(line.content, line.address, line.size);
  }
  return sample;
}

bool OutputSample::StillHolds() const {
  return std::all_of(lines_.begin(), lines_.end(), [](const Line& line) {
    return std::memcmp(line.content, line.address, line.size) == 0;
  });
}

}  // namespace assay
