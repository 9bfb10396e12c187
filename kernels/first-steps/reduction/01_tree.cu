// Pairs, then pairs of pairs: a tree in shared memory, with neighbours first.
//
// Idea: a block of 256 threads adds 256 elements in eight rounds. [3 1 7 0] becomes [4 . 7 .], then
// [11 . . .]. In round one every second thread works, in round two every fourth, and so on: the
// idle ones sit in the same warps as the busy ones, and take their turns. A second launch adds the
// blocks' sums.
// Prediction: 15% of the library: eight rounds with a barrier each for one element a thread, and
// half of the lanes or more idle in every warp.
// Measured: 331 us on an H100, 30% of the library, 27% of the speed of a copy: twice the
// prediction.
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
  for (int step = 1; step < THREADS; step *= 2) {
    if (thread % (2 * step) == 0) values[thread] += values[thread + step];
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
