// Position of the largest element: every lane of a vector keeps its own best value and its place.
//
// Idea: element after element, each comparison waits for the one before it, and PyTorch compares
// so. Here 64 lanes look at every 64th element each, without a branch; the lanes are compared with
// one another once a row. A NaN beats every number, and of equal values the first one counts.
// expected: faster at small
#include <assay/kernel.h>

#include <algorithm>

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
constexpr int kParts = 4;  // vectors in flight: one alone would wait for its own comparison
constexpr int kStride = kParts * kLanes;
constexpr int64_t kAhead = 1024;  // floats: a page, at whose end the hardware stops reading ahead

typedef float Vector __attribute__((vector_size(4 * kLanes)));
typedef int32_t IntVector __attribute__((vector_size(4 * kLanes)));

struct Best {
  float value;
  int64_t place;
};

bool IsNan(float value) { return value != value; }

// Whether `other` counts rather than `best`.
bool Beats(Best other, Best best) {
  if (IsNan(other.value) != IsNan(best.value)) return IsNan(other.value);
  if (IsNan(other.value) || other.value == best.value) return other.place < best.place;
  return other.value > best.value;
}

Vector Load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

Best Largest(const float* x, int64_t columns) {
  Best result{x[0], 0};
  int64_t column = 0;
  if (columns >= kStride) {
    Vector value[kParts];
    IntVector place[kParts];
    for (int part = 0; part < kParts; ++part) {
      value[part] = Load(x + part * kLanes);
      for (int lane = 0; lane < kLanes; ++lane) place[part][lane] = part * kLanes + lane;
    }
    IntVector here[kParts];
    for (int part = 0; part < kParts; ++part) here[part] = place[part];
    for (column = kStride; column + kStride <= columns; column += kStride) {
      for (int line = 0; line < kStride; line += 16) __builtin_prefetch(x + column + line + kAhead);
      for (int part = 0; part < kParts; ++part) {
        here[part] += kStride;
        const Vector other = Load(x + column + part * kLanes);
        // Larger, or the lane's first NaN: once a lane has one, nothing replaces it.
        const IntVector beats = ~(other <= value[part]) & (value[part] == value[part]);
        value[part] = beats ? other : value[part];
        place[part] = beats ? here[part] : place[part];
      }
    }
    for (int part = 0; part < kParts; ++part) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const Best other{value[part][lane], place[part][lane]};
        if (Beats(other, result)) result = other;
      }
    }
  }
  for (; column < columns; ++column) {
    const Best other{x[column], column};
    if (Beats(other, result)) result = other;
  }
  return result;
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<int64_t, 1> out) {
  constexpr int64_t kBlock = int64_t{1} << 30;  // places within a block fit into 32 bits
  const int64_t rows = x.size(0);
  const int64_t columns = x.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x.data() + row * columns;
    Best best = Largest(from, std::min(columns, kBlock));
    for (int64_t first = kBlock; first < columns; first += kBlock) {
      Best other = Largest(from + first, std::min(columns - first, kBlock));
      other.place += first;
      if (Beats(other, best)) best = other;
    }
    out.data()[row] = best.place;
  }
}
