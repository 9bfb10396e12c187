// RMSNorm in bfloat16, the row held in registers.
//
// Idea: a thread's part of the row is four loads of 16 bytes. It keeps them: nothing is read twice,
// and all four are under way at once. The weights are asked for before the sum is there.
// Prediction: 105% of the library, 88% of the speed of a copy. The last blocks leave SMs idle.
// Measured: 48.7 us on an H100, 100% of the library (a tie), 91.5% of the speed of a copy, where
// 88% were predicted; but no gain on rung 4. Likely: with 64 registers a thread an SM runs four
// blocks, and six of rung 4.
// Rows longer than some 16 * 8 * BLOCK columns (32768) do not fit in registers: right, but slow.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1)
//! tune     BLOCK = 256 512 128
//! constant WIDTH = 8 - 7 * min(COLUMNS % 8, 1)
//! constant PACKS = COLUMNS / WIDTH
//! constant EACH = ceil_div(PACKS, BLOCK)
//! launch   rms_norm grid=(ROWS) block=(BLOCK) args=(x, weight, out)

constexpr float kEpsilon = 1e-6f;  // EPSILON of the problem file

// WIDTH values as they lie in memory: 16 bytes, or one value where rows do not start on 16 bytes.
template <int kWidth>
struct PackOf;
template <>
struct PackOf<8> {
  using Type = uint4;
};
template <>
struct PackOf<1> {
  using Type = unsigned short;
};
using Pack = PackOf<WIDTH>::Type;

// bfloat16 is the upper half of a float.
__device__ void Unpack(uint4 pack, float (&values)[8]) {
  const unsigned int pairs[] = {pack.x, pack.y, pack.z, pack.w};
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = __uint_as_float(pairs[i] << 16);
    values[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000);
  }
}
__device__ void Unpack(unsigned short pack, float (&values)[1]) {
  values[0] = __uint_as_float(static_cast<unsigned int>(pack) << 16);
}

// Rounds to nearest even.
__device__ unsigned int PackTwo(float low, float high) {
  unsigned int pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
__device__ uint4 PackAll(const float (&v)[8]) {
  return make_uint4(PackTwo(v[0], v[1]), PackTwo(v[2], v[3]), PackTwo(v[4], v[5]),
                    PackTwo(v[6], v[7]));
}
__device__ unsigned short PackAll(const float (&v)[1]) { return PackTwo(v[0], 0); }

__device__ float SquaresOf(Pack pack) {
  float values[WIDTH];
  Unpack(pack, values);
  float squares = 0;
  for (const float value : values) squares += value * value;
  return squares;
}

__device__ Pack Normalise(Pack pack, Pack weight, float scale) {
  float values[WIDTH], weights[WIDTH];
  Unpack(pack, values);
  Unpack(weight, weights);
  for (int i = 0; i < WIDTH; ++i) values[i] *= scale * weights[i];
  return PackAll(values);
}

// The same sum in every thread of the block.
__device__ float SumOfBlock(float value) {
  __shared__ float of_warp[BLOCK / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < BLOCK / 32; ++warp) value += of_warp[warp];
  return value;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    rms_norm(const Pack* __restrict__ x, const Pack* __restrict__ weight, Pack* __restrict__ out) {
  x += (long long)blockIdx.x * PACKS;
  out += (long long)blockIdx.x * PACKS;

  Pack packs[EACH], weights[EACH];
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const int at = threadIdx.x + i * BLOCK;
    packs[i] = at < PACKS ? __ldcs(x + at) : Pack();
  }
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const int at = threadIdx.x + i * BLOCK;
    weights[i] = at < PACKS ? weight[at] : Pack();
  }
  float squares = 0;
#pragma unroll
  for (int i = 0; i < EACH; ++i) squares += SquaresOf(packs[i]);
  const float scale = rsqrtf(SumOfBlock(squares) / COLUMNS + kEpsilon);
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const int at = threadIdx.x + i * BLOCK;
    if (at < PACKS) __stcs(out + at, Normalise(packs[i], weights[i], scale));
  }
}
