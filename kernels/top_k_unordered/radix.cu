// The largest elements of each row, in any order: a block a row finds the smallest of them digit
// by digit.
//
// Idea: nothing is sorted. Four passes over the row, each over eight bits of a key whose order is
// that of numbers, count how many elements have each digit behind the digits that are known, and
// so find the key of the last element that is chosen. A fifth pass writes what is larger, in
// whatever order threads come, and as many of the equal ones as are left. NaN is the largest.
// Sizes: any.
//! dim      rows = x.size(0)
//! constant COLUMNS = x.size(1)
//! constant COUNT = out.size(1)
//! launch   choose grid=(rows) block=(256) args=(x, out, out1)
constexpr int kThreads = 256, kDigits = 256;

// Returns a key that orders floats as numbers; every NaN has the largest.
__device__ __forceinline__ unsigned KeyOf(float value) {
  const unsigned bits = __float_as_uint(value), magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0xffffffffu;
  return bits == magnitude ? 0x80000000u + magnitude : 0x80000000u - magnitude;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    choose(const float* __restrict__ x, float* __restrict__ out, long long* __restrict__ out1) {
  __shared__ int counts[kDigits];
  __shared__ unsigned prefix;
  __shared__ int left, larger, equal;
  const float* const row = x + (long long)blockIdx.x * COLUMNS;
  if (threadIdx.x == 0) prefix = 0, left = COUNT, larger = 0, equal = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    counts[threadIdx.x] = 0;
    __syncthreads();
    const unsigned known = shift == 24 ? 0u : ~0u << (shift + 8), wanted = prefix;
    for (int i = threadIdx.x; i < COLUMNS; i += kThreads) {
      const unsigned key = KeyOf(row[i]);
      if ((key & known) == wanted) atomicAdd(&counts[key >> shift & (kDigits - 1)], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = kDigits - 1;
      while (counts[digit] < left) left -= counts[digit--];
      prefix = wanted | (unsigned)digit << shift;
    }
    __syncthreads();
  }
  const unsigned last = prefix;
  const int wanted = left;
  for (int i = threadIdx.x; i < COLUMNS; i += kThreads) {
    const float value = row[i];
    const unsigned key = KeyOf(value);
    int place = -1;
    if (key > last) place = atomicAdd(&larger, 1);
    if (key == last) {
      const int number = atomicAdd(&equal, 1);
      if (number < wanted) place = COUNT - 1 - number;
    }
    if (place < 0) continue;
    out[(long long)blockIdx.x * COUNT + place] = value;
    out1[(long long)blockIdx.x * COUNT + place] = i;
  }
}
