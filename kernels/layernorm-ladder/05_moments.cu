// LayerNorm over rows of 4.2 million values, mean and variance in one pass.
//
// Idea: the variance needs the mean, so it took a pass of its own. But two sets of values, each
// with its count, mean and sum of squared distances, make one such triple of both (Chan, Golub and
// LeVeque). A thread does that for each 16 values that it reads, then warp and block for their
// threads'.
// On the board: [1, 3] is (2, 2, 2), [2, 6] is (2, 4, 8). Together: mean 2 + 2 * 2/4 = 3, squares
// 2 + 8 + 2^2 * 2 * 2/4 = 14. Directly: 2^2 + 0^2 + 1^2 + 3^2 = 14.
// Prediction: 65% of the library: two reads instead of three.
// Measured: 0.764 ms on an H100, 60% of the library, 25% of the peak: near the predicted level, but
// from a higher start: a gain of 3% on rung 4, where a third was predicted. Likely: putting triples
// together takes 16 SMs nearly the time that the pass took. Before Merge had its brackets, it was
// wrong beside values near 1e19.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1) * x.size(2) * x.size(3)
//! tune     BLOCK = 1024 512
//! constant WIDTH = 4 - 3 * min(COLUMNS % 4, 1)
//! launch   layer_norm grid=(ROWS) block=(BLOCK) args=(x, norm_weight, norm_bias, out)

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
    layer_norm(const float* __restrict__ x, const float* __restrict__ weight,
               const float* __restrict__ bias, float* __restrict__ out) {
  x += (long long)blockIdx.x * COLUMNS;
  out += (long long)blockIdx.x * COLUMNS;
  const int first = threadIdx.x * WIDTH;

  Moments moments;
  for (int begin = first; begin < COLUMNS; begin += kBatch * kStep) {
    float values[kBatch][WIDTH];
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
      if (begin + i * kStep < COLUMNS) Load(x + begin + i * kStep, values[i]);
    const int packs = min(kBatch, (COLUMNS - begin + kStep - 1) / kStep);
    moments = Merge(moments, MomentsOf(values, packs));
  }
  moments = OverBlock(moments);
  const float scale = rsqrtf(moments.squares / COLUMNS + kEpsilon);

  for (int begin = first; begin < COLUMNS; begin += kBatch * kStep) {
    float values[kBatch][WIDTH], weights[kBatch][WIDTH], biases[kBatch][WIDTH];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int column = begin + i * kStep;
      if (column >= COLUMNS) continue;
      LoadLastTime(x + column, values[i]);
      Load(weight + column, weights[i]);
      Load(bias + column, biases[i]);
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int column = begin + i * kStep;
      if (column >= COLUMNS) continue;
      for (int j = 0; j < WIDTH; ++j)
        values[i][j] = (values[i][j] - moments.mean) * scale * weights[i][j] + biases[i][j];
      Store(out + column, values[i]);
    }
  }
}
