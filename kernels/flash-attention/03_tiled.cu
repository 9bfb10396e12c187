// Idea: tiles in shared memory. A block has 64 queries and fetches 64 keys, then their values, once
//   for all of them; a thread has 4 x 4 scores and 4 rows of HEAD_DIM / 16 sums in registers. Per
//   pair of loads of 16 bytes there are 8 multiply-adds and more, where rung 2 had one.
// Prediction: 6% of the library: float32 multiply-adds, some 20 TFLOP/s with the loads from shared
//   memory between them.
// Measured: 16.3 ms on an H100, 5.0% of the library, 3.7% of the tensor cores' peak, 33.6 TFLOP/s:
//   5.1 times as fast as rung 2. 26 ms were predicted, 6% of a slower library (README).
// Sizes: HEAD_DIM 64 or 128.
//! constant HEADS = query.size(0) * query.size(1)
//! constant LENGTH = query.size(2)
//! constant HEAD_DIM = query.size(3)
//! constant CAUSAL = causal.size(0) - 1
//! constant FP16 = 0
//! launch   attention grid=(ceil_div(LENGTH, 64), HEADS) block=(256) shared=4*(128*(HEAD_DIM+4)+64*68) args=(query, key, value, out)
#define DEVICE __device__ __forceinline__
static_assert(HEAD_DIM == 64 || HEAD_DIM == 128);

using Half = unsigned short;           // its bits
constexpr int kTile = 64;              // queries, and keys
constexpr int kStride = HEAD_DIM + 4;  // four more: 8 rows at the same column meet all banks
constexpr int kWeights = kTile + 4;    // a row of weights
constexpr int kParts = HEAD_DIM / 64;  // of 4 columns of the sums in a thread

DEVICE float ToFloat(unsigned bits) {
  float value;
#if FP16
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<Half>(bits)));
#else
  value = __int_as_float(bits << 16);
#endif
  return value;
}

// Two numbers rounded to 16 bits, the first in the lower half.
DEVICE unsigned Pack(float low, float high) {
  unsigned pair;
#if FP16
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#else
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#endif
  return pair;
}

DEVICE float MinusInfinity() { return __int_as_float(0xff800000); }

DEVICE float4& Four(float* at) { return *reinterpret_cast<float4*>(at); }

// 64 rows of a head as floats, zeros beyond its end.
DEVICE void LoadTile(float* tile, const Half* head, int row) {
#pragma unroll 4
  for (int i = threadIdx.x; i < kTile * HEAD_DIM / 4; i += 256) {
    const int r = i / (HEAD_DIM / 4), c = i % (HEAD_DIM / 4) * 4;
    uint2 four = {0, 0};
    if (row + r < LENGTH)
      four = *reinterpret_cast<const uint2*>(head + (long long)(row + r) * HEAD_DIM + c);
    Four(tile + r * kStride + c) =
        make_float4(ToFloat(four.x & 0xffff), ToFloat(four.x >> 16), ToFloat(four.y & 0xffff),
                    ToFloat(four.y >> 16));
  }
}

// Over the 16 threads that share a row.
template <bool maximum>
DEVICE float OverRow(float value) {
  for (int step = 8; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(~0u, value, step);
    value = maximum ? fmaxf(value, other) : value + other;
  }
  return value;
}

extern "C" __global__ void __launch_bounds__(256)
    attention(const Half* query, const Half* key, const Half* value, Half* out) {
  extern __shared__ __align__(16) float shared[];
  float* const queries = shared;
  float* const others = queries + kTile * kStride;  // keys, then values
  float* const weights = others + kTile * kStride;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const long long head = (long long)blockIdx.y * LENGTH * HEAD_DIM;
  const int first = blockIdx.x * kTile;
  const float scale = rsqrtf(HEAD_DIM) * 1.4426950409f;  // scores are exponents of 2
  // Rows 4 ty to 4 ty + 3; scores of keys tx + 16 j, sums of columns 64 part + 4 tx and on.
  float sums[4][kParts][4] = {}, largest[4], sum[4] = {};
  for (int i = 0; i < 4; ++i) largest[i] = MinusInfinity();
  LoadTile(queries, query + head, first);
  const int end = CAUSAL ? min(first + kTile, LENGTH) : LENGTH;
  for (int start = 0; start < end; start += kTile) {
    LoadTile(others, key + head, start);
    __syncthreads();
    float score[4][4] = {};
#pragma unroll 4
    for (int d = 0; d < HEAD_DIM; d += 4) {
      float4 q[4];
      for (int i = 0; i < 4; ++i) q[i] = Four(queries + (4 * ty + i) * kStride + d);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float4 k = Four(others + (tx + 16 * j) * kStride + d);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          score[i][j] += q[i].x * k.x + q[i].y * k.y + q[i].z * k.z + q[i].w * k.w;
      }
    }
    __syncthreads();
    LoadTile(others, value + head, start);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = first + 4 * ty + i;
      float now = largest[i];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int column = start + tx + 16 * j;
        score[i][j] = column >= LENGTH || (CAUSAL && column > row) ? MinusInfinity()
                                                                   : score[i][j] * scale;
        now = fmaxf(now, score[i][j]);
      }
      now = OverRow<true>(now);
      // A row that has seen no key yet: (-inf) - (-inf) would be no number.
      const float base = now == MinusInfinity() ? 0 : now;
      const float shrink = exp2f(largest[i] - base);
      largest[i] = now;
      sum[i] *= shrink;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float weight = exp2f(score[i][j] - base);
        sum[i] += weight;
        weights[(4 * ty + i) * kWeights + tx + 16 * j] = weight;
      }
#pragma unroll
      for (int part = 0; part < kParts; ++part)
        for (int c = 0; c < 4; ++c) sums[i][part][c] *= shrink;
    }
    __syncthreads();
#pragma unroll 2
    for (int k = 0; k < kTile; k += 4) {
      float weight[4][4];
      for (int i = 0; i < 4; ++i) {
        const float4 four = Four(weights + (4 * ty + i) * kWeights + k);
        weight[i][0] = four.x, weight[i][1] = four.y, weight[i][2] = four.z, weight[i][3] = four.w;
      }
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          const float4 v = Four(others + (k + j) * kStride + 64 * part + 4 * tx);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            sums[i][part][0] += weight[i][j] * v.x;
            sums[i][part][1] += weight[i][j] * v.y;
            sums[i][part][2] += weight[i][j] * v.z;
            sums[i][part][3] += weight[i][j] * v.w;
          }
        }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = first + 4 * ty + i;
    const float total = OverRow<false>(sum[i]);
    const float factor = total == 0 ? 0 : 1 / total;  // a row that sees no key becomes zeros
    if (row >= LENGTH) continue;
    for (int part = 0; part < kParts; ++part) {
      const float* const s = sums[i][part];
      *reinterpret_cast<uint2*>(out + head + (long long)row * HEAD_DIM + 64 * part + 4 * tx) =
          uint2{Pack(s[0] * factor, s[1] * factor), Pack(s[2] * factor, s[3] * factor)};
    }
  }
}
