// RMSNorm in bfloat16, a cluster of two blocks a row.
//
// Idea: what carries long rows, tried on short ones: two blocks of 128 threads share a row of 16 KB
// and exchange their sums through each other's shared memory.
// Prediction: 98% of the library, a loss against the rung before: the row fitted, so nothing is
// saved, and each row pays for two barriers across SMs.
// Measured: 52.5 us on an H100, 92% of the library, 84.9% of the speed of a copy: the loss is
// larger than predicted, 8% on rung 5.
// Rows longer than some 16 * 8 * BLOCK * CLUSTER columns (32768) do not fit in registers.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1)
//! tune     BLOCK = 128 256
//! tune     CLUSTER = 2 4
//! constant WIDTH = 8 - 7 * min(COLUMNS % 8, 1)
//! constant PACKS = COLUMNS / WIDTH
//! constant EACH = ceil_div(PACKS, BLOCK * CLUSTER)
//! launch   rms_norm grid=(ROWS * CLUSTER) block=(BLOCK) cluster=(CLUSTER) args=(x, weight, out)

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

__device__ unsigned int ClusterRank() {
  unsigned int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// A barrier of all threads of the cluster, in two halves. What a thread wrote before it arrives can
// be read by those that have waited.
__device__ void ClusterArrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ void ClusterWait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Writes to the place that `mine` has in the shared memory of the cluster's block `rank`.
__device__ void StoreRemote(float* mine, unsigned int rank, float value) {
  const auto address = static_cast<unsigned int>(__cvta_generic_to_shared(mine));
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "st.shared::cluster.f32 [remote], %2;\n"
      "}" ::"r"(address),
      "r"(rank), "f"(value)
      : "memory");
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    rms_norm(const Pack* __restrict__ x, const Pack* __restrict__ weight, Pack* __restrict__ out) {
  __shared__ float of_block[CLUSTER];
  ClusterArrive();  // "I run": nobody writes into a block that has not begun
  const unsigned int rank = ClusterRank();
  const int first = rank * BLOCK + threadIdx.x;
  constexpr int kStep = BLOCK * CLUSTER;
  x += (long long)(blockIdx.x / CLUSTER) * PACKS;
  out += (long long)(blockIdx.x / CLUSTER) * PACKS;

  Pack packs[EACH], weights[EACH];
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const int at = first + i * kStep;
    packs[i] = at < PACKS ? __ldcs(x + at) : Pack();
  }
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const int at = first + i * kStep;
    weights[i] = at < PACKS ? weight[at] : Pack();
  }
  float squares = 0;
#pragma unroll
  for (int i = 0; i < EACH; ++i) squares += SquaresOf(packs[i]);
  squares = SumOfBlock(squares);
  ClusterWait();
  if (threadIdx.x < CLUSTER) StoreRemote(of_block + rank, threadIdx.x, squares);
  ClusterArrive();
  ClusterWait();
  squares = 0;
  for (int i = 0; i < CLUSTER; ++i) squares += of_block[i];
  const float scale = rsqrtf(squares / COLUMNS + kEpsilon);
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const int at = first + i * kStep;
    if (at < PACKS) __stcs(out + at, Normalise(packs[i], weights[i], scale));
  }
}
