// LayerNorm over rows of 4.2 million values, a warp a row, each lane with a stretch of its own.
//
// Idea: none; the definition as it is written on paper: the mean, then the variance, then the
// result, a pass each, and the row cut into 32 stretches, one a lane. (A single thread a row took
// 390 ms on an H100, 0.12% of the library: too long to be judged often.) The sums are double: a
// float has 24 bits, and cannot count four million values around 1000. E[x^2] - E[x]^2 would save a
// pass, and lose all digits there.
// Prediction: 1% of the library. 32 lanes are 32 times the single thread at best, 12 ms; but they
// read addresses half a megabyte apart, so each load of a warp takes 32 lines of memory.
// Measured: 36.9 ms on an H100, 1.3% of the library, 0.5% of the speed of a copy: about what was
// predicted.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1) * x.size(2) * x.size(3)
//! launch   layer_norm grid=(ROWS) block=(32) args=(x, norm_weight, norm_bias, out)

constexpr float kEpsilon = 1e-5f;  // nn.LayerNorm's default

__device__ double SumOfWarp(double value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

extern "C" __global__ void layer_norm(const float* __restrict__ x, const float* __restrict__ weight,
                                      const float* __restrict__ bias, float* __restrict__ out) {
  x += (long long)blockIdx.x * COLUMNS;
  out += (long long)blockIdx.x * COLUMNS;
  constexpr int kStretch = (COLUMNS + 31) / 32;
  const int begin = threadIdx.x * kStretch;
  const int end = min(COLUMNS, begin + kStretch);

  double sum = 0;
  for (int column = begin; column < end; ++column) sum += x[column];
  const float mean = SumOfWarp(sum) / COLUMNS;
  double squares = 0;
  for (int column = begin; column < end; ++column) {
    const float distance = x[column] - mean;
    squares += distance * distance;
  }
  const float scale = rsqrtf(static_cast<float>(SumOfWarp(squares) / COLUMNS) + kEpsilon);
  for (int column = begin; column < end; ++column)
    out[column] = (x[column] - mean) * scale * weight[column] + bias[column];
}
