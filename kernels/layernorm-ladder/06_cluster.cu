// LayerNorm over rows of 4.2 million values, a cluster of eight blocks a row.
//
// Idea: eight blocks share a row and tell each other their mean and squares, each writing into the
// others' shared memory. 16 clusters are 128 blocks: nearly all SMs work.
// Prediction: 115% of the library. Now memory is the limit: two reads and a write, 840 MB with the
// affine vectors. Clusters of eight do not fill all groups of SMs evenly, so some blocks share one.
// Measured: 0.416 ms on an H100, 110% of the library, 46% of the peak, which counts x once: a
// little less than predicted.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1) * x.size(2) * x.size(3)
//! tune     BLOCK = 512 1024
//! tune     CLUSTER = 8 4 16
//! constant WIDTH = 4 - 3 * min(COLUMNS % 4, 1)
//! constant SLICE = WIDTH * ceil_div(COLUMNS, WIDTH * CLUSTER)
//! dim      blocks = ROWS * CLUSTER
//! launch layer_norm grid=blocks block=BLOCK cluster=CLUSTER args=(x, norm_weight, norm_bias, out)

// WIDTH: values a load, 1 where rows do not start on 16 bytes. SLICE: columns of a row that a block
// takes; the last blocks of a short row have fewer or none.
__device__ int ColumnsOf(int block) { return max(0, min(SLICE, COLUMNS - block * SLICE)); }

constexpr float kEpsilon = 1e-5f;     // nn.LayerNorm's default
constexpr int kBatch = 4;             // loads in flight
constexpr int kStep = BLOCK * WIDTH;  // columns that the block reads at once

__device__ void Load(const float* from, float (&value)[WIDTH]) {
  if constexpr (WIDTH == 4) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    value[0] = four.x, value[1] = four.y, value[2] = four.z, value[3] = four.w;
  } else {
    value[0] = *from;
  }
}

// Of what nobody reads again: the caches let go of it first.
__device__ void LoadLastTime(const float* from, float (&value)[WIDTH]) {
  if constexpr (WIDTH == 4) {
    const float4 four = __ldcs(reinterpret_cast<const float4*>(from));
    value[0] = four.x, value[1] = four.y, value[2] = four.z, value[3] = four.w;
  } else {
    value[0] = __ldcs(from);
  }
}

__device__ void Store(float* to, const float (&value)[WIDTH]) {
  if constexpr (WIDTH == 4)
    __stcs(reinterpret_cast<float4*>(to), make_float4(value[0], value[1], value[2], value[3]));
  else
    __stcs(to, value[0]);
}

// Of some values: how many, their mean, and the sum of the squares of their distances from it.
struct Moments {
  float count = 0;
  float mean = 0;
  float squares = 0;
};

// Of both sets together, by Chan's formula: only differences of means are squared, so that values
// around 1000 lose nothing. The brackets matter: step * step * a.count overflows beside a value
// near 1e19, whose square a float still holds.
__device__ Moments Merge(Moments a, Moments b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  const float share = __fdividef(b.count, a.count + b.count);
  const float step = b.mean - a.mean;
  Moments both;
  both.count = a.count + b.count;
  both.mean = a.mean + step * share;
  both.squares = a.squares + b.squares + step * step * (a.count * share);
  return both;
}

// Of the first `packs` of a batch: their mean first, then the distances from it.
__device__ Moments MomentsOf(const float (&values)[kBatch][WIDTH], int packs) {
  Moments moments;
  if (packs <= 0) return moments;
  moments.count = packs * WIDTH;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kBatch; ++i)
    for (const float value : values[i]) sum += i < packs ? value : 0;
  moments.mean = __fdividef(sum, moments.count);
#pragma unroll
  for (int i = 0; i < kBatch; ++i)
    for (const float value : values[i]) {
      const float distance = i < packs ? value - moments.mean : 0;
      moments.squares += distance * distance;
    }
  return moments;
}

__device__ Moments OverWarp(Moments moments) {
  for (int step = 16; step > 0; step /= 2) {
    Moments other;
    other.count = __shfl_xor_sync(~0u, moments.count, step);
    other.mean = __shfl_xor_sync(~0u, moments.mean, step);
    other.squares = __shfl_xor_sync(~0u, moments.squares, step);
    moments = Merge(moments, other);
  }
  return moments;
}

__device__ Moments OverBlock(Moments moments) {
  __shared__ Moments of_warp[BLOCK / 32];
  const int lane = threadIdx.x % 32;
  moments = OverWarp(moments);
  if (lane == 0) of_warp[threadIdx.x / 32] = moments;
  __syncthreads();
  return OverWarp(lane < BLOCK / 32 ? of_warp[lane] : Moments());
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
__device__ void StoreRemote(float2* mine, unsigned int rank, float2 value) {
  const auto address = static_cast<unsigned int>(__cvta_generic_to_shared(mine));
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "st.shared::cluster.v2.f32 [remote], {%2, %3};\n"
      "}" ::"r"(address),
      "r"(rank), "f"(value.x), "f"(value.y)
      : "memory");
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    layer_norm(const float* __restrict__ x, const float* __restrict__ weight,
               const float* __restrict__ bias, float* __restrict__ out) {
  __shared__ float2 of_block[CLUSTER];  // mean, squares
  ClusterArrive();                      // "I run": nobody writes into a block that has not begun
  const int rank = ClusterRank();
  const int columns = ColumnsOf(rank);
  const long long begin_of_slice = (long long)(blockIdx.x / CLUSTER) * COLUMNS + rank * SLICE;
  x += begin_of_slice;
  out += begin_of_slice;
  weight += rank * SLICE;
  bias += rank * SLICE;
  const int first = threadIdx.x * WIDTH;

  Moments moments;
  for (int begin = first; begin < columns; begin += kBatch * kStep) {
    float values[kBatch][WIDTH];
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
      if (begin + i * kStep < columns) Load(x + begin + i * kStep, values[i]);
    const int packs = min(kBatch, (columns - begin + kStep - 1) / kStep);
    moments = Merge(moments, MomentsOf(values, packs));
  }
  moments = OverBlock(moments);

  ClusterWait();
  if (threadIdx.x < CLUSTER)
    StoreRemote(of_block + rank, threadIdx.x, make_float2(moments.mean, moments.squares));
  ClusterArrive();
  ClusterWait();
  moments = Moments();
  for (int i = 0; i < CLUSTER; ++i) {
    Moments other;
    other.count = ColumnsOf(i);
    other.mean = of_block[i].x;
    other.squares = of_block[i].y;
    moments = Merge(moments, other);
  }
  const float scale = rsqrtf(moments.squares / COLUMNS + kEpsilon);

  for (int begin = first; begin < columns; begin += kBatch * kStep) {
    float values[kBatch][WIDTH], weights[kBatch][WIDTH], biases[kBatch][WIDTH];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int column = begin + i * kStep;
      if (column >= columns) continue;
      LoadLastTime(x + column, values[i]);
      Load(weight + column, weights[i]);
      Load(bias + column, biases[i]);
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int column = begin + i * kStep;
      if (column >= columns) continue;
      for (int j = 0; j < WIDTH; ++j)
        values[i][j] = (values[i][j] - moments.mean) * scale * weights[i][j] + biases[i][j];
      Store(out + column, values[i]);
    }
  }
}
