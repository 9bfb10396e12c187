// RMSNorm and SwiGLU of one row, one after the other.
//
// Idea: none; the first rungs of two ladders. A block normalises the row; then a thread multiplies
//   it with a row of the gate's weights and with one of the other weights, two bytes at a time.
// Sizes: any; a row of x after the other, each with all weights.
//! constant ROWS = x.size(0)
//! constant FEATURES = x.size(1)
//! constant HIDDEN = gate_weight.size(0)
//! constant WIDTH = 8 - 7 * min(FEATURES % 8, 1)
//! constant PACKS = FEATURES / WIDTH
//! scratch  normed bfloat16[ROWS * FEATURES]
//! launch   rms_norm grid=(ROWS) block=(256) args=(x, norm_weight, normed)
//! launch   swiglu grid=(ceil_div(HIDDEN, 128), ROWS) block=(128) args=(normed, gate_weight, up_weight, out)
#define DEVICE __device__ __forceinline__

using Half = unsigned short;       // the bits of a bfloat16
constexpr float kEpsilon = 1e-5f;  // EPSILON of the problem file

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

// Two numbers rounded to bfloat16, the first in the lower half.
DEVICE unsigned PackTwo(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

DEVICE uint4 PackAll(const float (&v)[8]) {
  return make_uint4(PackTwo(v[0], v[1]), PackTwo(v[2], v[3]), PackTwo(v[4], v[5]),
                    PackTwo(v[6], v[7]));
}
DEVICE Half PackAll(const float (&v)[1]) { return PackTwo(v[0], 0); }

// Rounded once: x * weight * scale.
DEVICE Pack Scaled(Pack x, Pack weight, float scale) {
  float values[WIDTH], weights[WIDTH];
  Unpack(x, values);
  Unpack(weight, weights);
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) values[i] *= weights[i] * scale;
  return PackAll(values);
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

// The sum over a block of 256 threads, in each of them; called once.
DEVICE float SumOfBlock(float value) {
  __shared__ float of_warp[8];
  value = SumOfWarp(value);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (const float sum : of_warp) value += sum;
  return value;
}

extern "C" __global__ void __launch_bounds__(256)
    rms_norm(const Pack* x, const Pack* norm_weight, Pack* normed) {
  x += (long long)blockIdx.x * PACKS;
  normed += (long long)blockIdx.x * PACKS;
  float squares = 0;
  for (int i = threadIdx.x; i < PACKS; i += 256) squares = AddProducts(squares, x[i], x[i]);
  const float scale = rsqrtf(SumOfBlock(squares) / FEATURES + kEpsilon);
  for (int i = threadIdx.x; i < PACKS; i += 256) normed[i] = Scaled(x[i], norm_weight[i], scale);
}

DEVICE float ToFloat(Half bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

DEVICE Half Gated(float gate, float up) { return PackTwo(gate / (1 + __expf(-gate)) * up, 0); }

extern "C" __global__ void __launch_bounds__(128)
    swiglu(const Half* x, const Half* gate_weight, const Half* up_weight, Half* out) {
  const int column = blockIdx.x * 128 + threadIdx.x;
  if (column >= HIDDEN) return;
  x += (long long)blockIdx.y * FEATURES;
  gate_weight += (long long)column * FEATURES;
  up_weight += (long long)column * FEATURES;
  float gate = 0, up = 0;
  for (int i = 0; i < FEATURES; ++i) {
    gate += ToFloat(x[i]) * ToFloat(gate_weight[i]);
    up += ToFloat(x[i]) * ToFloat(up_weight[i]);
  }
  out[(long long)blockIdx.y * HIDDEN + column] = Gated(gate, up);
}
