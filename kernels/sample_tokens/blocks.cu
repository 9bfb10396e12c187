// Tokens drawn by the softmax of logits: a block a row, and the sums of its threads' parts.
//
// Idea: a thread reads one part of the row in two passes, for the maximum and for its sum of
// exponentials, and nothing is written but the samples. The sums of all parts are added up in
// shared memory. Then each thread takes a sample: it looks for its number among the parts, and
// computes the exponentials of that part once more. Sums have another order than PyTorch's.
// Sizes: any.
//! dim      rows = logits.size(0)
//! constant TOKENS = logits.size(1)
//! constant SAMPLES = bits.size(1)
//! launch   sample grid=(rows) block=(256) args=(logits, bits, out)
constexpr int kThreads = 256, kEach = (TOKENS + kThreads - 1) / kThreads;

extern "C" __global__ void __launch_bounds__(kThreads)
    sample(const float* __restrict__ logits, const int* __restrict__ bits,
           long long* __restrict__ out) {
  __shared__ float parts[kThreads];
  const float* const row = logits + (long long)blockIdx.x * TOKENS;
  const int begin = min((int)threadIdx.x * kEach, TOKENS), end = min(begin + kEach, TOKENS);

  float most = __int_as_float(0xff800000);
  for (int i = threadIdx.x; i < TOKENS; i += kThreads) most = fmaxf(most, row[i]);
  parts[threadIdx.x] = most;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step)
      parts[threadIdx.x] = fmaxf(parts[threadIdx.x], parts[threadIdx.x + step]);
    __syncthreads();
  }
  most = parts[0];
  __syncthreads();

  float sum = 0;
  for (int i = begin; i < end; ++i) sum += expf(row[i] - most);
  parts[threadIdx.x] = sum;
  __syncthreads();
  for (int step = 1; step < kThreads; step *= 2) {
    const float before = threadIdx.x >= step ? parts[threadIdx.x - step] : 0;
    __syncthreads();
    parts[threadIdx.x] += before;
    __syncthreads();
  }

  for (int i = threadIdx.x; i < SAMPLES; i += kThreads) {
    const long long at = (long long)blockIdx.x * SAMPLES + i;
    const float place = (bits[at] + 0.5f) * 0x1p-23f * parts[kThreads - 1];
    int low = 0, high = (TOKENS - 1) / kEach;  // the last part that has tokens
    while (low < high) {
      const int middle = (low + high) / 2;
      if (place < parts[middle]) high = middle;
      else low = middle + 1;
    }
    int token = low * kEach;
    const int last = min(token + kEach, TOKENS) - 1;
    float reached = low == 0 ? 0 : parts[low - 1];
    for (; token < last; ++token) {
      reached += expf(row[token] - most);
      if (place < reached) break;
    }
    out[at] = token;
  }
}
