// Idea: two stages by cp.async: while a block of keys and values is worked on, the next is on its
//   way, without registers. Instead of padding, chunks of 16 bytes are swapped within their row
//   (chunk c of row r lies at c ^ r % 8), so that rows are as long as they are.
// Prediction: 75% of the library, which does much the same.
// Measured: 2.26 ms on an H100, 36% of the library, 27% of the peak, 243 TFLOP/s: 10% faster than
//   rung 4, not 50%. 2.10 ms were predicted by the library that was assumed. Likely other blocks
//   hid the waits before: with 200 registers a thread eight warps fit on a processor, of rung 4
//   twelve. Heads of 64: 1.21 ms, 49% of the library.
// Sizes: any LENGTH; HEAD_DIM 64 or 128.
//! constant HEADS = query.size(0) * query.size(1)
//! constant LENGTH = query.size(2)
//! constant HEAD_DIM = query.size(3)
//! constant CAUSAL = causal.size(0) - 1
//! constant FP16 = 0
//! launch   attention grid=(ceil_div(LENGTH, 64), HEADS) block=(128) shared=512*HEAD_DIM args=(query, key, value, out)
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
using Tile = uint4[kKeys][kChunks];
struct Stage {
  Tile keys, values;
};

DEVICE unsigned SharedAddress(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Where chunk `chunk` of row `row` lies.
DEVICE unsigned ChunkAddress(const Tile& tile, int row, int chunk) {
  return SharedAddress(&tile[row][chunk ^ row % 8]);
}

// The copies started since the last call make a group.
DEVICE void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `pending` groups of this thread are on their way.
template <int pending>
DEVICE void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Starts copies of 64 rows of a head, zeros beyond its end.
DEVICE void LoadTile(Tile& tile, const Half* head, int row) {
#pragma unroll
  for (int i = threadIdx.x; i < kKeys * kChunks; i += kThreads) {
    const int r = i / kChunks, c = i % kChunks;
    const bool inside = row + r < LENGTH;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(ChunkAddress(tile, r, c)),
                 "l"(inside ? head + (long long)(row + r) * HEAD_DIM + 8 * c : head),
                 "r"(inside ? 16 : 0)
                 : "memory");
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

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    attention(const Half* query, const Half* key, const Half* value, Half* out) {
  extern __shared__ __align__(128) unsigned char shared[];
  Stage* const stages = reinterpret_cast<Stage*>(shared);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long head = (long long)blockIdx.y * LENGTH * HEAD_DIM;
  const int first = blockIdx.x * kQueries, first_query = first + 16 * warp + lane / 4;
  const int end = CAUSAL ? min(first + kQueries, LENGTH) : LENGTH;
  const auto load = [&](int start) {
    Stage& stage = stages[start / kKeys % 2];
    if (start < end) {
      LoadTile(stage.keys, key + head, start);
      LoadTile(stage.values, value + head, start);
    }
    CommitCopies();  // an empty group past the end, so that counting groups counts blocks
  };
  unsigned queries[HEAD_DIM / 16][4];
  LoadTile(stages[1].keys, query + head, first);  // by way of a tile
  CommitCopies();
  load(0);
  WaitCopies<1>();
  __syncthreads();
#pragma unroll
  for (int step = 0; step < HEAD_DIM / 16; ++step)
    LoadBlocks(queries[step],
               ChunkAddress(stages[1].keys, 16 * warp + lane % 16, 2 * step + lane / 16));
  Rows rows = {{MinusInfinity(), MinusInfinity()}, {0, 0}};
  Sums sums = {};
  for (int start = 0; start < end; start += kKeys) {
    __syncthreads();  // the other stage is free
    load(start + kKeys);
    WaitCopies<1>();
    __syncthreads();  // this stage is there
    const Stage& stage = stages[start / kKeys % 2];
    Scores score = {};
    ScoreKeys(score, queries, stage.keys);
    if (CAUSAL || start + kKeys > LENGTH) Mask(score, start + lane % 4 * 2, first_query);
    Weigh(score, rows, sums);
    AddValues(sums, score, stage.values);
  }
  StoreRows(out + head, first_query, rows, sums);
}
