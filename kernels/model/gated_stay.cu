// RMSNorm and SwiGLU of one row, warps that stay: `swiglu` (its rung 05) with the norm of
// `rmsnorm-qkv` (its rung 04) before it.
//
// Idea: each block weighs the row by the norm's weights, and sums its squares, while the first
//   weights are on their way; the root's inverse multiplies both sums of an element.
// Prediction: 92% of the speed of a copy, as without the norm.
// Measured: 296 us in 16 layers, where a thread an element took 5433 us (H200).
// Sizes: any; a row of x after the other, each with all weights. Rows that do not start on 16 bytes
// are read one element at a time.
//! constant ROWS = x.size(0)
//! constant FEATURES = x.size(1)
//! constant HIDDEN = gate_weight.size(0)
//! constant WIDTH = 8 - 7 * min(FEATURES % 8, 1)
//! constant PACKS = FEATURES / WIDTH
//! tune     BLOCKS = 264 132
//! tune     AHEAD = 4 2
//! dim      x_bytes = 2 * FEATURES
//! launch   swiglu grid=(BLOCKS, ROWS) block=(256) shared=x_bytes args=(x, norm_weight, gate_weight, up_weight, out)
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

DEVICE Half Gated(float gate, float up) { return PackTwo(gate / (1 + __expf(-gate)) * up, 0); }

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

// Of what is read once: past the first cache. Volatile, or the compiler moves loads to their uses.
DEVICE uint4 LoadOnce(const uint4* from) {
  uint4 pack;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(pack.x), "=r"(pack.y), "=r"(pack.z), "=r"(pack.w)
               : "l"(from));
  return pack;
}
DEVICE Half LoadOnce(const Half* from) { return __ldg(from); }

// x times the norm's weights in shared memory, for the whole block; returns what is still to be
// multiplied, 1 / the root of x's mean square.
DEVICE float Stage(Pack* weighted, const Pack* x, const Pack* norm_weight) {
  float squares = 0;
  for (int i = threadIdx.x; i < PACKS; i += 256) {
    const Pack values = x[i];
    squares = AddProducts(squares, values, values);
    weighted[i] = Scaled(values, norm_weight[i], 1);
  }
  return rsqrtf(SumOfBlock(squares) / FEATURES + kEpsilon);  // with the barrier for `weighted`
}

constexpr bool kWhole = PACKS % (32 * AHEAD) == 0;  // no batch is partly past a row's end
constexpr int kBatches = (PACKS + 32 * AHEAD - 1) / (32 * AHEAD);  // of loads, in a row

// Where a warp is: a batch of an element's two rows.
struct Place {
  int column, batch;

  DEVICE Place Next() const {
    return batch + 1 < kBatches ? Place{column, batch + 1} : Place{column + BLOCKS * 8, 0};
  }
};

// What a lane has of a batch.
struct Batch {
  Pack gate[AHEAD], up[AHEAD];

  DEVICE void Load(const Pack* gate_weight, const Pack* up_weight, Place place) {
    if (place.column >= HIDDEN) return;
    const int first = place.batch * 32 * AHEAD + threadIdx.x % 32;
    const long long row = (long long)place.column * PACKS;
#pragma unroll
    for (int a = 0; a < AHEAD; ++a) {
      const bool inside = kWhole || first + 32 * a < PACKS;
      gate[a] = inside ? LoadOnce(gate_weight + row + first + 32 * a) : Pack();
      up[a] = inside ? LoadOnce(up_weight + row + first + 32 * a) : Pack();
    }
  }
};

extern "C" __global__ void __launch_bounds__(256, 2)
    swiglu(const Pack* x, const Pack* norm_weight, const Pack* gate_weight, const Pack* up_weight,
           Half* out) {
  extern __shared__ __align__(128) unsigned char shared[];
  Pack* const weighted = reinterpret_cast<Pack*>(shared);
  const int lane = threadIdx.x % 32;
  Place place = {static_cast<int>(blockIdx.x * 8 + threadIdx.x / 32), 0};
  Batch batch;
  batch.Load(gate_weight, up_weight, place);
  const float scale = Stage(weighted, x + (long long)blockIdx.y * PACKS, norm_weight);
  float gate = 0, up = 0;
  while (place.column < HIDDEN) {
    const Place next = place.Next();
    Batch ahead;
    ahead.Load(gate_weight, up_weight, next);
#pragma unroll
    for (int a = 0; a < AHEAD; ++a) {
      const int at = (place.batch * AHEAD + a) * 32 + lane;
      const Pack values = kWhole || at < PACKS ? weighted[at] : Pack();
      gate = AddProducts(gate, values, batch.gate[a]);
      up = AddProducts(up, values, batch.up[a]);
    }
    if (next.column != place.column) {
      gate = SumOfWarp(gate) * scale;
      up = SumOfWarp(up) * scale;
      if (lane == 0) out[(long long)blockIdx.y * HIDDEN + place.column] = Gated(gate, up);
      gate = up = 0;
    }
    batch = ahead;
    place = next;
  }
}
