// The judge's own work on the device: patterns, and the comparison of a candidate's outputs with
// the expected ones. NVRTC compiles it for the device's architecture; tests compile it for the host
// (tests/fake_cuda/emulate.h), where a warp has one lane. The structs are those of
// gpu/judge_tasks.h.
//
// Theory of operation. A comparison is of one output of one call. Its rows are cut into units that
// a warp reads at once; row_sums adds up the squares of the differences and of the expected values
// and keeps the largest difference. row_check finds each row's scale and an upper bound of its
// elements' errors; if that bound is not enough, row_ratio reads the row again, element by element.
// The only decision here is 'within the limit, with these errors'; all else is copied to the host
// and compared there. Every comparison is written so that NaN fails.
//
// Against float64, or against the reference where the above did not do, the measures are those of
// the precise scan of rules/error_scan: truth_sums and truth_totals find the scales of the rows and
// of the output, truth_errors reads all once more.
#include "gpu/judge_tasks.h"

#ifdef ASSAY_EMULATED
#include "emulate.h"
#else
#define WARP_LANES 32
__device__ inline double WarpSum(double value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}
__device__ inline double WarpMax(double value) {
  for (int step = 16; step > 0; step /= 2) {
    const double other = __shfl_xor_sync(~0u, value, step);
    value = other > value ? other : value;
  }
  return value;
}
#endif

using namespace assay::gpu;

namespace {

struct alignas(16) Words {
  unsigned long long low, high;
};
// Loads of a thread's that are on their way together.
constexpr unsigned kAtOnce = 4;

__device__ inline unsigned Lane() { return threadIdx.x % WARP_LANES; }
__device__ inline unsigned long long Warp() {
  return (blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x) / WARP_LANES;
}
__device__ inline unsigned long long Warps() {
  return static_cast<unsigned long long>(gridDim.x) * blockDim.x / WARP_LANES;
}
__device__ inline unsigned long long Thread() {
  return blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x;
}
__device__ inline unsigned long long Threads() {
  return static_cast<unsigned long long>(gridDim.x) * blockDim.x;
}

// Doubles that are not negative are ordered as their bits are.
__device__ inline void RaiseTo(unsigned long long* bits, double value) {
  if (value > 0) atomicMax(bits, static_cast<unsigned long long>(__double_as_longlong(value)));
}
__device__ inline double FromBits(unsigned long long bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}
__device__ inline bool IsFinite(double value) { return value - value == 0; }

__device__ inline float FloatOfHalf(unsigned short half) {
  const unsigned sign = (half & 0x8000u) << 16;
  const unsigned exponent = (half >> 10) & 0x1Fu, mantissa = half & 0x3FFu;
  if (exponent == 31) return __uint_as_float(sign | 0x7F800000u | mantissa << 13);
  if (exponent != 0) return __uint_as_float(sign | (exponent + 112) << 23 | mantissa << 13);
  const float size = static_cast<float>(mantissa) * 5.9604644775390625e-08f;  // 2^-24
  return sign != 0 ? -size : size;
}

__device__ inline double Load(const void* data, ElementType type, long long index) {
  switch (type) {
    case ElementType::kFloat64:
      return static_cast<const double*>(data)[index];
    case ElementType::kFloat32:
      return static_cast<const float*>(data)[index];
    case ElementType::kFloat16:
      return FloatOfHalf(static_cast<const unsigned short*>(data)[index]);
    default:
      return __uint_as_float(static_cast<unsigned>(static_cast<const unsigned short*>(data)[index])
                             << 16);
  }
}

__device__ inline double TruthAt(const TruthComparison& task, long long index) {
  return task.truth != nullptr ? task.truth[index] : Load(task.reference, task.type, index);
}

__device__ constexpr unsigned ElementBits(ElementType type) {
  return type == ElementType::kFloat64 ? 64 : type == ElementType::kFloat32 ? 32 : 16;
}

struct Unit {
  long long row, begin, end;  // elements
};
template <typename Task>
__device__ inline long long UnitsOfRow(const Task& task) {
  return (task.row_elements + kUnitElements - 1) / kUnitElements;
}
template <typename Task>
__device__ inline unsigned long long Units(const Task& task) {
  return static_cast<unsigned long long>(task.elements / task.row_elements * UnitsOfRow(task));
}
template <typename Task>
__device__ inline Unit UnitAt(const Task& task, unsigned long long index) {
  const long long units = UnitsOfRow(task);
  const long long row = static_cast<long long>(index) / units;
  const long long begin =
      row * task.row_elements + static_cast<long long>(index) % units * kUnitElements;
  long long end = begin + kUnitElements;
  if (end > (row + 1) * task.row_elements) end = (row + 1) * task.row_elements;
  return {row, begin, end};
}

__device__ inline double RootMean(double sum2, unsigned long long count) {
  return count > 0 ? sqrt(sum2 / static_cast<double>(count)) : 0;
}

// Of values against their truths. What is NaN or infinite, rightly or wrongly, adds to no sum.
struct Errors {
  double sum2 = 0, element = 0, largest = 0;
  bool differs = false;

  __device__ void Add(double value, double truth, double scale) {
    if (!IsFinite(value) || !IsFinite(truth)) {
      const bool same = truth != truth ? value != value : value == truth;
      differs = differs || !same;
      return;
    }
    const double difference = fabs(value - truth);
    if (difference == 0) return;
    const double ratio = difference / (scale + fabs(truth));
    sum2 += difference * difference;
    element = ratio > element ? ratio : element;
    largest = difference > largest ? difference : largest;
  }
};

// Element `index` of 16 bytes.
template <ElementType kType>
__device__ inline double ElementOf(const Words& words, unsigned index) {
  constexpr unsigned kEach = ElementBits(kType), kHalf = 64 / kEach;
  const unsigned long long half = index < kHalf ? words.low : words.high;
  const unsigned long long bits = half >> (index % kHalf * kEach % 64);
  if (kType == ElementType::kFloat64) return FromBits(bits);
  if (kType == ElementType::kFloat32) return __uint_as_float(static_cast<unsigned>(bits));
  const auto short_bits = static_cast<unsigned short>(bits);
  return kType == ElementType::kFloat16 ? FloatOfHalf(short_bits)
                                        : __uint_as_float(static_cast<unsigned>(short_bits) << 16);
}

struct Sums {
  double difference2 = 0, reference2 = 0, largest = 0;

  __device__ void Add(double got, double expected) {
    const double difference = got - expected, size = fabs(difference);
    difference2 += difference * difference;
    reference2 += expected * expected;
    largest = size > largest ? size : largest;
  }
};

// A lane's share of a unit: 16 bytes at a time where the addresses allow it.
template <ElementType kType>
__device__ inline void AddUnit(const Comparison& task, const Unit& unit, Sums* sums) {
  constexpr unsigned kBytes = ElementBits(kType) / 8, kEach = sizeof(Words) / kBytes;
  const char* got = static_cast<const char*>(task.candidate) + unit.begin * kBytes;
  const char* expected = static_cast<const char*>(task.expected) + unit.begin * kBytes;
  long long done = unit.begin;
  const auto both =
      reinterpret_cast<unsigned long long>(got) | reinterpret_cast<unsigned long long>(expected);
  if (both % sizeof(Words) == 0) {
    const long long pieces = (unit.end - unit.begin) / kEach;
#pragma unroll 4
    for (long long at = Lane(); at < pieces; at += WARP_LANES) {
      const Words a = reinterpret_cast<const Words*>(got)[at];
      const Words b = reinterpret_cast<const Words*>(expected)[at];
#pragma unroll
      for (unsigned i = 0; i < kEach; ++i)
        sums->Add(ElementOf<kType>(a, i), ElementOf<kType>(b, i));
    }
    done += pieces * kEach;
  }
  for (long long at = done + Lane(); at < unit.end; at += WARP_LANES)
    sums->Add(Load(task.candidate, kType, at), Load(task.expected, kType, at));
}

__device__ inline void AddUnit(const Comparison& task, const Unit& unit, Sums* sums) {
  switch (task.type) {
    case ElementType::kFloat64:
      return AddUnit<ElementType::kFloat64>(task, unit, sums);
    case ElementType::kFloat32:
      return AddUnit<ElementType::kFloat32>(task, unit, sums);
    case ElementType::kFloat16:
      return AddUnit<ElementType::kFloat16>(task, unit, sums);
    default:
      return AddUnit<ElementType::kBFloat16>(task, unit, sums);
  }
}

}  // namespace

// Each task: the words of a range become one pattern.
extern "C" __global__ void assay_fill(const Range* tasks, int count) {
  for (int i = static_cast<int>(blockIdx.y); i < count; i += static_cast<int>(gridDim.y))
    for (unsigned long long at = Thread(); at < tasks[i].words; at += Threads())
      tasks[i].begin[at] = tasks[i].pattern;
}

extern "C" __global__ void assay_copy_lines(const Line* lines, int count, int words) {
  const auto all = static_cast<unsigned long long>(count) * static_cast<unsigned>(words);
  for (unsigned long long at = Thread(); at < all; at += Threads()) {
    const Line& line = lines[at / static_cast<unsigned>(words)];
    const auto word = at % static_cast<unsigned>(words);
    line.to[word] = line.from[word];
  }
}

extern "C" __global__ void assay_vary(const VariedTensor* tasks, int count) {
  for (int i = static_cast<int>(blockIdx.y); i < count; i += static_cast<int>(gridDim.y)) {
    const VariedTensor& task = tasks[i];
    for (unsigned long long at = Thread(); at < task.words; at += Threads())
      task.copy[at] = VariedWord(task.constructed[at], at, task.variation);
  }
}

// Sets *differs if a copy is not as assay_vary left it.
extern "C" __global__ void assay_compare_varied(const VariedTensor* tasks, unsigned* differs,
                                                int count) {
  for (int i = static_cast<int>(blockIdx.y); i < count; i += static_cast<int>(gridDim.y)) {
    const VariedTensor& task = tasks[i];
    for (unsigned long long at = Thread(); at < task.words; at += Threads())
      if (task.copy[at] != VariedWord(task.constructed[at], at, task.variation)) *differs = 1;
  }
}

// Each task: the first word of a range that is not the pattern, into `found` (which holds the
// number of words before).
extern "C" __global__ void assay_find_change(const Range* tasks, unsigned long long* found,
                                             int count) {
  for (int i = static_cast<int>(blockIdx.y); i < count; i += static_cast<int>(gridDim.y))
    for (unsigned long long at = Thread(); at < tasks[i].words; at += Threads())
      if (tasks[i].begin[at] != tasks[i].pattern) atomicMin(&found[i], at);
}

// Exact outputs, by bytes; a bool is 0 or 1.
extern "C" __global__ void assay_compare_exactly(const Comparison* tasks, int count) {
  for (int i = static_cast<int>(blockIdx.y); i < count; i += static_cast<int>(gridDim.y)) {
    const Comparison& task = tasks[i];
    const auto* got = static_cast<const unsigned char*>(task.candidate);
    const auto* expected = static_cast<const unsigned char*>(task.expected);
    const unsigned long long bytes = static_cast<unsigned long long>(task.elements);
    unsigned long long done = 0;
    const auto both =
        reinterpret_cast<unsigned long long>(got) | reinterpret_cast<unsigned long long>(expected);
    if (task.type == ElementType::kBytes && both % sizeof(Words) == 0) {
      done = bytes / sizeof(Words) * sizeof(Words);
      const auto* got_words = reinterpret_cast<const Words*>(got);
      const auto* expected_words = reinterpret_cast<const Words*>(expected);
      const unsigned long long words = done / sizeof(Words);
      unsigned long long differs = 0;
      for (unsigned long long begin = Thread(); begin < words; begin += kAtOnce * Threads()) {
        // Several loads on their way before the first is used.
        Words a[kAtOnce], b[kAtOnce];
        for (unsigned i = 0; i < kAtOnce; ++i) {
          const unsigned long long at = begin + i * Threads();
          a[i] = at < words ? got_words[at] : Words{};
          b[i] = at < words ? expected_words[at] : Words{};
        }
        for (unsigned i = 0; i < kAtOnce; ++i)
          differs |= (a[i].low ^ b[i].low) | (a[i].high ^ b[i].high);
      }
      if (differs != 0) task.totals->beyond = 1;
    }
    for (unsigned long long at = done + Thread(); at < bytes; at += Threads())
      if (got[at] != expected[at] || (task.type == ElementType::kBool && got[at] > 1))
        task.totals->beyond = 1;
  }
}

extern "C" __global__ void assay_row_sums(const Comparison* tasks, int count) {
  for (int i = static_cast<int>(blockIdx.y); i < count; i += static_cast<int>(gridDim.y)) {
    const Comparison& task = tasks[i];
    const unsigned long long units = Units(task);
    for (unsigned long long index = Warp(); index < units; index += Warps()) {
      const Unit unit = UnitAt(task, index);
      Sums sums;
      AddUnit(task, unit, &sums);
      const double difference2 = WarpSum(sums.difference2), reference2 = WarpSum(sums.reference2);
      const double largest = WarpMax(sums.largest);
      if (Lane() != 0) continue;
      Row& row = task.rows[unit.row];
      atomicAdd(&row.difference2, difference2);
      atomicAdd(&row.reference2, reference2);
      RaiseTo(&row.difference_max, largest);
    }
  }
}

extern "C" __global__ void assay_row_check(const Comparison* tasks, int count) {
  for (int i = static_cast<int>(blockIdx.y); i < count; i += static_cast<int>(gridDim.y)) {
    const Comparison& task = tasks[i];
    const unsigned long long rows =
        static_cast<unsigned long long>(task.elements / task.row_elements);
    for (unsigned long long base = Warp() * WARP_LANES; base < rows; base += Warps() * WARP_LANES) {
      const unsigned long long at = base + Lane();
      double difference2 = 0, reference2 = 0, largest = 0, element = 0;
      if (at < rows) {
        Row& row = task.rows[at];
        difference2 = row.difference2;
        reference2 = row.reference2;
        largest = FromBits(row.difference_max);
        if (!IsFinite(difference2) || !IsFinite(reference2)) task.totals->beyond = 1;
        row.scale = sqrt(reference2 / static_cast<double>(task.row_elements));
        element = largest > 0 ? largest / row.scale : 0;
        if (!(element <= task.element_limit)) {
          row.again = 1;
          task.totals->again = 1;
          element = 0;
        }
      }
      difference2 = WarpSum(difference2);
      reference2 = WarpSum(reference2);
      largest = WarpMax(largest);
      element = WarpMax(element);
      if (Lane() != 0) continue;
      atomicAdd(&task.totals->difference2, difference2);
      atomicAdd(&task.totals->reference2, reference2);
      RaiseTo(&task.totals->difference_max, largest);
      RaiseTo(&task.totals->element, element);
    }
  }
}

// Rows whose largest difference over their scale was not enough, by the exact measure.
extern "C" __global__ void assay_row_ratio(const Comparison* tasks, int count) {
  for (int i = static_cast<int>(blockIdx.y); i < count; i += static_cast<int>(gridDim.y)) {
    const Comparison& task = tasks[i];
    if (task.totals->again == 0) continue;
    const unsigned long long units = Units(task);
    for (unsigned long long index = Warp(); index < units; index += Warps()) {
      const Unit unit = UnitAt(task, index);
      const Row& row = task.rows[unit.row];
      if (row.again == 0) continue;
      double element = 0;
      for (long long at = unit.begin + Lane(); at < unit.end; at += WARP_LANES) {
        const double expected = Load(task.expected, task.type, at);
        const double difference = fabs(Load(task.candidate, task.type, at) - expected);
        const double ratio = difference == 0 ? 0 : difference / (row.scale + fabs(expected));
        if (!(ratio <= task.element_limit)) task.totals->beyond = 1;
        element = ratio > element ? ratio : element;
      }
      element = WarpMax(element);
      if (Lane() == 0) RaiseTo(&task.totals->element, element);
    }
  }
}

extern "C" __global__ void assay_truth_sums(const TruthComparison* tasks, int count) {
  for (int i = static_cast<int>(blockIdx.y); i < count; i += static_cast<int>(gridDim.y)) {
    const TruthComparison& task = tasks[i];
    const unsigned long long units = Units(task);
    for (unsigned long long index = Warp(); index < units; index += Warps()) {
      const Unit unit = UnitAt(task, index);
      double truth2 = 0, finite = 0;
      for (long long at = unit.begin + Lane(); at < unit.end; at += WARP_LANES) {
        const double truth = TruthAt(task, at);
        if (!IsFinite(truth)) continue;
        truth2 += truth * truth;
        finite += 1;
      }
      truth2 = WarpSum(truth2);
      finite = WarpSum(finite);
      if (Lane() != 0) continue;
      atomicAdd(&task.rows[unit.row].truth2, truth2);
      atomicAdd(&task.rows[unit.row].finite, static_cast<unsigned long long>(finite));
    }
  }
}

extern "C" __global__ void assay_truth_totals(const TruthComparison* tasks, int count) {
  for (int i = static_cast<int>(blockIdx.y); i < count; i += static_cast<int>(gridDim.y)) {
    const TruthComparison& task = tasks[i];
    const unsigned long long rows =
        static_cast<unsigned long long>(task.elements / task.row_elements);
    for (unsigned long long base = Warp() * WARP_LANES; base < rows; base += Warps() * WARP_LANES) {
      const unsigned long long at = base + Lane();
      const double truth2 = WarpSum(at < rows ? task.rows[at].truth2 : 0);
      const double finite = WarpSum(at < rows ? static_cast<double>(task.rows[at].finite) : 0);
      if (Lane() != 0) continue;
      atomicAdd(&task.totals->truth2, truth2);
      atomicAdd(&task.totals->finite, static_cast<unsigned long long>(finite));
    }
  }
}

extern "C" __global__ void assay_truth_errors(const TruthComparison* tasks, int count) {
  for (int i = static_cast<int>(blockIdx.y); i < count; i += static_cast<int>(gridDim.y)) {
    const TruthComparison& task = tasks[i];
    const double least = RootMean(task.totals->truth2, task.totals->finite) * task.row_scale_floor;
    const unsigned long long units = Units(task);
    for (unsigned long long index = Warp(); index < units; index += Warps()) {
      const Unit unit = UnitAt(task, index);
      const TruthRow& row = task.rows[unit.row];
      const double own = RootMean(row.truth2, row.finite), scale = own > least ? own : least;
      Errors candidate, reference;
      for (long long at = unit.begin + Lane(); at < unit.end; at += WARP_LANES) {
        const double truth = TruthAt(task, at);
        candidate.Add(Load(task.candidate, task.type, at), truth, scale);
        reference.Add(Load(task.reference, task.type, at), truth, scale);
      }
      if (candidate.differs) task.totals->candidate_differs = 1;
      if (reference.differs) task.totals->reference_differs = 1;
      const double candidate2 = WarpSum(candidate.sum2), reference2 = WarpSum(reference.sum2);
      const double candidate_element = WarpMax(candidate.element);
      const double reference_element = WarpMax(reference.element);
      const double candidate_max = WarpMax(candidate.largest);
      if (Lane() != 0) continue;
      atomicAdd(&task.totals->candidate2, candidate2);
      atomicAdd(&task.totals->reference2, reference2);
      RaiseTo(&task.totals->candidate_element, candidate_element);
      RaiseTo(&task.totals->reference_element, reference_element);
      RaiseTo(&task.totals->candidate_max, candidate_max);
    }
  }
}
