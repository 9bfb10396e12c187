// Sparse attention over a paged cache, one step after the other.
//
// Idea: none; the starting point. A thread a token and head of the indexer writes a dot; a thread a
//   token sums them up; then it counts the tokens before its own in the order of the choice, and is
//   chosen if they are fewer than TOP. A block a sequence lists the chosen ones, and a block a head
//   of queries attends to them, 128 at a time, by the online softmax.
// Prediction: 5% of the library. The keys of a warp lie 128 bytes apart, so that each byte costs an
//   access of its own, for each head anew.
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
//! scratch  dots int32[batch * INDEX_HEADS * TOKENS]
//! scratch  scores int32[batch * TOKENS]
//! scratch  marks int32[batch * TOKENS]
//! launch   multiply grid=(ceil_div(TOKENS, 128), INDEX_HEADS, batch) block=(128) args=(index_q, index_keys, page_table, lengths, dots)
//! launch   sum_up grid=(ceil_div(TOKENS, 128), batch) block=(128) args=(dots, index_weights, lengths, scores)
//! launch   mark grid=(ceil_div(TOKENS, 128), batch) block=(128) args=(scores, lengths, marks)
//! launch   list grid=(batch) block=(1024) args=(marks, lengths, out1)
//! launch   attend grid=(HEADS, batch) block=(128) args=(q, cache, page_table, lengths, out1, out)
#define DEVICE __device__ __forceinline__
static_assert(LATENT == 512 && WIDTH == 576 && INDEX_DIM == 128);

using Half = unsigned short;  // the bits of a bfloat16
constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kListThreads = 1024, kListWarps = kListThreads / 32;
constexpr int kColumns = LATENT / kThreads;  // of a thread
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

extern "C" __global__ void __launch_bounds__(kThreads)
    multiply(const signed char* index_q, const signed char* index_keys, const int* page_table,
             const int* lengths, int* dots) {
  const int head = blockIdx.y, sequence = blockIdx.z;
  const int token = blockIdx.x * kThreads + threadIdx.x;
  if (token >= lengths[sequence]) return;
  const long long query = (long long)sequence * INDEX_HEADS + head;
  const signed char* const key = index_keys + RowOf(page_table, sequence, token) * INDEX_DIM;
  int dot = 0;
  for (int i = 0; i < INDEX_DIM; ++i) dot += index_q[query * INDEX_DIM + i] * key[i];
  dots[query * TOKENS + token] = dot;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    sum_up(const int* dots, const signed char* index_weights, const int* lengths, int* scores) {
  const int sequence = blockIdx.y, token = blockIdx.x * kThreads + threadIdx.x;
  if (token >= lengths[sequence]) return;
  int score = 0;
  for (int head = 0; head < INDEX_HEADS; ++head) {
    const long long query = (long long)sequence * INDEX_HEADS + head;
    score += index_weights[query] * max(dots[query * TOKENS + token], 0);
  }
  scores[(long long)sequence * TOKENS + token] = score;
}

// 1 for the chosen tokens: fewer than TOP are before them, by score and then by position.
extern "C" __global__ void __launch_bounds__(kThreads)
    mark(const int* all_scores, const int* lengths, int* marks) {
  const int sequence = blockIdx.y, token = blockIdx.x * kThreads + threadIdx.x;
  const int length = lengths[sequence];
  if (token >= length) return;
  const int* const scores = all_scores + (long long)sequence * TOKENS;
  const int score = scores[token];
  int before = 0;
  for (int i = 0; i < length; ++i) before += scores[i] > score || (scores[i] == score && i < token);
  marks[(long long)sequence * TOKENS + token] = before < TOP;
}

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

extern "C" __global__ void __launch_bounds__(kListThreads)
    list(const int* marks, const int* lengths, int* out1) {
  const int sequence = blockIdx.x, length = lengths[sequence];
  int* const chosen = out1 + (long long)sequence * TOP;
  int carried = 0;
  for (int start = 0; start < length; start += kListThreads) {
    const int token = start + threadIdx.x;
    const int is_chosen = token < length ? marks[(long long)sequence * TOKENS + token] : 0;
    int total;
    const int before = SumBefore(is_chosen, total);
    if (is_chosen) chosen[carried + before] = token;
    carried += total;
  }
  for (int i = carried + threadIdx.x; i < TOP; i += kListThreads) chosen[i] = -1;
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
