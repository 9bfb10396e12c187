// LayerNorm over rows of 4.2 million values, a row split over 128 blocks, in two launches.
//
// Idea: blocks that cannot wait for each other can still share a row: a first launch leaves each
// slice's mean and squares in memory, a second one puts them together (128 pairs, in each warp of
// its own: cheaper than a third launch) and normalises. 2048 small blocks fill all SMs evenly.
// Prediction: 130% of the library, which does the same in three kernels. 840 MB at the speed of a
// copy are 0.28 ms on an H100, 0.20 on an H200.
// Measured: 0.402 ms on an H100, 115% of the library (the judge called it unsettled), 47% of the
// peak, which counts x once: not 130%, as 840 MB should take 0.28 ms. Likely: the affine vectors
// come from memory again for each row; rung 9 takes that away.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1) * x.size(2) * x.size(3)
//! tune     BLOCK = 256 512
//! tune     SPLIT = 128 64 256
//! constant WIDTH = 4 - 3 * min(COLUMNS % 4, 1)
//! constant SLICE = WIDTH * ceil_div(COLUMNS, WIDTH * SPLIT)
//! scratch  partial float[ROWS * SPLIT * 2]
//! launch   moments_of_slice grid=(SPLIT, ROWS) block=BLOCK args=(x, partial)
//! launch   normalise grid=(SPLIT, ROWS) block=BLOCK args=(x, norm_weight, norm_bias, partial, out)

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

extern "C" __global__ void __launch_bounds__(BLOCK)
    moments_of_slice(const float* __restrict__ x, float2* __restrict__ partial) {
  const int columns = ColumnsOf(blockIdx.x);
  x += (long long)blockIdx.y * COLUMNS + blockIdx.x * SLICE;
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
  if (threadIdx.x == 0)
    partial[blockIdx.y * SPLIT + blockIdx.x] = make_float2(moments.mean, moments.squares);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    normalise(const float* __restrict__ x, const float* __restrict__ weight,
              const float* __restrict__ bias, const float2* __restrict__ partial,
              float* __restrict__ out) {
  const int slice = blockIdx.x;
  const int row = blockIdx.y;

  // Each warp puts the row's slices together for itself.
  Moments moments;
  for (int i = threadIdx.x % 32; i < SPLIT; i += 32) {
    Moments other;
    other.count = ColumnsOf(i);
    other.mean = partial[row * SPLIT + i].x;
    other.squares = partial[row * SPLIT + i].y;
    moments = Merge(moments, other);
  }
  moments = OverWarp(moments);
  const float scale = rsqrtf(moments.squares / COLUMNS + kEpsilon);

  const int columns = ColumnsOf(slice);
  const long long begin_of_slice = (long long)row * COLUMNS + slice * SLICE;
  x += begin_of_slice;
  out += begin_of_slice;
  weight += slice * SLICE;
  bias += slice * SLICE;
  const int first = threadIdx.x * WIDTH;
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
