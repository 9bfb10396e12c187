// Attention over a paged cache, one stream of tiles a block.
//
// Idea: even shares as in rung 7, whose blocks rest where a share crosses from one sequence to the
//   next: the ring runs empty, its memory serves for sums, then a fence and a counter are waited
//   for, and only then the next sequence's first page is looked up. Here copies go on across that
//   border: sums have memory of their own (8 KB for groups of four), and a second launch puts
//   shares together, which it finds by lengths alone.
// Prediction: 325% of the library, 93% of the speed of a copy: a block crosses one border, which
//   cost some 5 us, and the fence and counter some 3 at the end. With mixed lengths 500%, 88%.
// Sizes: heads of 64 or 128, groups of up to 16; any pages and lengths, up to 1024 sequences.
//! constant BATCH = q.size(0)
//! constant HEADS = q.size(1)
//! constant HEAD_DIM = q.size(2)
//! constant PAGE = k_cache.size(1)
//! constant KV_HEADS = k_cache.size(2)
//! constant PAGES_MAX = page_table.size(1)
//! constant STAGES = 3
//! constant BLOCKS = 264
//! dim      group = HEADS / KV_HEADS
//! scratch  sums float[BLOCKS * 2 * group * HEAD_DIM]
//! scratch  ends float[BLOCKS * 2 * group * 2]
//! launch   attention grid=(BLOCKS) block=(128) shared=256*HEAD_DIM*STAGES+16*group*HEAD_DIM args=(q, k_cache, v_cache, page_table, lengths, sums, ends, out)
//! launch   combine grid=(KV_HEADS, BATCH) block=(128) args=(lengths, sums, ends, out)
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

// A tile's sequence and head, and its first token.
struct Spot {
  int sequence, kv_head, token;
};

// `sequence` is at or before the tile's.
DEVICE Spot SpotOf(const Row& row, long long tile, int sequence) {
  while ((long long)row.first[sequence + 1] * KV_HEADS <= tile) ++sequence;
  const int tiles = row.first[sequence + 1] - row.first[sequence];
  const int within = static_cast<int>(tile - (long long)row.first[sequence] * KV_HEADS);
  return {sequence, within / tiles, within % tiles * kKeys};
}

// Called by one warp.
DEVICE void FillRow(Row& row, const int* lengths) {
  int before = 0;
#pragma unroll 4
  for (int start = 0; start < BATCH; start += 32) {
    const int sequence = start + threadIdx.x;
    int sum = sequence < BATCH ? (__ldg(lengths + sequence) + kKeys - 1) / kKeys : 0;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0u, sum, step);
      if (threadIdx.x >= step) sum += other;
    }
    if (sequence < BATCH) row.first[sequence + 1] = before + sum;
    before += __shfl_sync(~0u, sum, 31);
  }
  if (threadIdx.x == 0) row.first[0] = 0;
}

// The inputs that tiles are made of.
struct Pool {
  const uint4 *keys, *values;  // of row 0
  const int *page_table, *lengths;
};

// A warp's copies: every fourth tile of the block's share, whatever sequences they are of. The
// place in the pool of the next tile is looked up before its copies start.
class Copies {
 public:
  DEVICE Copies(const Pool& pool, const Row& row, Stage* ring, long long begin, long long end)
      : pool_(pool), row_(row), ring_(ring), tile_(begin + threadIdx.x / 32), end_(end) {
    LookUp();
  }

  // Starts a tile's copies into the next stage; past the end an empty group, so that counting
  // groups counts tiles.
  DEVICE void Start() {
    if (tile_ < end_) {
      Stage& stage = ring_[stage_];
#pragma unroll
      for (int i = threadIdx.x % 32; i < kKeys * kChunks; i += 32) {
        const int r = i / kChunks, c = i % kChunks, from = __shfl_sync(~0u, place_, r);
        const long long at = ((long long)max(from, 0) * KV_HEADS + spot_.kv_head) * kChunks + c;
        CopyAsync(&stage.keys[r][Place(r, c)], pool_.keys + at, from >= 0);
        CopyAsync(&stage.values[r][Place(r, c)], pool_.values + at, from >= 0);
      }
    }
    CommitCopies();
    stage_ = stage_ + 1 == STAGES ? 0 : stage_ + 1;
    tile_ += kWarps;
    LookUp();
  }

 private:
  // Of lane i the pool's row of token i, -1 past the sequence's end.
  DEVICE void LookUp() {
    if (tile_ >= end_) return;
    spot_ = SpotOf(row_, tile_, spot_.sequence);
    const int token = spot_.token + threadIdx.x % kKeys;
    const int* const table = pool_.page_table + (long long)spot_.sequence * PAGES_MAX;
    place_ = token < __ldg(pool_.lengths + spot_.sequence)
                 ? __ldg(table + token / PAGE) * PAGE + token % PAGE
                 : -1;
  }

  const Pool& pool_;
  const Row& row_;
  Stage* ring_;
  long long tile_, end_;
  Spot spot_ = {0, 0, 0};
  int place_ = -1, stage_ = 0;
};

// The place of a block's sums in memory, in groups: of a group that it takes over from an earlier
// block (`takes_over`), or of one that it begins and does not end.
DEVICE long long ShareOf(int block, bool takes_over) { return 2ll * block + !takes_over; }

// The block's sums of a group, of all warps: results if `whole`, or else numbers for `combine`.
DEVICE void Store(const Parts& parts, const float* values, bool whole, Half* to, float* share_sums,
                  float2* share_ends) {
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
      share_sums[at] = sum;
      if (at % HEAD_DIM == 0) share_ends[j] = make_float2(largest, total);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    attention(const Half* q, const uint4* k_cache, const uint4* v_cache, const int* page_table,
              const int* lengths, float* all_sums, float2* all_ends, Half* out) {
  extern __shared__ __align__(128) unsigned char shared[];
  Stage* const stages = reinterpret_cast<Stage*>(shared);
  float* const values = reinterpret_cast<float*>(stages + kWarps * STAGES);
  __shared__ Parts parts;
  __shared__ Row row;
  if (threadIdx.x < 32) FillRow(row, lengths);
  __syncthreads();
  const int warp = threadIdx.x / 32;
  const long long block_begin = row.BeginOf(blockIdx.x), block_end = row.BeginOf(blockIdx.x + 1);
  const Pool pool = {k_cache, v_cache, page_table, lengths};
  Stage* const ring = stages + warp * STAGES;
  Copies copies(pool, row, ring, block_begin, block_end);
  for (int i = 0; i < STAGES - 1; ++i) copies.Start();
  int stage = 0, sequence = 0;
  long long mine = block_begin + warp;  // the warp's next tile
  for (long long tile = block_begin; tile < block_end;) {
    // The group that the tile belongs to, and the stretch of it that is this block's.
    const Spot spot = SpotOf(row, tile, sequence);
    sequence = spot.sequence;
    const int tiles = row.first[sequence + 1] - row.first[sequence];
    const long long begin = tile - spot.token / kKeys, stop = min(begin + tiles, block_end);
    const int length = __ldg(lengths + sequence);
    const long long head = (long long)sequence * HEADS + spot.kv_head * kGroup;  // the first one
    Queries queries;
    LoadQueries(queries, q + head * HEAD_DIM);
    Sums sums = {};
#pragma unroll
    for (int h = 0; h < kHalves; ++h) sums.largest[h] = MinusInfinity();
    for (; mine < stop; mine += kWarps) {
      WaitCopies<STAGES - 2>();
      __syncwarp();  // this stage is there, and the one before is free
      copies.Start();
      AddTile(sums, queries, ring[stage], length - static_cast<int>(mine - begin) * kKeys);
      stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    StoreParts(parts, values, sums);
    __syncthreads();
    const long long share = ShareOf(blockIdx.x, tile != begin) * kGroup;
    Store(parts, values, tile == begin && stop == begin + tiles, out + head * HEAD_DIM,
          all_sums + share * HEAD_DIM, all_ends + share);
    __syncthreads();  // the sums are no longer read
    tile = stop;
  }
  WaitCopies<0>();
}

// A block a group, a thread a column: puts shares together. A group that one block had is already
// there; one without tokens becomes zeros.
extern "C" __global__ void __launch_bounds__(kThreads)
    combine(const int* lengths, const float* all_sums, const float2* all_ends, Half* out) {
  __shared__ Row row;
  if (threadIdx.x < 32) FillRow(row, lengths);
  __syncthreads();
  const int kv_head = blockIdx.x, sequence = blockIdx.y;
  const int tiles = row.first[sequence + 1] - row.first[sequence];
  const long long begin = (long long)row.first[sequence] * KV_HEADS + (long long)kv_head * tiles;
  const int first = tiles > 0 ? row.BlockOf(begin) : 0;
  const int last = tiles > 0 ? row.BlockOf(begin + tiles - 1) : -1;
  if (first == last) return;
  const long long head = (long long)sequence * HEADS + kv_head * kGroup;
  for (int at = threadIdx.x; at < kGroup * HEAD_DIM; at += kThreads) {
    float largest = MinusInfinity(), total = 0, sum = 0;
    for (int block = first; block <= last; ++block) {
      const long long begins = row.BeginOf(block);
      if (begins == row.BeginOf(block + 1)) continue;  // it has no tiles
      const long long share = ShareOf(block, begins > begin) * kGroup;
      const float2 its = all_ends[share + at / HEAD_DIM];
      const float more = all_sums[share * HEAD_DIM + at];
      const float now = fmaxf(largest, its.x);
      const float shrink = PowerOfTwo((largest - BaseOf(now)) * kScale);
      const float factor = PowerOfTwo((its.x - BaseOf(now)) * kScale);
      total = total * shrink + its.y * factor;
      sum = sum * shrink + more * factor;
      largest = now;
    }
    out[head * HEAD_DIM + at] = PackTwo(tiles > 0 ? sum / total : 0, 0);
  }
}
