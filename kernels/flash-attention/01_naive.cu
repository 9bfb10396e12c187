// Idea: three kernels, as the formula is written: all scores, their softmax, the weighted values. A
//   thread a score, a block a row, a thread a result. The scores stay in memory: at LENGTH 4096 and
//   64 heads 4.3 GB, written, read twice, written again and read, where queries, keys, values and
//   results are 0.27 GB.
// Prediction: 0.5% of the library. Each lane reads another key, 256 bytes apart from the next.
// Measured: 610 ms on an H100, 0.2% of the library, 0.1% of the peak; 0.5% of the library that was
//   expected were 314 ms. The scores' traffic alone would take 7 ms: likely the first kernel's
//   scattered reads take the rest. The library took 1.07 ms beside it, 0.82 ms beside the fast
//   rungs; the cause is not known.
// Sizes: any; the scores must fit into memory.
//! constant HEADS = query.size(0) * query.size(1)
//! constant LENGTH = query.size(2)
//! constant HEAD_DIM = query.size(3)
//! constant CAUSAL = causal.size(0) - 1
//! constant FP16 = 0
//! scratch  score float[HEADS * LENGTH * LENGTH]
//! launch   score_keys grid=(ceil_div(LENGTH, 32), ceil_div(LENGTH, 8), HEADS) block=(32, 8) args=(query, key, score)
//! launch   weigh grid=(LENGTH, HEADS) block=(256) args=(score)
//! launch   add_values grid=(LENGTH, HEADS) block=(HEAD_DIM) args=(score, value, out)

using Half = unsigned short;  // its bits

__device__ float ToFloat(Half bits) {
  float value;
#if FP16
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
#else
  value = __int_as_float(bits << 16);
#endif
  return value;
}

__device__ Half FromFloat(float value) {
  Half bits;
#if FP16
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#endif
  return bits;
}

__device__ float MinusInfinity() { return __int_as_float(0xff800000); }

// A head's part of a tensor of (HEADS, LENGTH, width).
__device__ long long HeadAt(int head, int width) { return (long long)head * LENGTH * width; }

extern "C" __global__ void score_keys(const Half* query, const Half* key, float* score) {
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  const int head = blockIdx.z;
  if (row >= LENGTH || column >= LENGTH) return;
  const Half* const q = query + HeadAt(head, HEAD_DIM) + (long long)row * HEAD_DIM;
  const Half* const k = key + HeadAt(head, HEAD_DIM) + (long long)column * HEAD_DIM;
  float sum = 0;
  for (int d = 0; d < HEAD_DIM; ++d) sum += ToFloat(q[d]) * ToFloat(k[d]);
  const bool hidden = CAUSAL && column > row;
  score[HeadAt(head, LENGTH) + (long long)row * LENGTH + column] =
      hidden ? MinusInfinity() : sum * rsqrtf(HEAD_DIM);
}

// The maximum (or the sum) over the threads of a block of 256.
template <bool maximum>
__device__ float OverBlock(float value) {
  __shared__ float of_thread[256];
  of_thread[threadIdx.x] = value;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const float other = of_thread[threadIdx.x + half];
      of_thread[threadIdx.x] =
          maximum ? fmaxf(of_thread[threadIdx.x], other) : of_thread[threadIdx.x] + other;
    }
    __syncthreads();
  }
  value = of_thread[0];
  __syncthreads();
  return value;
}

// Turns a row of scores into weights that sum to one.
extern "C" __global__ void weigh(float* score) {
  float* const row = score + HeadAt(blockIdx.y, LENGTH) + (long long)blockIdx.x * LENGTH;
  float largest = MinusInfinity(), sum = 0;
  for (int i = threadIdx.x; i < LENGTH; i += 256) largest = fmaxf(largest, row[i]);
  largest = OverBlock<true>(largest);
  if (largest == MinusInfinity()) largest = 0;  // no key is seen
  for (int i = threadIdx.x; i < LENGTH; i += 256) {
    row[i] = expf(row[i] - largest);
    sum += row[i];
  }
  sum = OverBlock<false>(sum);
  for (int i = threadIdx.x; i < LENGTH; i += 256) row[i] = sum == 0 ? 0 : row[i] / sum;
}

extern "C" __global__ void add_values(const float* score, const Half* value, Half* out) {
  const int row = blockIdx.x, head = blockIdx.y, d = threadIdx.x;
  const float* const weight = score + HeadAt(head, LENGTH) + (long long)row * LENGTH;
  const Half* const v = value + HeadAt(head, HEAD_DIM);
  float sum = 0;
  for (int i = 0; i < (CAUSAL ? row + 1 : LENGTH); ++i)
    sum += weight[i] * ToFloat(v[(long long)i * HEAD_DIM + d]);
  out[HeadAt(head, HEAD_DIM) + (long long)row * HEAD_DIM + d] = FromFloat(sum);
}
