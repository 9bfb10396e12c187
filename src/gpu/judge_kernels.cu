// The judge's own work on the device: patterns, and the comparison of a candidate's outputs with
// the expected ones. NVRTC compiles it for the device's architecture; tests compile it for the host
// (tests/fake_cuda/emulate.h), where a warp has one lane. The structs are those of
// gpu/judge_kernels.h.
//
// Theory of operation. A comparison is of one output of one call. Its rows are cut into units that
// a warp reads at once; row_sums adds up the squares of the differences and of the expected values
// and keeps the largest difference. row_check finds each row's scale and what its elements' errors
// come to at most; rows for which that bound is not enough are read again by row_ratio, element by
// element. Nothing is decided here but 'within the limit, and these are the errors'; all else is
// copied to the host and looked at there. Every comparison is written so that NaN fails.
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

struct Unit {
  long long row, begin, end;  // elements
};
__device__ inline long long UnitsOfRow(const Comparison& task) {
  return (task.row_elements + kUnitElements - 1) / kUnitElements;
}
__device__ inline Unit UnitAt(const Comparison& task, unsigned long long index) {
  const long long units = UnitsOfRow(task);
  const long long row = static_cast<long long>(index) / units;
  const long long begin =
      row * task.row_elements + static_cast<long long>(index) % units * kUnitElements;
  long long end = begin + kUnitElements;
  if (end > (row + 1) * task.row_elements) end = (row + 1) * task.row_elements;
  return {row, begin, end};
}

}  // namespace

// Each task: the words of a range become one pattern.
extern "C" __global__ void assay_fill(const Range* tasks, int count) {
  for (int i = static_cast<int>(blockIdx.y); i < count; i += static_cast<int>(gridDim.y))
    for (unsigned long long at = Thread(); at < tasks[i].words; at += Threads())
      tasks[i].begin[at] = tasks[i].pattern;
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
    for (unsigned long long at = Thread(); at < bytes; at += Threads())
      if (got[at] != expected[at] || (task.type == ElementType::kBool && got[at] > 1))
        task.totals->beyond = 1;
  }
}

extern "C" __global__ void assay_row_sums(const Comparison* tasks, int count) {
  for (int i = static_cast<int>(blockIdx.y); i < count; i += static_cast<int>(gridDim.y)) {
    const Comparison& task = tasks[i];
    const unsigned long long units =
        static_cast<unsigned long long>(task.elements / task.row_elements * UnitsOfRow(task));
    for (unsigned long long index = Warp(); index < units; index += Warps()) {
      const Unit unit = UnitAt(task, index);
      double difference2 = 0, reference2 = 0, largest = 0;
      for (long long at = unit.begin + Lane(); at < unit.end; at += WARP_LANES) {
        const double expected = Load(task.expected, task.type, at);
        const double difference = Load(task.candidate, task.type, at) - expected;
        difference2 += difference * difference;
        reference2 += expected * expected;
        const double size = fabs(difference);
        largest = size > largest ? size : largest;
      }
      difference2 = WarpSum(difference2);
      reference2 = WarpSum(reference2);
      largest = WarpMax(largest);
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
    const unsigned long long units =
        static_cast<unsigned long long>(task.elements / task.row_elements * UnitsOfRow(task));
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
