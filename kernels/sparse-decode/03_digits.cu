// Sparse attention over a paged cache, a cut found by digits.
//
// Idea: a block a sequence has all scores in shared memory, and looks for the cut: it counts them
// by
//   their highest 11 bits in which they differ, finds the value of these bits at which TOP is
//   reached, and goes on with the next bits within it; three passes at most. Then each warp lists
//   the chosen tokens of a stretch, and knows from the counts of the warps before where they
//   belong.
// Prediction: 75% of the library: the choice takes 20 us, not 500.
// Sizes: latents of 512 and 64 numbers of position, indexers of 128 numbers; any heads, pages,
//   lengths and number of chosen tokens.
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
//! constant KEPT = min(TOKENS, 49152)
//! scratch  scores int32[batch * TOKENS]
//! launch   score_all grid=(ceil_div(TOKENS, 128), batch) block=(128) args=(index_q, index_weights, index_keys, page_table, lengths, scores)
//! launch   choose grid=(batch) block=(1024) shared=4*KEPT args=(scores, lengths, out1)
//! launch   attend grid=(HEADS, batch) block=(128) args=(q, cache, page_table, lengths, out1, out)
#define DEVICE __device__ __forceinline__
static_assert(LATENT == 512 && WIDTH == 576 && INDEX_DIM == 128);

using Half = unsigned short;  // the bits of a bfloat16
constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kListThreads = 1024, kListWarps = kListThreads / 32;
constexpr int kDigitBits = 11, kDigits = 1 << kDigitBits;
constexpr int kIndexChunks = INDEX_DIM / 16;  // of 16 bytes, in a key of the indexer
constexpr int kColumns = LATENT / kThreads;   // of a thread
// The scores times this are exponents of 2: 1 / sqrt(192) / ln(2).
constexpr float kScale = 0.104117546f;

DEVICE float MinusInfinity() { return __int_as_float(0xff800000); }

// bfloat16 is the upper half of a float.
DEVICE float ToFloat(Half bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

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

// The row of both pools that a sequence's token has.
DEVICE long long RowOf(const int* page_table, int sequence, int token) {
  const int page = page_table[(long long)sequence * PAGES_MAX + token / PAGE];
  return (long long)page * PAGE + token % PAGE;
}

// The scores of 128 tokens. All heads' queries are read from shared memory by all threads at once.
extern "C" __global__ void __launch_bounds__(kThreads)
    score_all(const int4* index_q, const signed char* index_weights, const int4* index_keys,
              const int* page_table, const int* lengths, int* scores) {
  __shared__ int4 queries[INDEX_HEADS][kIndexChunks];
  __shared__ int weights[INDEX_HEADS];
  const int sequence = blockIdx.y, token = blockIdx.x * kThreads + threadIdx.x;
  const int length = lengths[sequence];
  if (blockIdx.x * kThreads >= length) return;
  const long long first = (long long)sequence * INDEX_HEADS;
  for (int i = threadIdx.x; i < INDEX_HEADS * kIndexChunks; i += kThreads)
    queries[i / kIndexChunks][i % kIndexChunks] = index_q[first * kIndexChunks + i];
  for (int i = threadIdx.x; i < INDEX_HEADS; i += kThreads) weights[i] = index_weights[first + i];
  __syncthreads();
  if (token >= length) return;
  const int4* const row = index_keys + RowOf(page_table, sequence, token) * kIndexChunks;
  int4 key[kIndexChunks];
#pragma unroll
  for (int i = 0; i < kIndexChunks; ++i) key[i] = __ldg(row + i);
  int score = 0;
  for (int head = 0; head < INDEX_HEADS; ++head) {
    int dot = 0;
#pragma unroll
    for (int i = 0; i < kIndexChunks; ++i) {
      const int4 query = queries[head][i];
      dot = __dp4a(query.x, key[i].x, dot), dot = __dp4a(query.y, key[i].y, dot);
      dot = __dp4a(query.z, key[i].z, dot), dot = __dp4a(query.w, key[i].w, dot);
    }
    score += weights[head] * max(dot, 0);
  }
  scores[(long long)sequence * TOKENS + token] = score;
}

// The larger key is of the larger score.
DEVICE unsigned KeyOf(int score) { return static_cast<unsigned>(score) ^ 0x80000000; }

// The sum of `value` over the block's threads before this one; `total` becomes that of all.
DEVICE int SumBefore(int value, int& total) {
  __shared__ int of_warp[kListWarps];
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
  for (int i = 0; i < kListWarps; ++i) {
    if (i < warp) before += of_warp[i];
    total += of_warp[i];
  }
  __syncthreads();  // before the sums are written again
  return before;
}

// A sequence's keys: the first KEPT in shared memory, more of them in memory.
struct Keys {
  unsigned* kept;
  const int* scores;
  int length;

  DEVICE unsigned Of(int token) const { return token < KEPT ? kept[token] : KeyOf(scores[token]); }
};

// Where the choice ends: all larger keys are chosen, and the first `equal` tokens with this one.
struct Cut {
  unsigned key;
  int equal;
};

// The cut below which `count` keys lie; `count` is 1 at least, and not more than there are. Digits
// of 11 bits are looked at from the highest in which keys differ: keys are counted by their digit,
// and the digit in which the count is reached is where the next, lower digit is looked at.
DEVICE Cut FindCut(const Keys& keys, int count) {
  __shared__ int counts[kDigits];
  __shared__ unsigned low, high, digit;
  __shared__ int left;
  if (threadIdx.x == 0) low = ~0u, high = 0;
  __syncthreads();
  unsigned smallest = ~0u, largest = 0;
  for (int i = threadIdx.x; i < keys.length; i += kListThreads) {
    const unsigned key = keys.Of(i);
    smallest = min(smallest, key), largest = max(largest, key);
  }
  smallest = __reduce_min_sync(~0u, smallest), largest = __reduce_max_sync(~0u, largest);
  if (threadIdx.x % 32 == 0) atomicMin(&low, smallest), atomicMax(&high, largest);
  __syncthreads();
  unsigned first = low;  // of the keys that are looked at; they differ in their last `bits` bits
  int bits = 32 - __clz(high - low);
  while (bits > 0) {
    const int shift = max(bits - kDigitBits, 0);
    for (int i = threadIdx.x; i < kDigits; i += kListThreads) counts[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < keys.length; i += kListThreads) {
      const unsigned key = keys.Of(i), place = (key - first) >> shift;
      if (key >= first && place < 1u << (bits - shift)) atomicAdd(&counts[place], 1);
    }
    __syncthreads();
    // A thread has neighbouring digits, the first thread the largest.
    int mine[kDigits / kListThreads], sum = 0, total;
#pragma unroll
    for (int i = 0; i < kDigits / kListThreads; ++i)
      sum += mine[i] = counts[kDigits - 1 - i - kDigits / kListThreads * threadIdx.x];
    int above = SumBefore(sum, total);
#pragma unroll
    for (int i = 0; i < kDigits / kListThreads; ++i) {
      if (above < count && count <= above + mine[i])
        digit = kDigits - 1 - i - kDigits / kListThreads * threadIdx.x, left = count - above;
      above += mine[i];
    }
    __syncthreads();
    first += digit << shift, count = left, bits = shift;
  }
  return {first, count};
}

// Lists the chosen tokens in their order. A warp has a stretch of tokens: it counts its own first,
// and then knows where they belong.
DEVICE void List(const Keys& keys, Cut cut, int* chosen) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int stretch = (keys.length + kListThreads - 1) / kListThreads * 32;
  const int begin = min(warp * stretch, keys.length), end = min(begin + stretch, keys.length);
  int larger = 0, equal = 0, total;
  for (int i = begin + lane; i < end; i += 32) {
    const unsigned key = keys.Of(i);
    larger += key > cut.key, equal += key == cut.key;
  }
  larger = __reduce_add_sync(~0u, larger), equal = __reduce_add_sync(~0u, equal);
  // Of the warps before: lane 0 adds for its warp.
  larger = __shfl_sync(~0u, SumBefore(lane == 0 ? larger : 0, total), 0);
  equal = __shfl_sync(~0u, SumBefore(lane == 0 ? equal : 0, total), 0);
  const unsigned before = (1u << lane) - 1;
  for (int start = begin; start < end; start += 32) {
    const int token = start + lane;
    const unsigned key = token < end ? keys.Of(token) : 0;
    const unsigned larger_here = __ballot_sync(~0u, token < end && key > cut.key);
    const unsigned equal_here = __ballot_sync(~0u, token < end && key == cut.key);
    const int my_larger = larger + __popc(larger_here & before);
    const int my_equal = equal + __popc(equal_here & before);
    if (larger_here >> lane & 1 || (equal_here >> lane & 1 && my_equal < cut.equal))
      chosen[my_larger + min(my_equal, cut.equal)] = token;
    larger += __popc(larger_here), equal += __popc(equal_here);
  }
}

extern "C" __global__ void __launch_bounds__(kListThreads, 1)
    choose(const int* all_scores, const int* lengths, int* out1) {
  extern __shared__ __align__(128) unsigned char shared[];
  const int sequence = blockIdx.x, length = lengths[sequence], count = min(length, TOP);
  const int* const scores = all_scores + (long long)sequence * TOKENS;
  int* const chosen = out1 + (long long)sequence * TOP;
  const Keys keys = {reinterpret_cast<unsigned*>(shared), scores, length};
  for (int i = threadIdx.x; i < min(length, KEPT); i += kListThreads)
    keys.kept[i] = KeyOf(scores[i]);
  __syncthreads();
  if (count > 0) List(keys, FindCut(keys, count), chosen);
  for (int i = count + threadIdx.x; i < TOP; i += kListThreads) chosen[i] = -1;
}

// The largest value of the block, in every thread. Between two calls there is a barrier.
DEVICE float MaximumOfBlock(float value) {
  __shared__ float of_warp[kWarps];
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp) value = fmaxf(value, of_warp[warp]);
  return value;
}

// The same for the sum; called once.
DEVICE float SumOfBlock(float value) {
  __shared__ float of_warp[kWarps];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (int warp = 0; warp < kWarps; ++warp) value += of_warp[warp];
  return value;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    attend(const Half* q, const Half* cache, const int* page_table, const int* lengths,
           const int* out1, Half* out) {
  __shared__ float query[WIDTH], weight[kThreads];
  __shared__ long long place[kThreads];  // of a token's row
  const int head = blockIdx.x, sequence = blockIdx.y, thread = threadIdx.x;
  const int chosen = min(lengths[sequence], TOP);
  const long long row = (long long)sequence * HEADS + head;
  for (int i = thread; i < WIDTH; i += kThreads) query[i] = ToFloat(q[row * WIDTH + i]) * kScale;
  __syncthreads();

  float largest = MinusInfinity(), total = 0, sums[kColumns] = {};
  for (int start = 0; start < chosen; start += kThreads) {
    float score = MinusInfinity();
    if (start + thread < chosen) {
      const int token = out1[(long long)sequence * TOP + start + thread];
      place[thread] = RowOf(page_table, sequence, token) * WIDTH;
      const Half* const key = cache + place[thread];
      score = 0;
      for (int i = 0; i < WIDTH; ++i) score += query[i] * ToFloat(key[i]);
    }
    const float now = fmaxf(largest, MaximumOfBlock(score));
    const float shrink = PowerOfTwo(largest - now);
    weight[thread] = PowerOfTwo(score - now);
    total = total * shrink + weight[thread];
    for (int j = 0; j < kColumns; ++j) sums[j] *= shrink;
    largest = now;
    __syncthreads();
    const int count = min(kThreads, chosen - start);
    for (int i = 0; i < count; ++i)
      for (int j = 0; j < kColumns; ++j)
        sums[j] += weight[i] * ToFloat(cache[place[i] + j * kThreads + thread]);
    __syncthreads();  // before weights and places are written again
  }
  total = SumOfBlock(total);
  for (int j = 0; j < kColumns; ++j)
    out[row * LATENT + j * kThreads + thread] = PackTwo(chosen > 0 ? sums[j] / total : 0, 0);
}
