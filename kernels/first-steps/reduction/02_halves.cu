// The upper half is added to the lower half, again and again.
//
// Idea: the same eight rounds, in another order. [3 1 7 0] becomes [10 1 . .], then [11 . . .]. The
// busy threads are always the first ones, so warps are either busy or idle as a whole, and idle
// ones take no turns; neighbouring lanes read neighbouring banks.
// Prediction: 25% of the library: half of the turns are gone; the barriers are still there.
// Measured: 323 us on an H100, 31% of the library, 27% of the speed of a copy: a gain of 2%, where
// two thirds more were predicted. Likely: barriers and starts of 262144 blocks are what takes the
// time, not the turns of idle lanes.
//! constant COUNT = x.count
//! constant THREADS = 256
//! constant BLOCKS = ceil_div(COUNT, THREADS)
//! scratch sums float[BLOCKS]
//! launch add_blocks grid=(BLOCKS) block=(THREADS) args=(x, sums)
//! launch add_sums grid=(1) block=(THREADS) args=(sums, out)

// The sum of the block's values, right in thread 0.
__device__ float BlockSum(float value) {
  __shared__ float values[THREADS];
  const int thread = threadIdx.x;
  values[thread] = value;
  __syncthreads();
  for (int step = THREADS / 2; step > 0; step /= 2) {
    if (thread < step) values[thread] += values[thread + step];
    __syncthreads();
  }
  return values[0];
}

extern "C" __global__ void __launch_bounds__(THREADS)
    add_blocks(const float* __restrict__ x, float* __restrict__ sums) {
  const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
  const float sum = BlockSum(i < COUNT ? x[i] : 0);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    add_sums(const float* __restrict__ sums, float* __restrict__ out) {
  float value = 0;
  for (int i = threadIdx.x; i < BLOCKS; i += THREADS) value += sums[i];
  const float sum = BlockSum(value);
  if (threadIdx.x == 0) *out = sum;
}
