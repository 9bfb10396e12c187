// Attention over a paged cache, tiles shared out evenly, in one launch.
//
// Idea: all tiles of all sequences and heads stand in one row, and each of 264 blocks, two for each
//   multiprocessor, takes an equal stretch of it, whatever the lengths are. A sequence that several
//   blocks share is put together by the one that is ready last: blocks leave their sums in memory
//   and add the number of their tiles to a counter. The block that completes it sets it back to
//   0 for the next call.
// Prediction: 570% of the library, 92% of the speed of a copy: no second launch, no partial wave;
//   with mixed lengths the same share of the peak.
// Measured: on an H100 208.0 us, 295.9% of the library, 85.0% of the speed of a copy (32
//   sequences of 4096 tokens); 119.1 us, 451.0% of the library, 79.1% of the speed of a copy
//   (mixed lengths).
// Sizes: heads of 64 or 128, groups of up to 16; any pages and lengths, up to 1024 sequences.
//! constant BATCH = q.size(0)
//! constant HEADS = q.size(1)
//! constant HEAD_DIM = q.size(2)
//! constant PAGE = k_cache.size(1)
//! constant KV_HEADS = k_cache.size(2)
//! constant PAGES_MAX = page_table.size(1)
//! tune     STAGES = 3 2
//! tune     BLOCKS = 264 132
//! dim      group = HEADS / KV_HEADS
//! scratch  sums float[BLOCKS * 2 * group * HEAD_DIM]
//! scratch  ends float[BLOCKS * 2 * group * 2]
//! launch   attention grid=(BLOCKS) block=(128) shared=256*HEAD_DIM*STAGES args=(q, k_cache, v_cache, page_table, lengths, sums, ends, out)
#define DEVICE __device__ __forceinline__
static_assert(HEAD_DIM == 64 || HEAD_DIM == 128);

using Half = unsigned short;  // the bits of a bfloat16
constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kKeys = 16;              // in a tile
constexpr int kChunks = HEAD_DIM / 8;  // of 16 bytes, in a row
constexpr int kGroup = HEADS / KV_HEADS;
static_assert(kGroup <= 16);
constexpr int kHalves = kGroup > 8 ? 2 : 1;  // of the 16 rows, those that are used
// The scores times this are exponents of 2.
constexpr float kScale = 1.4426950409f * (HEAD_DIM == 64 ? 0.125f : 0.0883883476f);

using Tile = uint4[kKeys][kChunks];
struct Stage {
  Tile keys, values;
};

// Where chunk `chunk` of row `row` lies: swapped, so that eight rows' chunks are in all banks.
DEVICE int Place(int row, int chunk) { return chunk ^ row % 8; }

// Starts a copy of 16 bytes, or of zeros.
DEVICE void CopyAsync(void* to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(inside ? 16 : 0)
               : "memory");
}

// The copies started since the last call make a group.
DEVICE void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `pending` groups of this thread are on their way.
template <int pending>
DEVICE void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Four 8 x 8 blocks; lanes 8 i to 8 i + 7 give the addresses of the rows of block i. Lane 4 g + t
// gets elements 2 t and 2 t + 1 of row g of each.
DEVICE void LoadBlocks(unsigned (&blocks)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(blocks[0]), "=r"(blocks[1]), "=r"(blocks[2]), "=r"(blocks[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
}

// The same, but rows 2 t and 2 t + 1 of column g.
DEVICE void LoadBlocksTurned(unsigned (&blocks)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(blocks[0]), "=r"(blocks[1]), "=r"(blocks[2]), "=r"(blocks[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
}

// sum (16 x 8) += a (16 x 16) b^T (8 x 16). Of the lane numbered 4 g + t, sum is rows g and g + 8,
// columns 2 t and 2 t + 1; a the pairs of k at 2 t and 2 t + 8 in rows g, g + 8; b those in row g.
DEVICE void Multiply(float (&sum)[4], const unsigned (&a)[4], const unsigned* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two numbers rounded to bfloat16, the first in the lower half.
DEVICE unsigned PackTwo(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

DEVICE float PowerOfTwo(float value) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(value));
  return power;
}

DEVICE float MinusInfinity() { return __int_as_float(0xff800000); }
// In place of a largest score that is still minus infinity: (-inf) - (-inf) would be no number.
DEVICE float BaseOf(float largest) { return largest == MinusInfinity() ? 0 : largest; }

using Queries = unsigned[HEAD_DIM / 16][4];
using Scores = float[kKeys / 8][4];

// In one warp. Of the rows of a lane, g and g + 8: the largest score, and this lane's part of the
// sum of powers (the other parts are in the lanes with the same g). Of these rows also the columns
// 2 t and 2 t + 1 of every eight of the weighted values.
struct Sums {
  float largest[kHalves], total[kHalves];
  float values[HEAD_DIM / 8][4];
};

// The group's queries as a matrix of 16 rows, the last ones zeros.
DEVICE void LoadQueries(Queries& queries, const Half* group) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int step = 0; step < HEAD_DIM / 16; ++step)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = g + i % 2 * 8, column = 16 * step + i / 2 * 8 + 2 * t;
      queries[step][i] =
          row < kGroup ? *reinterpret_cast<const unsigned*>(group + row * HEAD_DIM + column) : 0;
    }
}

// Scores become powers, of the distance to the largest score so far; the sums shrink to fit.
DEVICE void Weigh(Scores& score, Sums& sums) {
#pragma unroll
  for (int h = 0; h < kHalves; ++h) {
    float largest = sums.largest[h], total = 0;
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
      largest = fmaxf(largest, fmaxf(score[j][2 * h], score[j][2 * h + 1]));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    const float base = BaseOf(largest);
    const float shrink = PowerOfTwo((sums.largest[h] - base) * kScale);
    sums.largest[h] = largest;
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
      for (int i = 2 * h; i < 2 * h + 2; ++i) {
        score[j][i] = PowerOfTwo((score[j][i] - base) * kScale);
        total += score[j][i];
      }
    sums.total[h] = sums.total[h] * shrink + total;
#pragma unroll
    for (int j = 0; j < HEAD_DIM / 8; ++j)
      sums.values[j][2 * h] *= shrink, sums.values[j][2 * h + 1] *= shrink;
  }
}

// Adds a tile, of which the first `count` tokens count.
DEVICE void AddTile(Sums& sums, const Queries& queries, const Stage& stage, int count) {
  const int lane = threadIdx.x % 32;
  Scores score = {};
#pragma unroll
  for (int step = 0; step < HEAD_DIM / 16; ++step) {
    unsigned blocks[4];  // eight keys and the next eight, two blocks each
    const int row = lane / 16 * 8 + lane % 8;
    LoadBlocks(blocks, &stage.keys[row][Place(row, 2 * step + lane / 8 % 2)]);
    Multiply(score[0], queries[step], &blocks[0]);
    Multiply(score[1], queries[step], &blocks[2]);
  }
  if (count < kKeys) {
#pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (8 * j + lane % 4 * 2 + i % 2 >= count) score[j][i] = MinusInfinity();
  }
  Weigh(score, sums);
  unsigned weights[4] = {PackTwo(score[0][0], score[0][1]), 0, PackTwo(score[1][0], score[1][1]),
                         0};
  if (kHalves == 2) {
    weights[1] = PackTwo(score[0][2], score[0][3]);
    weights[3] = PackTwo(score[1][2], score[1][3]);
  }
#pragma unroll
  for (int j = 0; j < HEAD_DIM / 16; ++j) {
    unsigned blocks[4];  // eight columns and the next eight, two blocks each
    const int row = lane % 16;
    LoadBlocksTurned(blocks, &stage.values[row][Place(row, 2 * j + lane / 16)]);
    Multiply(sums.values[2 * j], weights, &blocks[0]);
    Multiply(sums.values[2 * j + 1], weights, &blocks[2]);
  }
}

// One sequence's keys or values of one head, from its first token on.
struct Cache {
  const uint4 *keys, *values;  // of row 0 of the pool
  const int* table;

  // In the pool; int holds it.
  DEVICE int RowOf(int token) const { return table[token / PAGE] * PAGE + token % PAGE; }
};

// Starts copies of a tile; `row` of lane i is that of token i, -1 for zeros.
DEVICE void LoadTile(Stage& stage, const Cache& cache, int row) {
#pragma unroll
  for (int i = threadIdx.x % 32; i < kKeys * kChunks; i += 32) {
    const int r = i / kChunks, c = i % kChunks;
    const int from = __shfl_sync(~0u, row, r);
    const long long at = (long long)max(from, 0) * (KV_HEADS * kChunks) + c;
    CopyAsync(&stage.keys[r][Place(r, c)], cache.keys + at, from >= 0);
    CopyAsync(&stage.values[r][Place(r, c)], cache.values + at, from >= 0);
  }
}

// Adds the tokens from `begin` to `end`, a warp every fourth tile. Places in the pool are looked up
// one tile before copies start.
DEVICE void AddTokens(Sums& sums, const Queries& queries, const Cache& cache, Stage* ring,
                      int begin, int end) {
  const int warp = threadIdx.x / 32;
  const int last = end - 1, tiles = (end - begin + kKeys - 1) / kKeys;
  const auto look_up = [&](int tile) {
    const int token = begin + tile * kKeys + threadIdx.x % kKeys;
    return token <= last ? cache.RowOf(token) : -1;
  };
  int row = look_up(warp), to_load = warp, stage_to_load = 0;
  const auto load = [&] {
    if (to_load < tiles) LoadTile(ring[stage_to_load], cache, row);
    CommitCopies();  // an empty group past the end, so that counting groups counts tiles
    to_load += kWarps;
    row = look_up(to_load);
    stage_to_load = stage_to_load + 1 == STAGES ? 0 : stage_to_load + 1;
  };
  for (int i = 0; i < STAGES - 1; ++i) load();
  int stage = 0;
  for (int tile = warp; tile < tiles; tile += kWarps) {
    WaitCopies<STAGES - 2>();
    __syncwarp();  // this stage is there, and the one before is free
    load();
    AddTile(sums, queries, ring[stage], end - begin - tile * kKeys);
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
  WaitCopies<0>();
}

// The warps' sums in shared memory.
struct Parts {
  float largest[kWarps][kGroup], total[kWarps][kGroup];
};

DEVICE void StoreParts(Parts& parts, float* values, const Sums& sums) {
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < kHalves; ++h) {
    float total = sums.total[h];
    total += __shfl_xor_sync(~0u, total, 1);
    total += __shfl_xor_sync(~0u, total, 2);
    const int row = g + 8 * h;
    if (row >= kGroup) continue;
    if (t == 0) parts.largest[warp][row] = sums.largest[h], parts.total[warp][row] = total;
    float* const to = values + (warp * kGroup + row) * HEAD_DIM + 2 * t;
#pragma unroll
    for (int j = 0; j < HEAD_DIM / 8; ++j)
      to[8 * j] = sums.values[j][2 * h], to[8 * j + 1] = sums.values[j][2 * h + 1];
  }
}

// The row of all tiles: sequence by sequence, in each head by head. `first[b]` is the first tile of
// sequence b, if there were one head.
struct Row {
  int first[BATCH + 1];

  DEVICE long long Tiles() const { return (long long)first[BATCH] * KV_HEADS; }
  // The first tile of a block. A tile belongs to the last block that begins at or before it.
  DEVICE long long BeginOf(int block) const { return Tiles() * block / BLOCKS; }
  DEVICE int BlockOf(long long tile) const {
    return static_cast<int>(((tile + 1) * BLOCKS - 1) / Tiles());
  }
};
static_assert(BATCH <= 1024);

// Called by one warp.
DEVICE void FillRow(Row& row, const int* lengths) {
  int before = 0;
  for (int start = 0; start < BATCH; start += 32) {
    const int sequence = start + threadIdx.x;
    int sum = sequence < BATCH ? (lengths[sequence] + kKeys - 1) / kKeys : 0;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0u, sum, step);
      if (threadIdx.x >= step) sum += other;
    }
    if (sequence < BATCH) row.first[sequence + 1] = before + sum;
    before += __shfl_sync(~0u, sum, 31);
  }
  if (threadIdx.x == 0) row.first[0] = 0;
}

// Tiles that are done, of each sequence and head; 0 between calls.
__device__ int done[BATCH * KV_HEADS];

// In memory, of each block: the sums, largest scores and sums of powers of a group that it takes
// over from an earlier block (place 0), and of one that it begins and does not end (place 1).
struct Shares {
  float* sums;
  float2* ends;

  DEVICE long long At(int block, int place) const { return (2ll * block + place) * kGroup; }
};

// Puts together the shares of the blocks that have tiles from `begin` to `end`, all of one group.
DEVICE void Combine(const Row& row, const Shares& shares, long long begin, long long end,
                    Half* out) {
  const int first = row.BlockOf(begin), last = row.BlockOf(end - 1);
  for (int at = threadIdx.x; at < kGroup * HEAD_DIM; at += kThreads) {
    const int head = at / HEAD_DIM;
    float largest = MinusInfinity(), total = 0, sum = 0;
    for (int block = first; block <= last; ++block) {
      if (row.BeginOf(block) == row.BeginOf(block + 1)) continue;  // it has no tiles
      const long long share = shares.At(block, block == first);
      const float2 its = __ldcg(shares.ends + share + head);
      const float more = __ldcg(shares.sums + share * HEAD_DIM + at);
      const float now = fmaxf(largest, its.x);
      const float shrink = PowerOfTwo((largest - BaseOf(now)) * kScale);
      const float factor = PowerOfTwo((its.x - BaseOf(now)) * kScale);
      total = total * shrink + its.y * factor;
      sum = sum * shrink + more * factor;
      largest = now;
    }
    out[at] = PackTwo(sum / total, 0);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    attention(const Half* q, const uint4* k_cache, const uint4* v_cache, const int* page_table,
              const int* lengths, float* all_sums, float2* all_ends, Half* out) {
  extern __shared__ __align__(128) unsigned char shared[];
  Stage* const ring = reinterpret_cast<Stage*>(shared) + threadIdx.x / 32 * STAGES;
  float* const values = reinterpret_cast<float*>(shared);  // then: [kWarps][kGroup][HEAD_DIM]
  __shared__ Parts parts;
  __shared__ Row row;
  __shared__ bool completes;
  if (threadIdx.x < 32) FillRow(row, lengths);
  __syncthreads();
  for (int sequence = blockIdx.x; sequence < BATCH; sequence += BLOCKS)
    if (lengths[sequence] == 0)
      for (int at = threadIdx.x; at < HEADS * HEAD_DIM; at += kThreads)
        out[(long long)sequence * HEADS * HEAD_DIM + at] = 0;

  const Shares shares = {all_sums, all_ends};
  const long long block_end = row.BeginOf(blockIdx.x + 1);
  int sequence = 0;
  for (long long tile = row.BeginOf(blockIdx.x); tile < block_end;) {
    // The group that the tile belongs to, and the stretch of it that is this block's.
    while ((long long)row.first[sequence + 1] * KV_HEADS <= tile) ++sequence;
    const int tiles = row.first[sequence + 1] - row.first[sequence];
    const long long sequence_begin = (long long)row.first[sequence] * KV_HEADS;
    const int kv_head = static_cast<int>((tile - sequence_begin) / tiles);
    const long long begin = sequence_begin + (long long)kv_head * tiles, end = begin + tiles;
    const long long stop = min(end, block_end);
    const int count = static_cast<int>(stop - tile);

    const int head = sequence * HEADS + kv_head * kGroup;  // the group's first
    Half* const to = out + (long long)head * HEAD_DIM;
    Queries queries;
    LoadQueries(queries, q + (long long)head * HEAD_DIM);
    const Cache cache = {k_cache + kv_head * kChunks, v_cache + kv_head * kChunks,
                         page_table + (long long)sequence * PAGES_MAX};
    Sums sums = {};
#pragma unroll
    for (int h = 0; h < kHalves; ++h) sums.largest[h] = MinusInfinity();
    const int token = static_cast<int>(tile - begin) * kKeys;
    AddTokens(sums, queries, cache, ring, token, min(token + count * kKeys, lengths[sequence]));
    __syncthreads();  // the ring is free for the sums
    StoreParts(parts, values, sums);
    __syncthreads();
    const bool whole = count == tiles;
    const long long share = shares.At(blockIdx.x, tile == begin);
    for (int at = threadIdx.x; at < kGroup * HEAD_DIM; at += kThreads) {
      const int j = at / HEAD_DIM;
      float largest = MinusInfinity(), total = 0, sum = 0;
      for (int i = 0; i < kWarps; ++i) largest = fmaxf(largest, parts.largest[i][j]);
      for (int i = 0; i < kWarps; ++i) {
        const float shrink = PowerOfTwo((parts.largest[i][j] - BaseOf(largest)) * kScale);
        total += shrink * parts.total[i][j];
        sum += shrink * values[i * kGroup * HEAD_DIM + at];
      }
      if (whole) {
        to[at] = PackTwo(sum / total, 0);
      } else {
        shares.sums[share * HEAD_DIM + at] = sum;
        if (at % HEAD_DIM == 0) shares.ends[share + j] = make_float2(largest, total);
      }
    }
    if (!whole) {
      __threadfence();  // the shares are written before the counter says so
      __syncthreads();
      if (threadIdx.x == 0) {
        int* const counter = done + sequence * KV_HEADS + kv_head;
        completes = atomicAdd(counter, count) + count == tiles;
        if (completes) *counter = 0;
        __threadfence();  // the others' shares are read after the counter
      }
      __syncthreads();
      if (completes) Combine(row, shares, begin, end, to);
    }
    __syncthreads();  // the ring and `completes` are free
    tile = stop;
  }
}
