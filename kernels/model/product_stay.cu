// A row times a matrix, and a residual: warps that stay, as in `rmsnorm-qkv` (its rung 04).
//
// Idea: two blocks for each multiprocessor stay; their warps take row after row of the weights, and
//   ask for the next part before they use this one. The residual is added in the epilogue.
// Prediction: 85% of the speed of a copy; with one launch less than a product and a sum.
// Measured: 255 us in 16 layers, where a warp a row took 354 us (H200).
// Sizes: any; a row of x after the other, each with all weights. Rows that do not start on 16 bytes
// are read one element at a time.
//! constant ROWS = x.size(0)
//! constant FEATURES = x.size(1)
//! constant OUTPUTS = weight.size(0)
//! constant WIDTH = 8 - 7 * min(FEATURES % 8, 1)
//! constant PACKS = FEATURES / WIDTH
//! tune     BLOCKS = 264 132
//! tune     AHEAD = 8 4
//! dim      x_bytes = 2 * FEATURES
//! launch   product grid=(BLOCKS, ROWS) block=(256) shared=x_bytes args=(x, weight, residual, out)
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

// Of what is read once: past the first cache. Volatile, or the compiler moves loads to their uses.
DEVICE uint4 LoadOnce(const uint4* from) {
  uint4 pack;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(pack.x), "=r"(pack.y), "=r"(pack.z), "=r"(pack.w)
               : "l"(from));
  return pack;
}
DEVICE Half LoadOnce(const Half* from) { return __ldg(from); }

// x in shared memory, for the whole block.
DEVICE void Stage(Pack* to, const Pack* x) {
  for (int i = threadIdx.x; i < PACKS; i += 256) to[i] = x[i];
  __syncthreads();
}

constexpr bool kWhole = PACKS % (32 * AHEAD) == 0;  // no batch is partly past a row's end
constexpr int kBatches = (PACKS + 32 * AHEAD - 1) / (32 * AHEAD);  // of loads, in a row

// What a lane has of a batch.
struct Batch {
  Pack weights[AHEAD];

  DEVICE void Load(const Pack* row, int batch) {
    const int first = batch * 32 * AHEAD + threadIdx.x % 32;
#pragma unroll
    for (int a = 0; a < AHEAD; ++a)
      weights[a] = kWhole || first + 32 * a < PACKS ? LoadOnce(row + first + 32 * a) : Pack();
  }
  DEVICE float AddTo(float sum, const Pack* staged, int batch) const {
    const int first = batch * 32 * AHEAD + threadIdx.x % 32;
#pragma unroll
    for (int a = 0; a < AHEAD; ++a)
      if (kWhole || first + 32 * a < PACKS)
        sum = AddProducts(sum, staged[first + 32 * a], weights[a]);
    return sum;
  }
};

extern "C" __global__ void __launch_bounds__(256, 2)
    product(const Pack* x, const Pack* weight, const Half* residual, Half* out) {
  extern __shared__ __align__(128) unsigned char shared[];
  Pack* const staged = reinterpret_cast<Pack*>(shared);
  int column = blockIdx.x * 8 + threadIdx.x / 32, i = 0;  // the batch at work
  Batch batch;
  if (column < OUTPUTS) batch.Load(weight + (long long)column * PACKS, 0);
  Stage(staged, x + (long long)blockIdx.y * PACKS);
  float sum = 0;
  while (column < OUTPUTS) {
    const bool ends = i + 1 == kBatches;
    const int next = ends ? 0 : i + 1, next_column = ends ? column + 8 * BLOCKS : column;
    Batch ahead;
    if (next_column < OUTPUTS) ahead.Load(weight + (long long)next_column * PACKS, next);
    sum = batch.AddTo(sum, staged, i);
    if (ends) {
      sum = SumOfWarp(sum);
      const long long at = (long long)blockIdx.y * OUTPUTS + column;
      if (threadIdx.x % 32 == 0) out[at] = PackTwo(sum + ToFloat(residual[at]), 0);
      sum = 0;
    }
    batch = ahead;
    i = next;
    column = next_column;
  }
}
