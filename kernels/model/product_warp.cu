// A row times a matrix, then the sum with a residual.
//
// Idea: a warp multiplies the row with a row of the weights, 16 bytes a load; a second launch adds
//   the residual.
// Sizes: any; a row of x after the other, each with all weights. Rows that do not start on 16 bytes
// are read one element at a time.
//! constant ROWS = x.size(0)
//! constant FEATURES = x.size(1)
//! constant OUTPUTS = weight.size(0)
//! constant WIDTH = 8 - 7 * min(FEATURES % 8, 1)
//! constant PACKS = FEATURES / WIDTH
//! dim      sums = ROWS * OUTPUTS
//! scratch  multiplied bfloat16[sums]
//! launch   product grid=(ceil_div(OUTPUTS, 8), ROWS) block=(256) args=(x, weight, multiplied)
//! launch   add grid=(ceil_div(sums, 256)) block=(256) args=(multiplied, residual, out)
#define DEVICE __device__ __forceinline__

using Half = unsigned short;  // the bits of a bfloat16

// WIDTH values as they lie in memory: 16 bytes, or one value where rows do not start on 16 bytes.
template <int kWidth>
struct PackOf;
template <>
struct PackOf<8> {
  using Type = uint4;
};
template <>
struct PackOf<1> {
  using Type = Half;
};
using Pack = PackOf<WIDTH>::Type;

// bfloat16 is the upper half of a float.
DEVICE void Unpack(uint4 pack, float (&values)[8]) {
  const unsigned pairs[] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = __uint_as_float(pairs[i] << 16);
    values[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000);
  }
}
DEVICE void Unpack(Half pack, float (&values)[1]) {
  values[0] = __uint_as_float(static_cast<unsigned>(pack) << 16);
}

DEVICE float ToFloat(Half bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

// Two numbers rounded to bfloat16, the first in the lower half.
DEVICE unsigned PackTwo(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// sum + the products of two packs.
DEVICE float AddProducts(float sum, Pack a, Pack b) {
  float left[WIDTH], right[WIDTH];
  Unpack(a, left);
  Unpack(b, right);
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) sum += left[i] * right[i];
  return sum;
}

// The sum over a warp, in each lane.
DEVICE float SumOfWarp(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

extern "C" __global__ void __launch_bounds__(256)
    product(const Pack* __restrict__ x, const Pack* __restrict__ weight, Half* out) {
  const int column = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (column >= OUTPUTS) return;
  x += (long long)blockIdx.y * PACKS;
  weight += (long long)column * PACKS;
  float sum = 0;
#pragma unroll 4
  for (int i = lane; i < PACKS; i += 32) sum = AddProducts(sum, x[i], weight[i]);
  sum = SumOfWarp(sum);
  if (lane == 0) out[(long long)blockIdx.y * OUTPUTS + column] = PackTwo(sum, 0);
}

extern "C" __global__ void __launch_bounds__(256)
    add(const Half* product_of_row, const Half* residual, Half* out) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < (long long)ROWS * OUTPUTS)
    out[i] = PackTwo(ToFloat(product_of_row[i]) + ToFloat(residual[i]), 0);
}
