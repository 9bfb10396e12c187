// Weights of four bits, unpacked first.
//
// Idea: none; the starting point, and what the library does in more steps. One launch writes the
//   weights in bfloat16, a thread a byte; the next multiplies, a warp a row, 16 bytes a load.
// Prediction: 180% of the library. 26 MB are read, 101 MB written and read again.
// Measured: on an H100 123.3 us, 461.8% of the library, 7.0% of the speed of a copy (one row);
//   611.1 us, 94.7% of the library, 1.4% of the speed of a copy (16 rows).
// Sizes: groups of 128; a row of x after the other, each with all weights.
//! constant ROWS = x.size(0)
//! constant FEATURES = x.size(1)
//! constant OUTPUTS = packed.size(0)
//! constant GROUPS = scales.size(1)
//! constant PACKS = FEATURES / 8
//! dim      bytes = OUTPUTS * FEATURES / 2
//! scratch  weight bfloat16[OUTPUTS * FEATURES]
//! launch   unpack grid=(ceil_div(bytes, 256)) block=(256) args=(packed, scales, zeros, weight)
//! launch   multiply grid=(ceil_div(OUTPUTS, 8), ROWS) block=(256) args=(x, weight, out)
#define DEVICE __device__ __forceinline__
static_assert(FEATURES == 128 * GROUPS);

using Half = unsigned short;  // the bits of a bfloat16
using Byte = unsigned char;

// bfloat16 is the upper half of a float.
DEVICE float ToFloat(Half bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

DEVICE void Unpack(uint4 pack, float (&values)[8]) {
  const unsigned pairs[] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = __uint_as_float(pairs[i] << 16);
    values[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000);
  }
}

// Two numbers rounded to bfloat16, the first in the lower half.
DEVICE unsigned PackTwo(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// The sum over a warp, in each lane.
DEVICE float SumOfWarp(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

extern "C" __global__ void __launch_bounds__(256)
    unpack(const Byte* packed, const Half* scales, const Byte* zeros, unsigned* weight) {
  const long long at = (long long)blockIdx.x * 256 + threadIdx.x;
  if (at >= (long long)OUTPUTS * FEATURES / 2) return;
  const long long group = at / 64;  // of all rows' groups
  const float scale = ToFloat(scales[group]);
  const int zero = zeros[group], pair = packed[at];
  weight[at] = PackTwo((pair % 16 - zero) * scale, (pair / 16 - zero) * scale);
}

extern "C" __global__ void __launch_bounds__(256)
    multiply(const uint4* __restrict__ x, const uint4* __restrict__ weight, Half* out) {
  const int column = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (column >= OUTPUTS) return;
  x += (long long)blockIdx.y * PACKS;
  weight += (long long)column * PACKS;
  float sum = 0;
#pragma unroll 4
  for (int i = lane; i < PACKS; i += 32) {
    float values[8], weights[8];
    Unpack(x[i], values);
    Unpack(weight[i], weights);
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += values[j] * weights[j];
  }
  sum = SumOfWarp(sum);
  if (lane == 0) out[(long long)blockIdx.y * OUTPUTS + column] = PackTwo(sum, 0);
}
