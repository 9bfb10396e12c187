// LayerNorm over rows of 4.2 million values, four values a load and four loads in flight.
//
// Idea: a thread reads 16 bytes at once, and four such reads before it uses the first: 64 KB in
// flight on each SM instead of 16.
// Prediction: 45% of the library. 16 SMs read as fast as they can, some 65 GB/s each; the other 116
// look on.
// Measured: 0.789 ms on an H100, 59% of the library, 24% of the peak: above the prediction. 16 SMs
// move three reads and a write, 1.07 GB, at 85 GB/s each.
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

// The same sum in every thread of the block.
__device__ double SumOfBlock(double value) {
  __shared__ double of_warp[BLOCK / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  __syncthreads();  // the last use of of_warp is over
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < BLOCK / 32; ++warp) value += of_warp[warp];
  return value;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    layer_norm(const float* __restrict__ x, const float* __restrict__ weight,
               const float* __restrict__ bias, float* __restrict__ out) {
  x += (long long)blockIdx.x * COLUMNS;
  out += (long long)blockIdx.x * COLUMNS;
  const int first = threadIdx.x * WIDTH;

  double sum = 0;
  for (int begin = first; begin < COLUMNS; begin += kBatch * kStep) {
    float values[kBatch][WIDTH] = {};
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
      if (begin + i * kStep < COLUMNS) Load(x + begin + i * kStep, values[i]);
    float of_batch = 0;
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
      for (const float value : values[i]) of_batch += value;
    sum += of_batch;
  }
  const float mean = SumOfBlock(sum) / COLUMNS;

  double squares = 0;
  for (int begin = first; begin < COLUMNS; begin += kBatch * kStep) {
    float values[kBatch][WIDTH];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      for (float& value : values[i]) value = mean;  // adds nothing
      if (begin + i * kStep < COLUMNS) Load(x + begin + i * kStep, values[i]);
    }
    float of_batch = 0;
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
      for (const float value : values[i]) of_batch += (value - mean) * (value - mean);
    squares += of_batch;
  }
  const float scale = rsqrtf(static_cast<float>(SumOfBlock(squares) / COLUMNS) + kEpsilon);

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
        values[i][j] = (values[i][j] - mean) * scale * weights[i][j] + biases[i][j];
      Store(out + column, values[i]);
    }
  }
}
