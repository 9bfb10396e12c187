// Idea: one visit, five products, tensor cores by mma.sync. A block of threads has 64 keys, and
//   visits blocks of 64 queries; a warp has 16 keys, and sums up their d_key and d_value in
//   registers. Scores are computed turned round, keys by queries: then what a lane has of weights
//   and of their gradients is, rounded, what it gives as first operand of the sums of d_value and
//   d_key. Gradients of scores go through shared memory, for the sums of 16 queries over all 64
//   keys, which are added to d_query in memory. Kernels before and after make delta, zeros and
//   rows of 16 bits.
// Prediction: 30% of the library: mma.sync reaches 60% of wgmma's rate at most, and a block's loads
//   lie open.
// Measured: right on an H200; not timed.
// Sizes: any LENGTH; HEAD_DIM 128.
//! constant HEADS = query.size(0) * query.size(1)
//! constant LENGTH = query.size(2)
//! constant HEAD_DIM = query.size(3)
//! constant CAUSAL = causal.size(0) - 1
//! scratch  delta float[HEADS * LENGTH]
//! scratch  d_query float[HEADS * LENGTH * HEAD_DIM]
//! launch   prepare grid=(ceil_div(LENGTH, 8), HEADS) block=(256) args=(output, d_output, delta, d_query)
//! launch   backward grid=(ceil_div(LENGTH, 64), HEADS) block=(128) shared=4*64*272+64*144+512 args=(query, key, value, d_output, logsumexp, delta, d_query, out1, out2)
//! launch   convert grid=(ceil_div(LENGTH, 8), HEADS) block=(256) args=(d_query, out)
#define DEVICE __device__ __forceinline__
static_assert(HEAD_DIM == 128);

using Half = unsigned short;  // its bits
constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kRows = 16 * kWarps;        // keys of a tile, queries of a block
constexpr int kChunks = HEAD_DIM / 8;     // of 16 bytes, in a row
constexpr int kPitch = 16 * (kChunks + 1);  // bytes from row to row
constexpr int kScorePitch = kRows * 2 + 16;
constexpr float kScale = 0.0883883476f;  // 1 / sqrt(HEAD_DIM)
constexpr float kLog2E = 1.4426950409f;

DEVICE float LowHalf(unsigned pair) { return __uint_as_float(pair << 16); }
DEVICE float HighHalf(unsigned pair) { return __uint_as_float(pair & 0xffff0000); }

// Two numbers rounded to 16 bits, the first in the lower half.
DEVICE unsigned Pack(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// A warp a query: delta = the sum of output * d_output; its d_query begins at zero.
extern "C" __global__ void __launch_bounds__(256)
    prepare(const uint2* output, const uint2* d_output, float* delta, float4* d_query) {
  const int row = blockIdx.x * 8 + threadIdx.x / 32;
  if (row >= LENGTH) return;
  const long long number = (long long)blockIdx.y * LENGTH + row;
  const long long place = number * 32 + threadIdx.x % 32;
  d_query[place] = make_float4(0, 0, 0, 0);
  const uint2 a = output[place], b = d_output[place];
  float sum = LowHalf(a.x) * LowHalf(b.x) + HighHalf(a.x) * HighHalf(b.x) +
              LowHalf(a.y) * LowHalf(b.y) + HighHalf(a.y) * HighHalf(b.y);
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  if (threadIdx.x % 32 == 0) delta[number] = sum;
}

extern "C" __global__ void __launch_bounds__(256) convert(const float4* d_query, uint2* out) {
  const int row = blockIdx.x * 8 + threadIdx.x / 32;
  if (row >= LENGTH) return;
  const long long place = ((long long)blockIdx.y * LENGTH + row) * 32 + threadIdx.x % 32;
  const float4 four = d_query[place];
  out[place] = make_uint2(Pack(four.x * kScale, four.y * kScale),
                          Pack(four.z * kScale, four.w * kScale));
}

DEVICE unsigned SharedAddress(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// 64 rows of a head, zeros beyond its end.
DEVICE void LoadTile(unsigned char* tile, const Half* head, int row) {
#pragma unroll 8
  for (int i = threadIdx.x; i < kRows * kChunks; i += kThreads) {
    const int r = i / kChunks, c = i % kChunks;
    uint4 chunk = {0, 0, 0, 0};
    if (row + r < LENGTH)
      chunk = *reinterpret_cast<const uint4*>(head + (long long)(row + r) * HEAD_DIM + 8 * c);
    *reinterpret_cast<uint4*>(tile + r * kPitch + c * 16) = chunk;
  }
}

// Four 8 x 8 blocks; lanes 8 i to 8 i + 7 give the addresses of the rows of block i. Lane 4 g + t
// gets elements 2 t and 2 t + 1 of row g of each.
DEVICE void LoadBlocks(unsigned (&blocks)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(blocks[0]), "=r"(blocks[1]), "=r"(blocks[2]), "=r"(blocks[3])
               : "r"(address)
               : "memory");
}

// The same, but rows 2 t and 2 t + 1 of column g.
DEVICE void LoadBlocksTurned(unsigned (&blocks)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(blocks[0]), "=r"(blocks[1]), "=r"(blocks[2]), "=r"(blocks[3])
               : "r"(address)
               : "memory");
}

// sum (16 x 8) += a (16 x 16) b^T (8 x 16). Of the lane numbered 4 g + t, sum is rows g and g + 8,
// columns 2 t and 2 t + 1; a the pairs of k at 2 t and 2 t + 8 in rows g, g + 8; b those in row g.
DEVICE void Multiply(float (&sum)[4], const unsigned* a, const unsigned* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

using Scores = float[kRows / 8][4];    // 16 keys, 64 queries
using Sums = float[HEAD_DIM / 8][4];   // 16 rows
using Pairs = unsigned[kRows / 16][4];  // first operands, of 16 rows and 64 columns

// The products of the warp's 16 rows of a tile with all rows of another.
DEVICE void MultiplyRows(Scores& product, unsigned tile, unsigned other) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int j = 0; j < kRows / 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) product[j][i] = 0;
#pragma unroll
  for (int step = 0; step < HEAD_DIM / 16; ++step) {
    unsigned own[4];
    LoadBlocks(own, tile + (16 * warp + lane % 16) * kPitch + (2 * step + lane / 16) * 16);
#pragma unroll
    for (int j = 0; j < kRows / 16; ++j) {
      unsigned blocks[4];  // two of 8 rows, two blocks each
      LoadBlocks(blocks, other + (16 * j + lane / 16 * 8 + lane % 8) * kPitch +
                             (2 * step + lane / 8 % 2) * 16);
      Multiply(product[2 * j], own, &blocks[0]);
      Multiply(product[2 * j + 1], own, &blocks[2]);
    }
  }
}

// Adds a tile's rows, times what 16 rows have of factors for them.
DEVICE void AddRows(Sums& sums, const Pairs& factor, unsigned tile) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int step = 0; step < kRows / 16; ++step)
#pragma unroll
    for (int j = 0; j < HEAD_DIM / 16; ++j) {
      unsigned blocks[4];  // two of 8 columns, two blocks each
      LoadBlocksTurned(blocks, tile + (16 * step + lane % 16) * kPitch + (2 * j + lane / 16) * 16);
      Multiply(sums[2 * j], factor[step], &blocks[0]);
      Multiply(sums[2 * j + 1], factor[step], &blocks[2]);
    }
}

DEVICE void Round(const Scores& score, Pairs& pairs) {
#pragma unroll
  for (int step = 0; step < kRows / 16; ++step)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* const pair = &score[2 * step + i / 2][i % 2 * 2];
      pairs[step][i] = Pack(pair[0], pair[1]);
    }
}

DEVICE void StoreRows(Half* head, int row, const Sums& sums, float factor) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (row + 8 * h >= LENGTH) continue;
    unsigned* const to =
        reinterpret_cast<unsigned*>(head + (long long)(row + 8 * h) * HEAD_DIM) + lane % 4;
#pragma unroll
    for (int j = 0; j < HEAD_DIM / 8; ++j)
      to[4 * j] = Pack(sums[j][2 * h] * factor, sums[j][2 * h + 1] * factor);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    backward(const Half* query, const Half* key, const Half* value, const Half* d_output,
             const float* logsumexp, const float* delta, float* d_query, Half* d_key,
             Half* d_value) {
  extern __shared__ __align__(16) unsigned char shared[];
  unsigned char* const keys = shared;
  unsigned char* const values = keys + kRows * kPitch;
  unsigned char* const queries = values + kRows * kPitch;
  unsigned char* const d_outputs = queries + kRows * kPitch;
  unsigned char* const d_scores = d_outputs + kRows * kPitch;  // a row a query
  float* const exponents = reinterpret_cast<float*>(d_scores + kRows * kScorePitch);
  float* const deltas = exponents + kRows;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const long long head = blockIdx.y, start = head * LENGTH * HEAD_DIM;
  const int first_key = blockIdx.x * kRows;
  LoadTile(keys, key + start, first_key);
  LoadTile(values, value + start, first_key);
  Sums key_sums = {}, value_sums = {};
  for (int row = CAUSAL ? first_key : 0; row < LENGTH; row += kRows) {
    __syncthreads();
    LoadTile(queries, query + start, row);
    LoadTile(d_outputs, d_output + start, row);
    if (threadIdx.x < kRows) {
      const bool exists = row + threadIdx.x < LENGTH;
      const long long number = head * LENGTH + row + threadIdx.x;
      // Queries past the end get weights of zero.
      exponents[threadIdx.x] = exists ? logsumexp[number] * kLog2E : __int_as_float(0x7f800000);
      deltas[threadIdx.x] = exists ? delta[number] : 0;
    }
    __syncthreads();
    Scores score, d_weight;
    Pairs pairs;
    MultiplyRows(score, SharedAddress(keys), SharedAddress(queries));
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int one = first_key + 16 * warp + g + i / 2 * 8, other = 8 * j + 2 * t + i % 2;
        const bool hidden = one >= LENGTH || (CAUSAL && one > row + other);
        score[j][i] =
            hidden ? 0 : exp2f(fmaf(score[j][i], kScale * kLog2E, -exponents[other]));
      }
    Round(score, pairs);
    AddRows(value_sums, pairs, SharedAddress(d_outputs));
    MultiplyRows(d_weight, SharedAddress(values), SharedAddress(d_outputs));
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) score[j][i] *= d_weight[j][i] - deltas[8 * j + 2 * t + i % 2];
    Round(score, pairs);
    AddRows(key_sums, pairs, SharedAddress(queries));
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const unsigned pair = pairs[j / 2][j % 2 * 2 + i / 2];
        *reinterpret_cast<Half*>(d_scores + (8 * j + 2 * t + i % 2) * kScorePitch +
                                 (16 * warp + g + i / 2 * 8) * 2) = i % 2 ? pair >> 16 : pair;
      }
    __syncthreads();
    Sums sums = {};
#pragma unroll
    for (int step = 0; step < kRows / 16; ++step)
      LoadBlocks(pairs[step], SharedAddress(d_scores) + (16 * warp + lane % 16) * kScorePitch +
                                  (2 * step + lane / 16) * 16);
    AddRows(sums, pairs, SharedAddress(keys));
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int one = row + 16 * warp + g + 8 * h;
      if (one >= LENGTH) continue;
      float* const to = d_query + start + (long long)one * HEAD_DIM + 2 * t;
#pragma unroll
      for (int j = 0; j < HEAD_DIM / 8; ++j)
        asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(to + 8 * j),
                     "f"(sums[j][2 * h]), "f"(sums[j][2 * h + 1])
                     : "memory");
    }
  }
  const int row = first_key + 16 * warp + g;
  StoreRows(d_key + start, row, key_sums, kScale);
  StoreRows(d_value + start, row, value_sums, 1);
}
