// One block a row: the maximum, the sum and the result from one read.
//! dim    rows = x.size(0)
//! constant COLUMNS = x.size(1)
//! tune   BLOCK = 256
//! launch softmax grid=(rows) block=(BLOCK) args=(x, out)
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ out) {
  constexpr int kEach = (COLUMNS + BLOCK - 1) / BLOCK;
  const long long begin = (long long)blockIdx.x * COLUMNS;
  float value[kEach];
  float largest = -__int_as_float(0x7f800000);
  for (int i = 0; i < kEach; ++i) {
    const int column = threadIdx.x + i * BLOCK;
    value[i] = column < COLUMNS ? x[begin + column] : -__int_as_float(0x7f800000);
    largest = fmaxf(largest, value[i]);
  }
  __shared__ float shared[BLOCK / 32];
  for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = largest;
  __syncthreads();
  for (int i = 0; i < BLOCK / 32; ++i) largest = fmaxf(largest, shared[i]);
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < kEach; ++i) {
    value[i] = expf(value[i] - largest);
    const int column = threadIdx.x + i * BLOCK;
    if (column < COLUMNS) sum += value[i];
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < BLOCK / 32; ++i) sum += shared[i];
  const float scale = 1 / sum;
  for (int i = 0; i < kEach; ++i) {
    const int column = threadIdx.x + i * BLOCK;
    if (column < COLUMNS) out[begin + column] = value[i] * scale;
  }
}
