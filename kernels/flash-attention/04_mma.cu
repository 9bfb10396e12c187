// Idea: tensor cores, by mma.sync. A warp has 16 queries, in registers; keys and values of a block
//   are in shared memory as they are, 16 bits a number, in rows of 16 bytes more than they need.
//   Scores stay in registers: what a lane has of two neighbouring 8 x 8 blocks of them is, rounded,
//   what it gives as first operand of the second product. ldmatrix turns the values round.
// Prediction: 50% of the library: mma.sync reaches some 60% of what wgmma does, and the waits for
//   global memory lie open but for the other blocks of the processor.
// Measured: 2.49 ms on an H100, 33% of the library, 25% of the peak, 221 TFLOP/s. Not 50%, since
//   the library is 1.9 times as fast as was assumed (README); 50% of the one assumed were 3.14 ms,
//   so the rung itself is a quarter faster than predicted.
// Sizes: any LENGTH; HEAD_DIM 64 or 128.
//! constant HEADS = query.size(0) * query.size(1)
//! constant LENGTH = query.size(2)
//! constant HEAD_DIM = query.size(3)
//! constant CAUSAL = causal.size(0) - 1
//! constant FP16 = 0
//! launch   attention grid=(ceil_div(LENGTH, 64), HEADS) block=(128) shared=128*(HEAD_DIM*2+16) args=(query, key, value, out)
#define DEVICE __device__ __forceinline__
#if FP16
#define TYPE "f16"
#else
#define TYPE "bf16"
#endif
static_assert(HEAD_DIM == 64 || HEAD_DIM == 128);

using Half = unsigned short;  // its bits
constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kQueries = 16 * kWarps, kKeys = 64;  // in a tile
constexpr int kChunks = HEAD_DIM / 8;              // of 16 bytes, in a row
using Tile = uint4[kKeys][kChunks + 1];

DEVICE unsigned SharedAddress(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Where chunk `chunk` of row `row` lies.
DEVICE unsigned ChunkAddress(const Tile& tile, int row, int chunk) {
  return SharedAddress(&tile[row][chunk]);
}

// 64 rows of a head, zeros beyond its end.
DEVICE void LoadTile(Tile& tile, const Half* head, int row) {
#pragma unroll
  for (int i = threadIdx.x; i < kKeys * kChunks; i += kThreads) {
    const int r = i / kChunks, c = i % kChunks;
    uint4 chunk = {0, 0, 0, 0};
    if (row + r < LENGTH)
      chunk = *reinterpret_cast<const uint4*>(head + (long long)(row + r) * HEAD_DIM + 8 * c);
    tile[r][c] = chunk;
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
DEVICE void Multiply(float (&sum)[4], const unsigned (&a)[4], const unsigned* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two numbers rounded to 16 bits, the first in the lower half.
DEVICE unsigned Pack(float low, float high) {
  unsigned pair;
  asm("cvt.rn." TYPE "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

DEVICE float MinusInfinity() { return __int_as_float(0xff800000); }

DEVICE float PowerOfTwo(float value) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(value));
  return power;
}

// The scores times this are exponents of 2.
constexpr float kScale = 1.4426950409f * (HEAD_DIM == 64 ? 0.125f : 0.0883883476f);

// Of the two rows of a lane, g and g + 8: the largest score so far, and this lane's part of the sum
// of powers. The other parts of a row are in the lanes with the same g.
struct Rows {
  float largest[2], sum[2];
};

using Scores = float[kKeys / 8][4];
using Sums = float[HEAD_DIM / 8][4];

// Hides the keys that a query must not see: those past the end, and where CAUSAL later ones. `key`
// and `query` are the lane's first.
DEVICE void Mask(Scores& score, int key, int query) {
#pragma unroll
  for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = query + i / 2 * 8, column = key + 8 * j + i % 2;
      if (column >= LENGTH || (CAUSAL && column > row)) score[j][i] = MinusInfinity();
    }
}

// Scores become powers, of the distance to the largest score so far; the sums, which are of powers
// of distances to the one before, shrink.
DEVICE void Weigh(Scores& score, Rows& rows, Sums& sums) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float largest = rows.largest[h], sum = 0;
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
      largest = fmaxf(largest, fmaxf(score[j][2 * h], score[j][2 * h + 1]));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    // A row that has seen no key yet: (-inf) - (-inf) would be no number.
    const float base = largest == MinusInfinity() ? 0 : largest;
    const float shrink = PowerOfTwo((rows.largest[h] - base) * kScale);
    rows.largest[h] = largest;
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
      for (int i = 2 * h; i < 2 * h + 2; ++i) {
        score[j][i] = PowerOfTwo((score[j][i] - base) * kScale);
        sum += score[j][i];
      }
    rows.sum[h] = rows.sum[h] * shrink + sum;
#pragma unroll
    for (int j = 0; j < HEAD_DIM / 8; ++j) sums[j][2 * h] *= shrink, sums[j][2 * h + 1] *= shrink;
  }
}

// Of the keys of a tile: their scores.
DEVICE void ScoreKeys(Scores& score, const unsigned (&queries)[HEAD_DIM / 16][4],
                      const Tile& keys) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int step = 0; step < HEAD_DIM / 16; ++step)
#pragma unroll
    for (int j = 0; j < kKeys / 16; ++j) {
      unsigned blocks[4];  // two of 8 keys, two blocks each
      LoadBlocks(blocks, ChunkAddress(keys, 16 * j + lane / 16 * 8 + lane % 8,
                                      2 * step + lane / 8 % 2));
      Multiply(score[2 * j], queries[step], &blocks[0]);
      Multiply(score[2 * j + 1], queries[step], &blocks[2]);
    }
}

// Adds the weighted values of a tile.
DEVICE void AddValues(Sums& sums, const Scores& weight, const Tile& values) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int step = 0; step < kKeys / 16; ++step) {
    const float(&w)[4] = weight[2 * step], (&next)[4] = weight[2 * step + 1];
    const unsigned pairs[4] = {Pack(w[0], w[1]), Pack(w[2], w[3]), Pack(next[0], next[1]),
                               Pack(next[2], next[3])};
#pragma unroll
    for (int j = 0; j < HEAD_DIM / 16; ++j) {
      unsigned blocks[4];  // two of 8 columns, two blocks each
      LoadBlocksTurned(blocks, ChunkAddress(values, 16 * step + lane % 16, 2 * j + lane / 16));
      Multiply(sums[2 * j], pairs, &blocks[0]);
      Multiply(sums[2 * j + 1], pairs, &blocks[2]);
    }
  }
}

DEVICE void StoreRows(Half* head, int query, const Rows& rows, const Sums& sums) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float total = rows.sum[h];
    total += __shfl_xor_sync(~0u, total, 1);
    total += __shfl_xor_sync(~0u, total, 2);
    const float factor = total == 0 ? 0 : 1 / total;  // a row that sees no key becomes zeros
    const int row = query + 8 * h;
    if (row >= LENGTH) continue;
    unsigned* const to =
        reinterpret_cast<unsigned*>(head + (long long)row * HEAD_DIM) + lane % 4;
#pragma unroll
    for (int j = 0; j < HEAD_DIM / 8; ++j)
      to[4 * j] = Pack(sums[j][2 * h] * factor, sums[j][2 * h + 1] * factor);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 3)
    attention(const Half* query, const Half* key, const Half* value, Half* out) {
  extern __shared__ __align__(16) unsigned char shared[];
  Tile& keys = *reinterpret_cast<Tile*>(shared);
  Tile& values = *reinterpret_cast<Tile*>(shared + sizeof(Tile));
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long head = (long long)blockIdx.y * LENGTH * HEAD_DIM;
  const int first = blockIdx.x * kQueries, first_query = first + 16 * warp + lane / 4;
  unsigned queries[HEAD_DIM / 16][4];
  LoadTile(keys, query + head, first);  // by way of a tile
  __syncthreads();
#pragma unroll
  for (int step = 0; step < HEAD_DIM / 16; ++step)
    LoadBlocks(queries[step], ChunkAddress(keys, 16 * warp + lane % 16, 2 * step + lane / 16));
  Rows rows = {{MinusInfinity(), MinusInfinity()}, {0, 0}};
  Sums sums = {};
  const int end = CAUSAL ? min(first + kQueries, LENGTH) : LENGTH;
  for (int start = 0; start < end; start += kKeys) {
    __syncthreads();
    LoadTile(keys, key + head, start);
    LoadTile(values, value + head, start);
    __syncthreads();
    Scores score = {};
    ScoreKeys(score, queries, keys);
    if (CAUSAL || start + kKeys > LENGTH) Mask(score, start + lane % 4 * 2, first_query);
    Weigh(score, rows, sums);
    AddValues(sums, score, values);
  }
  StoreRows(out + head, first_query, rows, sums);
}
