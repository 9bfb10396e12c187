// Sparse attention over a paged cache, one launch.
//
// Idea: a cluster of eight blocks has a sequence from its first key to its results. Each block
//   scores an eighth of the tokens, and keeps the scores; blocks read each other's counts of digits
//   and so find the same cut; each lists its chosen tokens in the memory of the block that attends
//   to them, an eighth of the chosen each. In the end each block puts together an eighth of the
//   columns.
// Prediction: 2000% of the library: 40 us for what four launches do in 55. With few sequences a
//   loss, as a sequence has eight multiprocessors.
// Sizes: latents of 512 and 64 numbers of position, indexers of 128 numbers; up to 64 of
//   their heads; any heads and
//   pages; tables of up to 300000 tokens, and up to 4096 chosen ones.
//! constant HEADS = q.size(1)
//! constant WIDTH = q.size(2)
//! constant LATENT = out.size(2)
//! constant INDEX_HEADS = index_q.size(1)
//! constant INDEX_DIM = index_q.size(2)
//! constant TOP = out1.size(1)
//! constant PAGE = cache.size(1)
//! constant PAGES_MAX = page_table.size(1)
//! constant TOKENS = PAGE * PAGES_MAX
//! dim      batch = q.size(0)
//! constant STAGES = 3
//! constant CLUSTER = 8
//! constant KEYS = ceil_div(TOKENS, CLUSTER * 32) * 32
//! constant SHARE = ceil_div(TOP, CLUSTER)
//! constant TILES = max(64 * 2 * WIDTH * STAGES, 4 * (3 * 2048 + KEYS))
//! launch   decode grid=(CLUSTER, batch) block=(256) cluster=(CLUSTER) shared=TILES+7680+4*SHARE args=(q, cache, index_q, index_weights, index_keys, page_table, lengths, out, out1)
#define DEVICE __device__ __forceinline__
static_assert(LATENT == 512 && WIDTH == 576 && INDEX_DIM == 128);

using Half = unsigned short;  // the bits of a bfloat16
constexpr int kWarps = 8, kThreads = 32 * kWarps;
constexpr int kHeads = 16, kTokens = 64;  // of a block, in a tile
constexpr int kChunks = WIDTH / 8;        // of 16 bytes, in a row
constexpr int kSteps = WIDTH / 16 / 2;    // of 16 numbers, in half a row
constexpr int kColumns = LATENT / kWarps;
constexpr int kRows = kTokens / kWarps;  // that a warp loads
// The scores times this are exponents of 2: 1 / sqrt(192) / ln(2).
constexpr float kScale = 0.104117546f;

constexpr int kIndexGroups = (INDEX_HEADS + 15) / 16;  // of 16 heads
static_assert(INDEX_HEADS <= 64);
constexpr int kDigitBits = 11, kDigits = 1 << kDigitBits, kPasses = 3;
constexpr int kEach = kDigits / kThreads;  // digits of a thread
constexpr int kGroups = (HEADS + kHeads - 1) / kHeads;
constexpr int kIndexChunks = INDEX_DIM / 16;  // of 16 bytes, in a key of the indexer

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

// `heads`: how many of the block's there are; the other rows are zeros.
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

DEVICE unsigned ClusterRank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// A barrier of all threads of the cluster. What a thread wrote before can be read by all after it.
DEVICE void ClusterBarrier() {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

// Writes to the place that `mine` has in the shared memory of the cluster's block `rank`.
DEVICE void StoreRemote(int* mine, unsigned rank, int value) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(mine));
  asm volatile(
      "{.reg .u32 there; mapa.shared::cluster.u32 there, %0, %1; "
      "st.shared::cluster.u32 [there], %2;}" ::"r"(address),
      "r"(rank), "r"(value)
      : "memory");
}

// Reads from there.
DEVICE float2 LoadRemotePair(const float2* mine, unsigned rank) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(mine));
  float2 pair;
  asm volatile(
      "{.reg .u32 there; mapa.shared::cluster.u32 there, %2, %3; "
      "ld.shared::cluster.v2.f32 {%0, %1}, [there];}"
      : "=f"(pair.x), "=f"(pair.y)
      : "r"(address), "r"(rank)
      : "memory");
  return pair;
}

DEVICE float4 LoadRemoteFour(const float4* mine, unsigned rank) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(mine));
  float4 four;
  asm volatile(
      "{.reg .u32 there; mapa.shared::cluster.u32 there, %4, %5; "
      "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];}"
      : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
      : "r"(address), "r"(rank)
      : "memory");
  return four;
}

DEVICE int4 LoadRemoteFour(const int4* mine, unsigned rank) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(mine));
  int4 four;
  asm volatile(
      "{.reg .u32 there; mapa.shared::cluster.u32 there, %4, %5; "
      "ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [there];}"
      : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w)
      : "r"(address), "r"(rank)
      : "memory");
  return four;
}

// The row of both pools that a sequence's token has.
DEVICE long long RowOf(const int* page_table, int sequence, int token) {
  const int page = page_table[(long long)sequence * PAGES_MAX + token / PAGE];
  return (long long)page * PAGE + token % PAGE;
}

// sum (16 x 8) += a (16 x 32) b^T (8 x 32), in whole numbers. Of the lane numbered 4 g + t, sum is
// rows g and g + 8, columns 2 t and 2 t + 1; a and b are four numbers of k a register.
DEVICE void MultiplyWhole(int (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The indexer's queries of a sequence in a warp: heads are rows. Lane 4 g + t has chunks t and t +
// 4 of rows g and g + 8 of each group, and the same chunks of keys: so each step multiplies the
// words numbered `step` of all chunks, in an order of its own that both sides share.
struct Indexer {
  unsigned queries[kIndexGroups][4][4];
  int weights[kIndexGroups][2];

  DEVICE Indexer(const uint4* index_q, const signed char* index_weights, int sequence) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 2 * kIndexGroups; ++i) {
      const int head = 8 * i + g;
      const long long row = (long long)sequence * INDEX_HEADS + min(head, INDEX_HEADS - 1);
      const uint4 low = index_q[row * kIndexChunks + t], high = index_q[row * kIndexChunks + 4 + t];
      const unsigned words[] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
      weights[i / 2][i % 2] = head < INDEX_HEADS ? index_weights[row] : 0;
#pragma unroll
      for (int j = 0; j < 8; ++j) queries[i / 2][j % 4][i % 2 + j / 4 * 2] = words[j];
    }
  }

  // Scores of eight tokens, of whose keys the lane has two chunks: of tokens 2 t and 2 t + 1, this
  // lane's part.
  DEVICE void Score(int (&score)[2], uint4 low, uint4 high) const {
    const unsigned b0[] = {low.x, low.y, low.z, low.w}, b1[] = {high.x, high.y, high.z, high.w};
    score[0] = score[1] = 0;
#pragma unroll
    for (int i = 0; i < kIndexGroups; ++i) {
      int dots[4] = {};
#pragma unroll
      for (int step = 0; step < 4; ++step)
        MultiplyWhole(dots, queries[i][step], b0[step], b1[step]);
#pragma unroll
      for (int c = 0; c < 2; ++c)
        score[c] += weights[i][0] * max(dots[c], 0) + weights[i][1] * max(dots[2 + c], 0);
    }
  }
};

// The place among 32 tokens of the one whose score a lane gets.
DEVICE int PlaceOfLane() {
  const int lane = threadIdx.x % 32;
  return lane / 8 % 2 * 8 + lane / 16 * 16 + lane % 4 * 2 + lane / 4 % 2;
}

// Adds up parts over the lanes with the same t, and gives each lane the sum of one token: half of
// the sums goes to each half of the lanes, three times.
DEVICE int SumOfLane(const int (&parts)[4][2]) {
  const int lane = threadIdx.x % 32;
  int four[4], two[2];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int low = parts[i / 2][i % 2], high = parts[2 + i / 2][i % 2];
    four[i] = (lane & 16 ? high : low) + __shfl_xor_sync(~0u, lane & 16 ? low : high, 16);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
    two[i] = (lane & 8 ? four[2 + i] : four[i]) +
             __shfl_xor_sync(~0u, lane & 8 ? four[i] : four[2 + i], 8);
  return (lane & 4 ? two[1] : two[0]) + __shfl_xor_sync(~0u, lane & 4 ? two[0] : two[1], 4);
}

// The score of one of the 32 tokens from `first` on, that at PlaceOfLane().
DEVICE int ScoreOfLane(const Indexer& indexer, const uint4* index_keys, const int* page_table,
                       int sequence, int first, int length) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  uint4 low[4], high[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int token = min(first + 8 * i + g, length - 1);
    const uint4* const row = index_keys + RowOf(page_table, sequence, token) * kIndexChunks;
    low[i] = __ldg(row + t), high[i] = __ldg(row + 4 + t);
  }
  int parts[4][2];
#pragma unroll
  for (int i = 0; i < 4; ++i) indexer.Score(parts[i], low[i], high[i]);
  return SumOfLane(parts);
}

// In shared memory, in the place of tiles, until the choice is made.
struct Choice {
  int counts[kPasses][kDigits];
  unsigned keys[KEYS];
};
static_assert(sizeof(Choice) <= TILES);

// In the place of tiles, once they are used: sums of the block's chosen tokens.
using SumsOfBlock = float[kHeads][LATENT];

// In shared memory, behind all these.
struct Kept {
  Exchange exchange;
  float2 ends[kHeads];  // the largest score and the sum of powers
  int of_warp[kWarps];
  unsigned low, high, digit;
  int left;
  int bounds[CLUSTER][2];  // of each block's keys
  int totals[CLUSTER][2];  // of each block: how many keys are larger than the cut's, or equal
  int rows[SHARE];         // of the pool, that this block attends to
};
static_assert(sizeof(Kept) <= 7680 + 4 * SHARE);

// The larger key is of the larger score.
DEVICE unsigned KeyOf(int score) { return static_cast<unsigned>(score) ^ 0x80000000; }

// The sum of `value` over the block's threads before this one; `total` becomes that of all.
DEVICE int SumBefore(Kept& kept, int value, int& total) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int sum = value;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) kept.of_warp[warp] = sum;
  __syncthreads();
  int before = sum - value;
  total = 0;
  for (int i = 0; i < kWarps; ++i) {
    if (i < warp) before += kept.of_warp[i];
    total += kept.of_warp[i];
  }
  __syncthreads();  // before the sums are written again
  return before;
}

// The block's part of a sequence: its tokens from `begin` to `end`.
struct Part {
  const int* table;
  int rank, length, begin, end;

  DEVICE Part(const int* page_table, const int* lengths, int sequence)
      : table(page_table + (long long)sequence * PAGES_MAX),
        rank(ClusterRank()),
        length(lengths[sequence]) {
    const int stretch = (length + 32 * CLUSTER - 1) / (32 * CLUSTER) * 32;
    begin = min(rank * stretch, length), end = min(begin + stretch, length);
  }
};

// Keys of the block's tokens, no digits counted yet, and the bounds of all blocks' keys everywhere.
DEVICE void Score(const Part& part, Choice& choice, Kept& kept, const Indexer& indexer,
                  const uint4* index_keys, const int* page_table) {
  for (int i = threadIdx.x; i < kPasses * kDigits; i += kThreads) choice.counts[0][i] = 0;
  if (threadIdx.x == 0) kept.low = ~0u, kept.high = 0;
  ClusterBarrier();  // and all blocks have begun, so that their memory may be written to
  unsigned smallest = ~0u, largest = 0;
  for (int first = part.begin + threadIdx.x / 32 * 32; first < part.end; first += kThreads) {
    const int score = ScoreOfLane(indexer, index_keys, page_table, blockIdx.y, first, part.length);
    const int token = first + PlaceOfLane();
    if (token < part.end) {
      const unsigned key = KeyOf(score);
      choice.keys[token - part.begin] = key;
      smallest = min(smallest, key), largest = max(largest, key);
    }
  }
  smallest = __reduce_min_sync(~0u, smallest), largest = __reduce_max_sync(~0u, largest);
  if (threadIdx.x % 32 == 0) atomicMin(&kept.low, smallest), atomicMax(&kept.high, largest);
  __syncthreads();
  if (threadIdx.x < CLUSTER) {
    StoreRemote(&kept.bounds[part.rank][0], threadIdx.x, kept.low);
    StoreRemote(&kept.bounds[part.rank][1], threadIdx.x, kept.high);
  }
  ClusterBarrier();
}

// Where the choice ends: all larger keys are chosen, and the first `equal` tokens with this one.
struct Cut {
  unsigned key;
  int equal;
};

// The cut below which `count` keys lie; `count` is 1 at least, and not more than there are. Digits
// of 11 bits are looked at from the highest in which keys differ: keys are counted by their digit,
// and the digit in which the count is reached is where the next, lower digit is looked at. All
// blocks find the same.
DEVICE Cut FindCut(const Part& part, Choice& choice, Kept& kept, int count) {
  unsigned first = ~0u, last = 0;  // of the keys that are looked at
#pragma unroll
  for (int i = 0; i < CLUSTER; ++i) {
    first = min(first, static_cast<unsigned>(kept.bounds[i][0]));
    last = max(last, static_cast<unsigned>(kept.bounds[i][1]));
  }
  int bits = 32 - __clz(last - first);  // the last ones, in which they differ
  for (int pass = 0; bits > 0; ++pass) {
    const int shift = max(bits - kDigitBits, 0);
    int(&counts)[kDigits] = choice.counts[pass];
    for (int i = threadIdx.x; i < part.end - part.begin; i += kThreads) {
      const unsigned key = choice.keys[i], place = (key - first) >> shift;
      if (key >= first && place < 1u << (bits - shift)) atomicAdd(&counts[place], 1);
    }
    ClusterBarrier();
    // A thread has neighbouring digits, the first thread the largest.
    const int digits = kDigits - kEach * (threadIdx.x + 1);
    int mine[kEach] = {}, sum = 0, total;
#pragma unroll
    for (int rank = 0; rank < CLUSTER; ++rank)
#pragma unroll
      for (int i = 0; i < kEach; i += 4) {
        const int4 four = LoadRemoteFour(reinterpret_cast<const int4*>(&counts[digits + i]), rank);
        mine[i] += four.x, mine[i + 1] += four.y, mine[i + 2] += four.z, mine[i + 3] += four.w;
      }
#pragma unroll
    for (int i = 0; i < kEach; ++i) sum += mine[i];
    int above = SumBefore(kept, sum, total);
#pragma unroll
    for (int i = kEach - 1; i >= 0; --i) {
      if (above < count && count <= above + mine[i])
        kept.digit = digits + i, kept.left = count - above;
      above += mine[i];
    }
    __syncthreads();
    first += kept.digit << shift, count = kept.left, bits = shift;
  }
  return {first, count};
}

// Lists the chosen tokens in their order, and their rows where they are attended to. A warp has a
// stretch of tokens: once all have counted theirs, it knows where they belong.
DEVICE void List(const Part& part, const Choice& choice, Kept& kept, Cut cut, int* chosen) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, keys = part.end - part.begin;
  const int stretch = (keys + kThreads - 1) / kThreads * 32;
  const int begin = min(warp * stretch, keys), end = min(begin + stretch, keys);
  int larger = 0, equal = 0, all_larger, all_equal;
  for (int i = begin + lane; i < end; i += 32)
    larger += choice.keys[i] > cut.key, equal += choice.keys[i] == cut.key;
  larger = __reduce_add_sync(~0u, larger), equal = __reduce_add_sync(~0u, equal);
  // Of the warps before: lane 0 adds for its warp.
  larger = __shfl_sync(~0u, SumBefore(kept, lane == 0 ? larger : 0, all_larger), 0);
  equal = __shfl_sync(~0u, SumBefore(kept, lane == 0 ? equal : 0, all_equal), 0);
  if (threadIdx.x < CLUSTER) {
    StoreRemote(&kept.totals[part.rank][0], threadIdx.x, all_larger);
    StoreRemote(&kept.totals[part.rank][1], threadIdx.x, all_equal);
  }
  ClusterBarrier();
  for (int i = 0; i < part.rank; ++i) larger += kept.totals[i][0], equal += kept.totals[i][1];
  const unsigned before = (1u << lane) - 1;
  for (int start = begin; start < end; start += 32) {
    const int i = start + lane, token = part.begin + i;
    const unsigned key = i < end ? choice.keys[i] : 0;
    const unsigned larger_here = __ballot_sync(~0u, i < end && key > cut.key);
    const unsigned equal_here = __ballot_sync(~0u, i < end && key == cut.key);
    const int my_larger = larger + __popc(larger_here & before);
    const int my_equal = equal + __popc(equal_here & before);
    if (larger_here >> lane & 1 || (equal_here >> lane & 1 && my_equal < cut.equal)) {
      const int at = my_larger + min(my_equal, cut.equal);
      chosen[at] = token;
      StoreRemote(&kept.rows[at % SHARE], at / SHARE,
                  part.table[token / PAGE] * PAGE + token % PAGE);
    }
    larger += __popc(larger_here), equal += __popc(equal_here);
  }
  ClusterBarrier();
}

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

// Adds the rows `places` of the pool.
DEVICE void AddTokens(Sums& sums, const Queries& queries, const uint4* rows, const int* places,
                      int count, Tile* ring, Exchange& exchange) {
  const int in_tile = threadIdx.x / 32 * kRows + threadIdx.x % kRows, t = threadIdx.x % 4;
  const int tiles = (count + kTokens - 1) / kTokens;
  const auto look_up = [&](int tile) {
    const int i = tile * kTokens + in_tile;
    return i < count ? places[i] : -1;
  };
  int to_load = 0, stage_to_load = 0, row = look_up(0);
  const auto load = [&] {
    if (to_load < tiles) LoadTile(ring[stage_to_load], rows, row);
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
    const int left = count - tile * kTokens;
    if (left < kTokens) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (8 * FirstOf() + 2 * t + i % 2 >= left) score[i] = MinusInfinity();
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

// Leaves the block's sums where the others can read them.
DEVICE void Leave(const Sums& sums, SumsOfBlock& of_block, Kept& kept) {
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  float totals[2];
  AddTotals(totals, sums, kept.exchange);  // its barriers say that tiles are no longer read
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = g + 8 * h;
    if (warp == 0 && t == 0) kept.ends[row] = make_float2(sums.largest[h], totals[h]);
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j)
      *reinterpret_cast<float2*>(&of_block[row][warp * kColumns + 8 * j + 2 * t]) =
          make_float2(sums.values[j][2 * h], sums.values[j][2 * h + 1]);
  }
}

// Puts the sums of all blocks together, in an eighth of the columns: a thread has four of a head's.
// `first` is where the group's results begin.
DEVICE void Combine(const SumsOfBlock& of_block, const Kept& kept, int rank, int heads,
                    Half* first) {
  constexpr int kAtOnce = LATENT / CLUSTER / 4;  // threads of a head
  static_assert(kAtOnce * kHeads == kThreads);
  const int head = threadIdx.x / kAtOnce;
  const int column = rank * (LATENT / CLUSTER) + threadIdx.x % kAtOnce * 4;
  float2 ends[CLUSTER];
  float4 sums[CLUSTER];
#pragma unroll
  for (int i = 0; i < CLUSTER; ++i) {
    ends[i] = LoadRemotePair(&kept.ends[head], i);
    sums[i] = LoadRemoteFour(reinterpret_cast<const float4*>(&of_block[head][column]), i);
  }
  float largest = MinusInfinity(), total = 0;
  float4 sum = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < CLUSTER; ++i) largest = fmaxf(largest, ends[i].x);
#pragma unroll
  for (int i = 0; i < CLUSTER; ++i) {
    // A block without a token has no largest score; nor has any, if the sequence has no token.
    const float factor = ends[i].y > 0 ? PowerOfTwo((ends[i].x - largest) * kScale) : 0;
    total += ends[i].y * factor;
    sum.x += sums[i].x * factor, sum.y += sums[i].y * factor;
    sum.z += sums[i].z * factor, sum.w += sums[i].w * factor;
  }
  const float factor = total > 0 ? 1 / total : 0;
  if (head < heads)
    *reinterpret_cast<uint2*>(first + head * LATENT + column) = {
        PackTwo(sum.x * factor, sum.y * factor), PackTwo(sum.z * factor, sum.w * factor)};
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    decode(const Half* q, const uint4* rows, const uint4* index_q, const signed char* index_weights,
           const uint4* index_keys, const int* page_table, const int* lengths, Half* out,
           int* out1) {
  extern __shared__ __align__(128) unsigned char shared[];
  Choice& choice = *reinterpret_cast<Choice*>(shared);
  SumsOfBlock& of_block = *reinterpret_cast<SumsOfBlock*>(shared);
  Kept& kept = *reinterpret_cast<Kept*>(shared + TILES);
  const int sequence = blockIdx.y;
  const Part part(page_table, lengths, sequence);
  const int count = min(part.length, TOP);
  int* const chosen = out1 + (long long)sequence * TOP;
  {
    const Indexer indexer(index_q, index_weights, sequence);
    Score(part, choice, kept, indexer, index_keys, page_table);
  }
  if (count > 0) List(part, choice, kept, FindCut(part, choice, kept, count), chosen);
  for (int i = count + part.rank * kThreads + threadIdx.x; i < TOP; i += CLUSTER * kThreads)
    chosen[i] = -1;
  const int mine = max(min(count - part.rank * SHARE, SHARE), 0);
  for (int group = 0; group < kGroups; ++group) {
    const int heads = min(kHeads, HEADS - group * kHeads);
    const long long first = (long long)sequence * HEADS + group * kHeads;
    Queries queries;
    LoadQueries(queries, q + first * WIDTH, heads);
    Sums sums = {};
    sums.largest[0] = sums.largest[1] = MinusInfinity();
    AddTokens(sums, queries, rows, kept.rows, mine, reinterpret_cast<Tile*>(shared), kept.exchange);
    Leave(sums, of_block, kept);
    ClusterBarrier();
    Combine(of_block, kept, part.rank, heads, out + first * LATENT);
    ClusterBarrier();  // before sums are written over, or the block ends
  }
}
