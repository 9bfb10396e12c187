// Running sums by a scan within each vector.
//
// Idea: element after element, every addition waits for the one before it, which bounds PyTorch's
// loop. Here 16 elements become their running sums in four steps: each adds what lies 1, 2, 4 and 8
// places before. Only the carry goes from vector to vector, one addition each. The result leaves by
// stores that pass the caches by. Few additions lie behind each sum, so that float will do where
// PyTorch adds up in double.
// expected: faster at small
#include <assay/kernel.h>

#include <utility>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

constexpr int64_t kAhead = 1024;  // floats: a page, at whose end the hardware stops reading ahead

typedef float Vector __attribute__((vector_size(4 * kLanes)));

Vector Load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

// Past the caches where the machine has such a store and the address allows it.
void StoreOnce(float* to, Vector value, bool is_aligned) {
#if defined(__AVX512F__)
  if (is_aligned) return _mm512_stream_ps(to, reinterpret_cast<__m512>(value));
#elif defined(__AVX__)
  if (is_aligned) return _mm256_stream_ps(to, reinterpret_cast<__m256>(value));
#endif
  (void)is_aligned;
  __builtin_memcpy(to, &value, sizeof value);
}

// Lane i takes what lane i - kBy has; the first kBy lanes take zero.
template <int kBy, int... kLane>
Vector MoveUp(Vector value, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(Vector{}, value, (kLane < kBy ? 0 : kLanes + kLane - kBy)...);
}

// Lane i becomes the sum of the lanes up to i.
template <int kBy = 1>
Vector Scan(Vector value) {
  value += MoveUp<kBy>(value, std::make_integer_sequence<int, kLanes>());
  if constexpr (2 * kBy < kLanes) value = Scan<2 * kBy>(value);
  return value;
}

void RunningSums(const float* x, int64_t columns, float* out) {
  const bool is_aligned = reinterpret_cast<uintptr_t>(out) % sizeof(Vector) == 0;
  Vector carry = {};
  int64_t column = 0;
  for (; column + kLanes <= columns; column += kLanes) {
    __builtin_prefetch(x + column + kAhead);
    const Vector sums = Scan(Load(x + column));
    StoreOnce(out + column, carry + sums, is_aligned);
    carry += sums[kLanes - 1];
  }
  float sum = carry[0];
  for (; column < columns; ++column) {
    sum += x[column];
    out[column] = sum;
  }
}

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> out) {
  const int64_t rows = x.size(0);
  const int64_t columns = x.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    RunningSums(x.data() + row * columns, columns, out.data() + row * columns);
  }
#if defined(__AVX__)
  _mm_sfence();  // streaming stores are ordered before the return
#endif
}
