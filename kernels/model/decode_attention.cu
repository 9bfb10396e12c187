// One step of decoding: queries and the new key are turned by their position, and meet the cache.
//
// Idea: a block takes a stretch of a head's tokens, for all queries of its group, so that keys and
//   values are read once. Eight lanes read a key in 16 bytes each, and keep their own largest
//   score, sum and weighted values; a warp has four keys on their way. The new token is one of the
//   stretch's tokens. The block of a head that is ready last puts the stretches together: it adds to
//   a counter, and sets it back to 0 for the next call. All of that waits for memory without loading
//   it, so other blocks meanwhile bring the next kernel's weights into the second cache.
// Prediction: 5 us with 512 tokens: 1 MB, and the way to memory three times; 2 us less for the
//   output projection, whose 8 MB come from the cache then.
// Measured: 177 us in 16 layers, where a block a head took 775 us (H200).
// Sizes: one row; heads of 16, 32, 64, 128 or 256; any groups and contexts. At most 2^31 elements of
// the next weights.
//! constant HEAD_DIM = keys.size(2)
//! constant KV_HEADS = keys.size(1)
//! constant CONTEXT = keys.size(0)
//! constant HEADS = qkv.size(1) / HEAD_DIM - 2 * KV_HEADS
//! constant NEXT_LINES = next_weight.size(0) * next_weight.size(1) / 64
//! tune     SPLITS = 16 8 32
//! tune     FETCHERS = 16 8 32
//! dim      group = HEADS / KV_HEADS
//! scratch  sums float[KV_HEADS * SPLITS * group * HEAD_DIM]
//! scratch  ends float[KV_HEADS * SPLITS * group * 2]
//! launch   attend grid=(SPLITS + FETCHERS, KV_HEADS) block=(128) shared=4*128/(HEAD_DIM/8)*group*(HEAD_DIM+2) args=(qkv, cosine, sine, keys, values, next_weight, sums, ends, out)
#define DEVICE __device__ __forceinline__

using Half = unsigned short;  // the bits of a bfloat16

constexpr int kThreads = 128;
constexpr int kLanes = HEAD_DIM / 8;          // of a key; each has 8 elements
constexpr int kTeams = kThreads / kLanes;     // of lanes, in a block; each takes token after token
constexpr int kGroup = HEADS / KV_HEADS;      // queries that share a key
constexpr int kTokens = CONTEXT + 1;          // the last one is new
static_assert(kLanes >= 2 && kLanes <= 32 && (kLanes & (kLanes - 1)) == 0);

// bfloat16 is the upper half of a float.
DEVICE void Unpack(uint4 pack, float (&values)[8]) {
  const unsigned pairs[] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = __uint_as_float(pairs[i] << 16);
    values[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000);
  }
}

// A number rounded to bfloat16.
DEVICE Half ToHalf(float value) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(value));
  return pair;
}

DEVICE float MinusInfinity() { return __int_as_float(0xff800000); }

// Chunk `chunk` of a head's row, turned: element i and element i + HEAD_DIM / 2 by one angle.
DEVICE void LoadTurned(float (&values)[8], const Half* row, const float* cosine, const float* sine,
                       int chunk) {
  const bool upper = chunk >= kLanes / 2;
  const int other = upper ? chunk - kLanes / 2 : chunk + kLanes / 2;
  const int angle = 8 * (upper ? other : chunk);
  float partner[8];
  Unpack(reinterpret_cast<const uint4*>(row)[chunk], values);
  Unpack(reinterpret_cast<const uint4*>(row)[other], partner);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    values[i] = values[i] * cosine[angle + i] + (upper ? partner[i] : -partner[i]) * sine[angle + i];
}

// What a team has of one query.
struct Sums {
  float largest, total;
  float values[8];
};

DEVICE void Add(Sums& sums, float score, const float (&value)[8]) {
  const float largest = fmaxf(sums.largest, score);
  const float shrink = exp2f(sums.largest - largest), weight = exp2f(score - largest);
  sums.largest = largest;
  sums.total = sums.total * shrink + weight;
#pragma unroll
  for (int i = 0; i < 8; ++i) sums.values[i] = sums.values[i] * shrink + weight * value[i];
}

// Asks for the next kernel's weights, lines of 128 bytes, by all blocks that have no tokens.
DEVICE void FetchNext(const uint4* next_weight) {
  constexpr int kStep = FETCHERS * KV_HEADS * kThreads;
  int line = ((blockIdx.x - SPLITS) * KV_HEADS + blockIdx.y) * kThreads + threadIdx.x;
  for (; line < NEXT_LINES; line += kStep)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(next_weight + line * 8ll));
}

// Counts the blocks of a head that are ready; 0 between calls.
__device__ int ready[KV_HEADS];

extern "C" __global__ void __launch_bounds__(kThreads)
    attend(const Half* qkv, const float* cosine, const float* sine, const uint4* keys,
           const uint4* values, const uint4* next_weight, float* all_sums, float2* all_ends,
           Half* out) {
  if (blockIdx.x >= SPLITS) return FetchNext(next_weight);
  extern __shared__ __align__(16) float shared[];
  __shared__ bool is_last;
  const int head = blockIdx.y, split = blockIdx.x;
  const int team = threadIdx.x / kLanes, chunk = threadIdx.x % kLanes;
  const Half* const new_key = qkv + (HEADS + head) * HEAD_DIM;
  const Half* const new_value = new_key + KV_HEADS * HEAD_DIM;
  const float scale = 1.4426950409f * rsqrtf(HEAD_DIM);  // scores are exponents of 2
  float query[kGroup][8];
  Sums sums[kGroup];
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    LoadTurned(query[j], qkv + (head * kGroup + j) * HEAD_DIM, cosine, sine, chunk);
    sums[j] = {MinusInfinity(), 0, {}};
  }
  const int begin = kTokens * split / SPLITS, end = kTokens * (split + 1) / SPLITS;
  for (int first = begin; first < end; first += kTeams) {
    // All lanes take part in shuffles; a team past the end works on the last token, in vain.
    const bool counts = first + team < end;
    const int token = counts ? first + team : end - 1;
    float key[8], value[8];
    if (token < CONTEXT) {
      const long long at = ((long long)token * KV_HEADS + head) * kLanes + chunk;
      const uint4 packed_key = keys[at], packed_value = values[at];
      Unpack(packed_key, key);
      Unpack(packed_value, value);
    } else {
      LoadTurned(key, new_key, cosine, sine, chunk);
      Unpack(reinterpret_cast<const uint4*>(new_value)[chunk], value);
    }
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      float score = 0;
#pragma unroll
      for (int i = 0; i < 8; ++i) score += query[j][i] * key[i];
#pragma unroll
      for (int step = kLanes / 2; step > 0; step /= 2) score += __shfl_xor_sync(~0u, score, step);
      if (counts) Add(sums[j], score * scale, value);
    }
  }
  // The teams' sums, [kTeams][kGroup] rows of HEAD_DIM, and their ends behind them.
  float* const ends = shared + kTeams * kGroup * HEAD_DIM;
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    const int row = team * kGroup + j;
#pragma unroll
    for (int i = 0; i < 8; ++i) shared[row * HEAD_DIM + 8 * chunk + i] = sums[j].values[i];
    if (chunk == 0) ends[2 * row] = sums[j].largest, ends[2 * row + 1] = sums[j].total;
  }
  __syncthreads();
  const long long share = ((long long)head * SPLITS + split) * kGroup;
  for (int at = threadIdx.x; at < kGroup * HEAD_DIM; at += kThreads) {
    const int j = at / HEAD_DIM;
    float largest = MinusInfinity(), total = 0, sum = 0;
    for (int i = 0; i < kTeams; ++i) largest = fmaxf(largest, ends[2 * (i * kGroup + j)]);
    for (int i = 0; i < kTeams; ++i) {
      const int row = i * kGroup + j;
      // A stretch may have no tokens, and then no largest score.
      const float factor = largest == MinusInfinity() ? 0 : exp2f(ends[2 * row] - largest);
      total += factor * ends[2 * row + 1];
      sum += factor * shared[row * HEAD_DIM + at % HEAD_DIM];
    }
    all_sums[share * HEAD_DIM + at] = sum;
    if (at % HEAD_DIM == 0) all_ends[share + j] = make_float2(largest, total);
  }
  __threadfence();  // the shares are written before the counter says so
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(&ready[head], 1) == SPLITS - 1;
    if (is_last) ready[head] = 0;
    __threadfence();  // the others' shares are read after the counter
  }
  __syncthreads();
  if (!is_last) return;
  for (int at = threadIdx.x; at < kGroup * HEAD_DIM; at += kThreads) {
    const int j = at / HEAD_DIM;
    float largest = MinusInfinity(), total = 0, sum = 0;
    for (int i = 0; i < SPLITS; ++i) {
      const long long place = ((long long)head * SPLITS + i) * kGroup;
      const float2 its = __ldcg(all_ends + place + j);
      if (its.x == MinusInfinity()) continue;
      const float now = fmaxf(largest, its.x);
      const float shrink = exp2f(largest - now), factor = exp2f(its.x - now);
      total = total * shrink + its.y * factor;
      sum = sum * shrink + __ldcg(all_sums + place * HEAD_DIM + at) * factor;
      largest = now;
    }
    out[head * kGroup * HEAD_DIM + at] = ToHalf(sum / total);
  }
}
