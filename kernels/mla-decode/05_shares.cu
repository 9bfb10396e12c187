// Latent attention over a paged cache, even shares.
//
// Idea: all tiles of all sequences are one row, cut into 132 equal shares, one a multiprocessor.
//   Where a share ends within a sequence, the block leaves its sums, largest scores and sums of
//   powers in memory, and a second launch puts them together. It finds by lengths alone which
//   blocks had a part, so nothing is counted.
// Prediction: 430% of the library with 128 equal sequences: 3% are gained by the last 4
//   multiprocessors, and lost by rings that run empty at the ends of sequences. With mixed lengths
//   or few sequences far ahead of rung 4.
// Measured: on an H100 141.8 us, 638.9% of the library, 74.8% of the speed of a copy (mixed
//   lengths).
// Sizes: latents of 512 and 64 numbers of position; any heads, pages and lengths.
//! constant HEADS = q.size(1)
//! constant WIDTH = q.size(2)
//! constant LATENT = out.size(2)
//! constant PAGE = cache.size(1)
//! constant PAGES_MAX = page_table.size(1)
//! constant BATCH = q.size(0)
//! constant STAGES = 3
//! constant BLOCKS = 132
//! scratch  sums float[BLOCKS * 2 * 16 * LATENT]
//! scratch  ends float[BLOCKS * 2 * 16 * 2]
//! launch   attention grid=(BLOCKS) block=(256) shared=64*2*WIDTH*STAGES args=(q, cache, page_table, lengths, sums, ends, out)
//! launch   combine grid=(HEADS, BATCH) block=(128) args=(lengths, sums, ends, out)
#define DEVICE __device__ __forceinline__
static_assert(LATENT == 512 && WIDTH == 576 && BATCH <= 1024);

using Half = unsigned short;  // the bits of a bfloat16
constexpr int kWarps = 8, kThreads = 32 * kWarps;
constexpr int kHeads = 16, kTokens = 64;  // of a group, in a tile
constexpr int kGroups = (HEADS + kHeads - 1) / kHeads;
constexpr int kChunks = WIDTH / 8;      // of 16 bytes, in a row
constexpr int kSteps = WIDTH / 16 / 2;  // of 16 numbers, in half a row
constexpr int kColumns = LATENT / kWarps;
constexpr int kRows = kTokens / kWarps;  // that a warp loads
// The scores times this are exponents of 2: 1 / sqrt(192) / ln(2).
constexpr float kScale = 0.104117546f;

using Tile = uint4[kTokens][kChunks];

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

// Half of each row of the queries: with warps 0 to 3 the first, with 4 to 7 the second.
using Queries = unsigned[kSteps][4];

// In shared memory, beside the tiles. Rows of `weights` have 16 bytes more than 64 numbers, so that
// eight rows are in all banks.
struct Exchange {
  float4 scores[kWarps][32];
  float largest[kWarps][kHeads];
  __align__(16) Half weights[kHeads][kTokens + 8];
};

// Of the rows g and g + 8 of a lane: the largest score of the block, and this lane's part of the
// sum of powers; of the columns of its warp, 2 t and 2 t + 1 of every eight, the weighted values.
struct Sums {
  float largest[2], total[2];
  float values[kColumns / 8][4];
};

// `heads`: how many of the group there are; the other rows are zeros.
DEVICE void LoadQueries(Queries& queries, const Half* first, int heads) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int half = threadIdx.x / 32 / 4 * (WIDTH / 2);
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = g + i % 2 * 8, column = half + 16 * step + i / 2 * 8 + 2 * t;
      queries[step][i] =
          row < heads ? *reinterpret_cast<const unsigned*>(first + row * WIDTH + column) : 0;
    }
}

// The scores of eight of a tile's tokens, those from 8 * FirstOf() on, in each warp. Two warps have
// 16 tokens, each half of the numbers; they give each other what is missing for eight tokens.
DEVICE int FirstOf() { return threadIdx.x / 32 % 4 * 2 + threadIdx.x / 32 / 4; }

DEVICE void Score(float (&score)[4], const Queries& queries, const Tile& tile, Exchange& exchange) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, half = warp / 4;
  const int row = warp % 4 * 16 + lane / 16 * 8 + lane % 8;
  float part[2][2][4] = {};  // of even and odd steps, of eight tokens and the next eight
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    unsigned blocks[4];  // eight tokens and the next eight, two blocks each
    LoadBlocks(blocks, &tile[row][Place(row, half * kChunks / 2 + 2 * step + lane / 8 % 2)]);
    Multiply(part[step % 2][0], queries[step], &blocks[0]);
    Multiply(part[step % 2][1], queries[step], &blocks[2]);
  }
#pragma unroll
  for (int j = 0; j < 2; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) part[0][j][i] += part[1][j][i];
  const float(&give)[4] = part[0][1], (&keep)[4] = part[0][0];
  if (half == 0) exchange.scores[warp + 4][lane] = make_float4(give[0], give[1], give[2], give[3]);
  if (half == 1) exchange.scores[warp - 4][lane] = make_float4(keep[0], keep[1], keep[2], keep[3]);
  __syncthreads();
  const float4 got = exchange.scores[warp][lane];
  const float others[4] = {got.x, got.y, got.z, got.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) score[i] = (half == 0 ? keep[i] : give[i]) + others[i];
}

// Scores become weights in shared memory: powers of the distance to the largest score so far; the
// sums shrink to fit.
DEVICE void Weigh(float (&score)[4], Sums& sums, Exchange& exchange) {
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float largest = fmaxf(score[2 * h], score[2 * h + 1]);
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    if (t == 0) exchange.largest[warp][g + 8 * h] = largest;
  }
  __syncthreads();
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = g + 8 * h;
    float largest = sums.largest[h];  // a tile has a token that counts, so it becomes a number
#pragma unroll
    for (int i = 0; i < kWarps; ++i) largest = fmaxf(largest, exchange.largest[i][row]);
    const float shrink = PowerOfTwo((sums.largest[h] - largest) * kScale);  // 0 at first
    const float low = PowerOfTwo((score[2 * h] - largest) * kScale);
    const float high = PowerOfTwo((score[2 * h + 1] - largest) * kScale);
    sums.largest[h] = largest;
    sums.total[h] = sums.total[h] * shrink + low + high;
    *reinterpret_cast<unsigned*>(&exchange.weights[row][8 * FirstOf() + 2 * t]) =
        PackTwo(low, high);
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j)
      sums.values[j][2 * h] *= shrink, sums.values[j][2 * h + 1] *= shrink;
  }
  __syncthreads();
}

// Adds the tile's latents, times their weights.
DEVICE void AddValues(Sums& sums, const Tile& tile, const Exchange& exchange) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int step = 0; step < kTokens / 16; ++step) {
    unsigned weights[4];
    LoadBlocks(weights, &exchange.weights[lane % 16][16 * step + lane / 16 * 8]);
#pragma unroll
    for (int j = 0; j < kColumns / 16; ++j) {
      unsigned blocks[4];  // eight columns and the next eight, two blocks each
      const int row = 16 * step + lane % 16;
      const int chunk = warp * (kColumns / 8) + 2 * j + lane / 16;
      LoadBlocksTurned(blocks, &tile[row][Place(row, chunk)]);
      Multiply(sums.values[2 * j], weights, &blocks[0]);
      Multiply(sums.values[2 * j + 1], weights, &blocks[2]);
    }
  }
}

// A sequence's rows of the pool.
struct Cache {
  const uint4* rows;  // row 0 of the pool
  const int* table;
  int length;

  // Of token `token`, -1 past the end; int holds it.
  DEVICE int RowOf(int token) const {
    return token < length ? table[token / PAGE] * PAGE + token % PAGE : -1;
  }
};

// Starts copies of the warp's eight rows of a tile; `row` of lane i is that of row i, -1 for zeros.
DEVICE void LoadTile(Tile& tile, const uint4* rows, int row) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kRows * kChunks / 32; ++i) {
    const int r = (32 * i + lane) / kChunks, c = (32 * i + lane) % kChunks;
    const int from = __shfl_sync(~0u, row, r), to = warp * kRows + r;
    CopyAsync(&tile[to][Place(to, c)], rows + (long long)max(from, 0) * kChunks + c, from >= 0);
  }
}

// Adds the tokens from `begin` to `end`.
DEVICE void AddTokens(Sums& sums, const Queries& queries, const Cache& cache, Tile* ring,
                      Exchange& exchange, int begin, int end) {
  const int in_tile = threadIdx.x / 32 * kRows + threadIdx.x % kRows, t = threadIdx.x % 4;
  const int tiles = (end - begin + kTokens - 1) / kTokens;
  const auto look_up = [&](int tile) {
    const int token = begin + tile * kTokens + in_tile;
    return token < end ? cache.RowOf(token) : -1;
  };
  int to_load = 0, stage_to_load = 0, row = look_up(0);
  const auto load = [&] {
    if (to_load < tiles) LoadTile(ring[stage_to_load], cache.rows, row);
    CommitCopies();  // an empty group past the end, so that counting groups counts tiles
    row = look_up(++to_load);
    stage_to_load = stage_to_load + 1 == STAGES ? 0 : stage_to_load + 1;
  };
  for (int i = 0; i < STAGES - 1; ++i) load();
  int stage = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    WaitCopies<STAGES - 2>();
    __syncthreads();  // this tile is there, and the stage of the one before is free
    load();
    float score[4];
    Score(score, queries, ring[stage], exchange);
    const int count = end - begin - tile * kTokens;
    if (count < kTokens) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (8 * FirstOf() + 2 * t + i % 2 >= count) score[i] = MinusInfinity();
    }
    Weigh(score, sums, exchange);
    AddValues(sums, ring[stage], exchange);
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
  WaitCopies<0>();
}

// The sums of powers of the lane's rows, of all warps.
DEVICE void AddTotals(float (&totals)[2], const Sums& sums, Exchange& exchange) {
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  __syncthreads();  // the largest scores are no longer read
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float total = sums.total[h];
    total += __shfl_xor_sync(~0u, total, 1);
    total += __shfl_xor_sync(~0u, total, 2);
    if (t == 0) exchange.largest[warp][g + 8 * h] = total;
  }
  __syncthreads();
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    totals[h] = 0;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) totals[h] += exchange.largest[i][g + 8 * h];
  }
}

// The row of all tiles: sequence by sequence, in each group by group of 16 heads. `first[b]` is the
// first tile of sequence b, if there were one group.
struct Row {
  int first[BATCH + 1];

  DEVICE long long Tiles() const { return (long long)first[BATCH] * kGroups; }
  // The first tile of a block. A tile belongs to the last block that begins at or before it.
  DEVICE long long BeginOf(int block) const { return Tiles() * block / BLOCKS; }
  DEVICE int BlockOf(long long tile) const {
    return static_cast<int>(((tile + 1) * BLOCKS - 1) / Tiles());
  }
};

// Called by one warp.
DEVICE void FillRow(Row& row, const int* lengths) {
  int before = 0;
#pragma unroll 4
  for (int start = 0; start < BATCH; start += 32) {
    const int sequence = start + threadIdx.x;
    int sum = sequence < BATCH ? (__ldg(lengths + sequence) + kTokens - 1) / kTokens : 0;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0u, sum, step);
      if (threadIdx.x >= step) sum += other;
    }
    if (sequence < BATCH) row.first[sequence + 1] = before + sum;
    before += __shfl_sync(~0u, sum, 31);
  }
  if (threadIdx.x == 0) row.first[0] = 0;
}

// The place of a block's sums in memory, in groups of 16 heads: of a group that it takes over from
// an earlier block (`takes_over`), or of one that it begins and does not end.
DEVICE int ShareOf(int block, bool takes_over) { return 2 * block + !takes_over; }

// The block's sums of a group: results if `whole`, or else numbers for `combine`.
DEVICE void Store(const Sums& sums, const float (&totals)[2], bool whole, int heads, Half* out,
                  float* share_sums, float2* share_ends) {
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = g + 8 * h;
    if (row >= heads) continue;
    const float factor = 1 / totals[h];
    if (!whole && warp == 0 && t == 0) share_ends[row] = make_float2(sums.largest[h], totals[h]);
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
      const int at = row * LATENT + warp * kColumns + 8 * j + 2 * t;
      const float low = sums.values[j][2 * h], high = sums.values[j][2 * h + 1];
      if (whole)
        *reinterpret_cast<unsigned*>(out + at) = PackTwo(low * factor, high * factor);
      else
        *reinterpret_cast<float2*>(share_sums + at) = make_float2(low, high);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention(const Half* q, const uint4* rows, const int* page_table, const int* lengths,
              float* all_sums, float2* all_ends, Half* out) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ Exchange exchange;
  __shared__ Row row;
  if (threadIdx.x < 32) FillRow(row, lengths);
  __syncthreads();
  const long long block_end = row.BeginOf(blockIdx.x + 1);
  int sequence = 0;
  for (long long tile = row.BeginOf(blockIdx.x); tile < block_end;) {
    // The group that the tile belongs to, and the stretch of it that is this block's.
    while ((long long)row.first[sequence + 1] * kGroups <= tile) ++sequence;
    const int tiles = row.first[sequence + 1] - row.first[sequence];
    const long long sequence_begin = (long long)row.first[sequence] * kGroups;
    const int group = static_cast<int>((tile - sequence_begin) / tiles);
    const long long begin = sequence_begin + (long long)group * tiles;
    const long long stop = min(begin + tiles, block_end);
    const int token = static_cast<int>(tile - begin) * kTokens;
    const int count = static_cast<int>(stop - tile);

    const int heads = min(kHeads, HEADS - group * kHeads);
    const long long head = (long long)sequence * HEADS + group * kHeads;
    const Cache cache = {rows, page_table + (long long)sequence * PAGES_MAX, lengths[sequence]};
    Queries queries;
    LoadQueries(queries, q + head * WIDTH, heads);
    Sums sums = {};
    sums.largest[0] = sums.largest[1] = MinusInfinity();
    AddTokens(sums, queries, cache, reinterpret_cast<Tile*>(shared), exchange, token,
              min(token + count * kTokens, cache.length));
    float totals[2];
    AddTotals(totals, sums, exchange);
    const long long share = ShareOf(blockIdx.x, tile != begin);
    Store(sums, totals, count == tiles, heads, out + head * LATENT,
          all_sums + share * kHeads * LATENT, all_ends + share * kHeads);
    __syncthreads();  // the ring and the totals are no longer read
    tile = stop;
  }
}

// A block a head, a thread four columns: puts shares together. What one block had is already there;
// a sequence without tokens becomes zeros.
extern "C" __global__ void __launch_bounds__(LATENT / 4)
    combine(const int* lengths, const float4* all_sums, const float2* all_ends, uint2* out) {
  __shared__ Row row;
  if (threadIdx.x < 32) FillRow(row, lengths);
  __syncthreads();
  const int head = blockIdx.x, sequence = blockIdx.y;
  const int tiles = row.first[sequence + 1] - row.first[sequence];
  const long long begin =
      (long long)row.first[sequence] * kGroups + (long long)(head / kHeads) * tiles;
  const int first = tiles > 0 ? row.BlockOf(begin) : 0;
  const int last = tiles > 0 ? row.BlockOf(begin + tiles - 1) : -1;
  if (first == last) return;
  float largest = MinusInfinity(), total = 0;
  float4 sum = {0, 0, 0, 0};
  for (int block = first; block <= last; ++block) {
    const long long begins = row.BeginOf(block);
    if (begins == row.BeginOf(block + 1)) continue;  // it has no tiles
    const long long at = (long long)ShareOf(block, begins > begin) * kHeads + head % kHeads;
    const float2 its = all_ends[at];
    const float4 more = all_sums[at * (LATENT / 4) + threadIdx.x];
    const float now = fmaxf(largest, its.x);
    const float shrink = PowerOfTwo((largest - now) * kScale);
    const float factor = PowerOfTwo((its.x - now) * kScale);
    total = total * shrink + its.y * factor;
    sum.x = sum.x * shrink + more.x * factor, sum.y = sum.y * shrink + more.y * factor;
    sum.z = sum.z * shrink + more.z * factor, sum.w = sum.w * shrink + more.w * factor;
    largest = now;
  }
  const float factor = tiles > 0 ? 1 / total : 0;
  out[((long long)sequence * HEADS + head) * (LATENT / 4) + threadIdx.x] = {
      PackTwo(sum.x * factor, sum.y * factor), PackTwo(sum.z * factor, sum.w * factor)};
}
