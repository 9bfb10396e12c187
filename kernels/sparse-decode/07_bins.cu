// Sparse attention over a paged cache, the choice made where it is used.
//
// Idea: rung 5 has a launch of 16 blocks between scores and attention, in which 116 multiprocessors
//   rest: it looks for the smallest and the largest score, counts them by digits, twice or more,
//   and lists. Here the indexer counts its block's scores in 1024 bins as it writes them: a bin is
//   a sixteenth of an octave, so that its borders are known without looking at scores. A block of
//   attention has a stretch of a sequence's tokens. It adds up the bins of all blocks, finds the
//   one in which the choice ends, orders that bin's few scores alone, and lists the chosen of its
//   own stretch; how many are before it, bins and that bin's scores tell. The eight blocks of a
//   sequence do the same work at the same time. The indexer also looks up pages a step ahead.
// Prediction: 36 us, 2500% of the library, 44% of a copy: scores 10 us, the choice 6 instead of 15,
//   attention 12, putting together 3, and a launch less. Uneven stretches cost 1 us.
// Measured: on an H200 50.8 us, 17.9 times eager, 8.2 times compiled; rung 05 takes 55.3. By events:
//   scores 12.8 us, choice and attention 27.2, the sum of shares 2.7.
// Sizes: latents of 512 and 64 numbers of position, indexers of 128 numbers; up to 64 of
//   their heads; any heads, pages, lengths and number of chosen tokens.
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
//! constant GROUPS = ceil_div(HEADS, 16)
//! constant SPLITS = max(1, min(ceil_div(TOP, 64), 132 / (batch * GROUPS)))
//! constant INDEX_BLOCKS = ceil_div(TOKENS, 1024)
//! scratch  scores int32[batch * TOKENS]
//! scratch  bins int32[batch * INDEX_BLOCKS * 512]
//! scratch  share_sums float[batch * GROUPS * SPLITS * 16 * LATENT]
//! scratch  share_ends float[batch * GROUPS * SPLITS * 16 * 2]
//! launch   score_all grid=(INDEX_BLOCKS, batch) block=(256) args=(index_q, index_weights, index_keys, page_table, lengths, scores, bins)
//! launch   attend grid=(SPLITS, GROUPS, batch) block=(256) shared=64*2*WIDTH*STAGES args=(q, cache, page_table, lengths, scores, bins, out1, share_sums, share_ends)
//! launch   combine grid=(HEADS, batch) block=(LATENT / 4) args=(lengths, share_sums, share_ends, out)
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

constexpr int kIndexThreads = 256, kIndexTokens = 1024;  // of a block
constexpr int kIndexGroups = (INDEX_HEADS + 15) / 16;    // of 16 heads
static_assert(INDEX_HEADS <= 64);
constexpr int kDigitBits = 11, kDigits = 1 << kDigitBits;
constexpr int kBins = 1024;
static_assert(kBins == 4 * kThreads);
constexpr int kKept = 8192;                   // scores of one bin that are ordered in shared memory
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

// The row of the lane's token among the 32 from `first` on; int holds it. Tokens past the end take
// the last one.
DEVICE int LookUp(const int* page_table, int sequence, int first, int length) {
  const int token = min(first + static_cast<int>(threadIdx.x) % 32, length - 1);
  return static_cast<int>(RowOf(page_table, sequence, token));
}

// ---- Bins of scores, in ascending order: half of them for each sign, 16 for an octave.

// `size` is not negative.
DEVICE int StepOf(int size) {
  if (size < 1) return 0;
  const int octave = 31 - __clz(size);
  return 16 * octave + ((octave >= 4 ? size >> (octave - 4) : size << (4 - octave)) & 15);
}

// The smallest size of a step that is not before this one.
DEVICE unsigned SizeOf(int step) {
  const int octave = step / 16;
  const unsigned mantissa = 16 + step % 16;
  if (step == 0) return 0;
  return octave >= 4 ? mantissa << (octave - 4)
                     : (mantissa + (1u << (4 - octave)) - 1) >> (4 - octave);
}

DEVICE int BinOf(int score) {
  return score >= 0 ? kBins / 2 + StepOf(score) : kBins / 2 - 1 - StepOf(-score);
}

// The scores of kIndexTokens tokens of a sequence, and how many are in each bin, two in a word.
extern "C" __global__ void __launch_bounds__(kIndexThreads, 2)
    score_all(const uint4* index_q, const signed char* index_weights, const uint4* index_keys,
              const int* page_table, const int* lengths, int* scores, unsigned* bins) {
  __shared__ int counts[kBins];
  const int sequence = blockIdx.y, length = lengths[sequence];
  const int begin = blockIdx.x * kIndexTokens, end = min(begin + kIndexTokens, length);
  if (begin >= length) return;
  int first = begin + threadIdx.x / 32 * 32;
  int row = LookUp(page_table, sequence, first, length);
  const Indexer indexer(index_q, index_weights, sequence);
  for (int i = threadIdx.x; i < kBins; i += kIndexThreads) counts[i] = 0;
  __syncthreads();
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (; first < end; first += kIndexThreads) {
    uint4 low[4], high[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const long long at = (long long)__shfl_sync(~0u, row, 8 * i + g) * kIndexChunks + t;
      low[i] = __ldg(index_keys + at), high[i] = __ldg(index_keys + at + 4);
    }
    row = LookUp(page_table, sequence, first + kIndexThreads, length);
    int parts[4][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) indexer.Score(parts[i], low[i], high[i]);
    const int score = SumOfLane(parts), token = first + PlaceOfLane();
    if (token < end) {
      scores[(long long)sequence * TOKENS + token] = score;
      atomicAdd(&counts[BinOf(score)], 1);
    }
  }
  __syncthreads();
  unsigned* const mine = bins + ((long long)sequence * INDEX_BLOCKS + blockIdx.x) * (kBins / 2);
  for (int i = threadIdx.x; i < kBins / 2; i += kIndexThreads)
    mine[i] = counts[2 * i] | counts[2 * i + 1] << 16;
}

// ---- The choice.

// The larger key is of the larger score.
DEVICE unsigned KeyOf(int score) { return static_cast<unsigned>(score) ^ 0x80000000; }

// The sum of `value` over the block's threads before this one; `total` becomes that of all.
DEVICE int SumBefore(int value, int& total) {
  __shared__ int of_warp[kWarps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int sum = value;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) of_warp[warp] = sum;
  __syncthreads();
  int before = sum - value;
  total = 0;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) {
    if (i < warp) before += of_warp[i];
    total += of_warp[i];
  }
  __syncthreads();  // before the sums are written again
  return before;
}

// What the choice needs of shared memory, where tiles come later.
struct Desk {
  int counts[kDigits];
  unsigned keys[kKept];  // of the bin in which the choice ends
  int tokens[kKept];
};

// Where the choice ends: all larger keys are chosen, and the first `equal` tokens with this one.
struct Cut {
  unsigned key;
  int equal;
};

// A block's stretch of a sequence's tokens; `rank`: how many tokens before it are chosen, and then
// `count` of its own.
struct Stretch {
  int begin, end, rank, count;
};

// The cut below which `count` of the keys from `first` on lie that differ from it in their last
// `bits` bits; `count` is 1 at least, and not more than there are. key_of(i) gives `keys` keys,
// others among them. Digits of 11 bits are looked at from the highest: keys are counted by their
// digit, and the digit in which the count is reached is where the next, lower digit is looked at.
template <typename Keys>
DEVICE Cut FindCut(const Keys& key_of, int keys, unsigned first, int bits, int count, int* counts) {
  constexpr int kEach = kDigits / kThreads;
  __shared__ unsigned digit;
  __shared__ int left;
  while (bits > 0) {
    const int shift = max(bits - kDigitBits, 0);
    for (int i = threadIdx.x; i < kDigits; i += kThreads) counts[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < keys; i += kThreads) {
      const unsigned key = key_of(i), place = (key - first) >> shift;
      if (key >= first && place < 1u << (bits - shift)) atomicAdd(&counts[place], 1);
    }
    __syncthreads();
    // A thread has neighbouring digits, the first thread the largest.
    int mine[kEach], sum = 0, total;
#pragma unroll
    for (int i = 0; i < kEach; ++i) sum += mine[i] = counts[kDigits - 1 - i - kEach * threadIdx.x];
    int above = SumBefore(sum, total);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (above < count && count <= above + mine[i])
        digit = kDigits - 1 - i - kEach * threadIdx.x, left = count - above;
      above += mine[i];
    }
    __syncthreads();
    first += digit << shift, count = left, bits = shift;
    __syncthreads();  // before the digit is written again
  }
  return {first, count};
}

// Lists the chosen tokens of a stretch in their order, behind those before it: `larger` ones, and
// `equal` ones as far as they are chosen. A warp has a stretch of its own: it counts first, and
// then knows where they belong.
DEVICE void List(Stretch& stretch, const int* scores, Cut cut, int larger, int equal, int* chosen) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int tokens = (stretch.end - stretch.begin + kThreads - 1) / kThreads * 32;
  const int begin = min(stretch.begin + warp * tokens, stretch.end);
  const int end = min(begin + tokens, stretch.end);
  int more = 0, same = 0, all_more, all_same;
#pragma unroll 4
  for (int i = begin + lane; i < end; i += 32) {
    const unsigned key = KeyOf(scores[i]);
    more += key > cut.key, same += key == cut.key;
  }
  more = __reduce_add_sync(~0u, more), same = __reduce_add_sync(~0u, same);
  // Of the warps before: lane 0 adds for its warp.
  more = __shfl_sync(~0u, SumBefore(lane == 0 ? more : 0, all_more), 0);
  same = __shfl_sync(~0u, SumBefore(lane == 0 ? same : 0, all_same), 0);
  stretch.rank = larger + min(equal, cut.equal);
  stretch.count = larger + all_more + min(equal + all_same, cut.equal) - stretch.rank;
  larger += more, equal += same;
  const unsigned before = (1u << lane) - 1;
  for (int start = begin; start < end; start += 32) {
    const int token = start + lane;
    const unsigned key = token < end ? KeyOf(scores[token]) : 0;
    const unsigned larger_here = __ballot_sync(~0u, token < end && key > cut.key);
    const unsigned equal_here = __ballot_sync(~0u, token < end && key == cut.key);
    const int my_larger = larger + __popc(larger_here & before);
    const int my_equal = equal + __popc(equal_here & before);
    if (larger_here >> lane & 1 || (equal_here >> lane & 1 && my_equal < cut.equal))
      chosen[my_larger + min(my_equal, cut.equal)] = token;
    larger += __popc(larger_here), equal += __popc(equal_here);
  }
}

// Chooses TOP of `length` tokens, which are more, and lists those of the stretch, whose blocks of
// the indexer begin with number `first_block`. `bins`: of the sequence's first block.
DEVICE void Choose(Stretch& stretch, const int* scores, const uint2* bins, int length,
                   int first_block, Desk& desk, int* chosen) {
  __shared__ int cut_bin, needed, in_bin, stored;
  const int thread = threadIdx.x, blocks = (length + kIndexTokens - 1) / kIndexTokens;
  // A thread has four neighbouring bins, the first thread the largest.
  const int low_bin = kBins - 4 - 4 * thread;
  int all[4] = {}, before[4] = {};
#pragma unroll 8
  for (int block = 0; block < blocks; ++block) {
    const uint2 four = bins[block * (kBins / 4) + low_bin / 4];
    const int counts[4] = {static_cast<int>(four.x & 0xffff), static_cast<int>(four.x >> 16),
                           static_cast<int>(four.y & 0xffff), static_cast<int>(four.y >> 16)};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      all[i] += counts[i];
      if (block < first_block) before[i] += counts[i];
    }
  }
  int total, above = SumBefore(all[0] + all[1] + all[2] + all[3], total);
#pragma unroll
  for (int i = 3; i >= 0; --i) {
    if (above < TOP && TOP <= above + all[i])
      cut_bin = low_bin + i, needed = TOP - above, in_bin = all[i], stored = 0;
    above += all[i];
  }
  __syncthreads();
  const int step = cut_bin >= kBins / 2 ? cut_bin - kBins / 2 : kBins / 2 - 1 - cut_bin;
  const unsigned size = SizeOf(step), next = SizeOf(step + 1);
  // The bin's smallest key, and how many it may have: a power of two.
  const unsigned first = KeyOf(cut_bin >= kBins / 2 ? size : 1 - next);
  const unsigned width = cut_bin >= kBins / 2 ? next - size : next - max(size, 1u);
  const bool is_whole = needed == in_bin, is_kept = in_bin <= kKept;
  int larger = 0, equal = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (low_bin + i > cut_bin || (is_whole && low_bin + i == cut_bin)) larger += before[i];
  Cut cut = {first, 1 << 30};
  if (!is_whole) {
    const auto key_of = [&](int i) { return KeyOf(scores[i]); };
    const auto kept = [&](int i) { return desk.keys[i]; };
    if (is_kept) {
#pragma unroll 16
      for (int i = thread; i < length; i += kThreads) {
        const unsigned key = key_of(i);
        if (key - first >= width) continue;
        const int at = atomicAdd(&stored, 1);
        desk.keys[at] = key, desk.tokens[at] = i;
      }
      __syncthreads();
    }
    const int bits = 32 - __clz(width - 1);
    cut = is_kept ? FindCut(kept, in_bin, first, bits, needed, desk.counts)
                  : FindCut(key_of, length, first, bits, needed, desk.counts);
    for (int i = thread; i < (is_kept ? in_bin : stretch.begin); i += kThreads) {
      const unsigned key = is_kept ? kept(i) : key_of(i);
      if (key - first >= width || (is_kept && desk.tokens[i] >= stretch.begin)) continue;
      larger += key > cut.key, equal += key == cut.key;
    }
  }
  SumBefore(larger, total);
  larger = total;
  SumBefore(equal, total);
  equal = total;
  List(stretch, scores, cut, larger, equal, chosen);
}

// A sequence's chosen rows of the pool.
struct Chosen {
  const uint4* rows;  // row 0 of the pool
  const int* table;
  const int* tokens;

  // Of the chosen token numbered `i`; int holds it.
  DEVICE int RowOf(int i) const {
    const int token = tokens[i];
    return table[token / PAGE] * PAGE + token % PAGE;
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

// Adds the chosen tokens from `begin` to `end`.
DEVICE void AddTokens(Sums& sums, const Queries& queries, const Chosen& chosen, Tile* ring,
                      Exchange& exchange, int begin, int end) {
  const int in_tile = threadIdx.x / 32 * kRows + threadIdx.x % kRows, t = threadIdx.x % 4;
  const int tiles = (end - begin + kTokens - 1) / kTokens;
  const auto look_up = [&](int tile) {
    const int i = begin + tile * kTokens + in_tile;
    return i < end ? chosen.RowOf(i) : -1;
  };
  int to_load = 0, stage_to_load = 0, row = look_up(0);
  const auto load = [&] {
    if (to_load < tiles) LoadTile(ring[stage_to_load], chosen.rows, row);
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

// A block 16 heads and a stretch of a sequence, whose sums it leaves in memory.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attend(const Half* q, const uint4* rows, const int* page_table, const int* lengths,
           const int* all_scores, const uint2* all_bins, int* out1, float* all_sums,
           float2* all_ends) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ Exchange exchange;
  static_assert(sizeof(Desk) <= STAGES * sizeof(Tile));
  const int sequence = blockIdx.z, group = blockIdx.y, share = blockIdx.x;
  const int heads = min(kHeads, HEADS - group * kHeads), length = lengths[sequence];
  Queries queries;
  LoadQueries(queries, q + ((long long)sequence * HEADS + group * kHeads) * WIDTH, heads);
  const int blocks = (length + kIndexTokens - 1) / kIndexTokens;
  const int first_block = blocks * share / SPLITS;
  Stretch stretch;
  stretch.begin = first_block * kIndexTokens;
  stretch.end = min(blocks * (share + 1) / SPLITS * kIndexTokens, length);
  int* const list = out1 + (long long)sequence * TOP;
  if (length > TOP) {
    Choose(stretch, all_scores + (long long)sequence * TOKENS,
           all_bins + (long long)sequence * INDEX_BLOCKS * (kBins / 4), length, first_block,
           *reinterpret_cast<Desk*>(shared), list);
  } else {
    stretch.rank = stretch.begin, stretch.count = stretch.end - stretch.begin;
    for (int i = stretch.begin + threadIdx.x; i < stretch.end; i += kThreads) list[i] = i;
  }
  if (share == 0)
    for (int i = length + threadIdx.x; i < TOP; i += kThreads) list[i] = -1;
  const long long first = (((long long)sequence * GROUPS + group) * SPLITS + share) * kHeads;
  if (stretch.count == 0) {
    if (threadIdx.x < kHeads) all_ends[first + threadIdx.x] = make_float2(MinusInfinity(), 0);
    return;
  }
  __syncthreads();  // the list is written, and the desk is no longer read
  const Chosen chosen = {rows, page_table + (long long)sequence * PAGES_MAX, list};
  Sums sums = {};
  sums.largest[0] = sums.largest[1] = MinusInfinity();
  AddTokens(sums, queries, chosen, reinterpret_cast<Tile*>(shared), exchange, stretch.rank,
            stretch.rank + stretch.count);
  float totals[2];
  AddTotals(totals, sums, exchange);
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const long long row = first + g + 8 * h;
    if (warp == 0 && t == 0) all_ends[row] = make_float2(sums.largest[h], totals[h]);
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j)
      *reinterpret_cast<float2*>(all_sums + row * LATENT + warp * kColumns + 8 * j + 2 * t) =
          make_float2(sums.values[j][2 * h], sums.values[j][2 * h + 1]);
  }
}

// A block a head, a thread four columns: puts shares together. A sequence without tokens becomes
// zeros.
extern "C" __global__ void __launch_bounds__(LATENT / 4)
    combine(const int* lengths, const float4* all_sums, const float2* all_ends, uint2* out) {
  const int head = blockIdx.x, sequence = blockIdx.y, count = min(lengths[sequence], TOP);
  const long long first =
      ((long long)sequence * GROUPS + head / kHeads) * SPLITS * kHeads + head % kHeads;
  float largest = MinusInfinity(), total = 0;
  float4 sum = {0, 0, 0, 0};
#pragma unroll 8
  for (int share = 0; share < SPLITS; ++share)
    largest = fmaxf(largest, all_ends[first + share * kHeads].x);
#pragma unroll 4
  for (int share = 0; share < SPLITS; ++share) {
    const long long row = first + share * kHeads;
    const float2 ends = all_ends[row];
    if (ends.y == 0) continue;  // none of its tokens is chosen
    const float4 more = all_sums[row * (LATENT / 4) + threadIdx.x];
    const float factor = PowerOfTwo((ends.x - largest) * kScale);
    total += ends.y * factor;
    sum.x += more.x * factor, sum.y += more.y * factor;
    sum.z += more.z * factor, sum.w += more.w * factor;
  }
  const float factor = count > 0 ? 1 / total : 0;
  out[((long long)sequence * HEADS + head) * (LATENT / 4) + threadIdx.x] = {
      PackTwo(sum.x * factor, sum.y * factor), PackTwo(sum.z * factor, sum.w * factor)};
}
