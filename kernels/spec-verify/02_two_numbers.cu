// Verifying drafted tokens, two numbers a row.
//
// Idea: of a row's softmax only its largest logit and the sum of powers are kept, in one pass of 16
//   bytes a load. Tokens are tested by their own logits, and p and q are computed anew for the one
//   row that the next token is drawn from.
// Prediction: 550% of the library: 148 MB once, at the speed of a copy, then 66 MB by one block a
//   sequence, which is half as fast.
// Measured: on an H100 90.83 us, 1100.6% of the library, 65.3% of the speed of a copy.
// Sizes: vocabularies of a multiple of 8.
//! constant DRAFTED = tokens.size(1)
//! constant VOCABULARY = noise.size(1)
//! dim      batch = tokens.size(0)
//! scratch  ends float[batch * (2 * DRAFTED + 1) * 2]
//! launch   sum_up grid=(2*DRAFTED+1, batch) block=(512) args=(target, draft, ends)
//! launch   choose grid=(batch) block=(512) args=(target, draft, ends, tokens, u, noise, out, out1)
#define DEVICE __device__ __forceinline__
static_assert(VOCABULARY % 8 == 0);

using Half = unsigned short;  // the bits of a bfloat16
using Key = unsigned long long;
constexpr int kWarps = 16, kThreads = 32 * kWarps;
constexpr int kRows = 2 * DRAFTED + 1;  // of a sequence: those of the target, then of the draft
constexpr int kPacks = VOCABULARY / 8;

// bfloat16 is the upper half of a float.
DEVICE float ToFloat(Half bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

DEVICE float MinusInfinity() { return __int_as_float(0xff800000); }

DEVICE float PowerOfTwo(float value) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(value));
  return power;
}
constexpr float kLog2E = 1.4426950409f;

// The best tokens of a thread that meets them in ascending order: by the residual, and by p.
// Weights are not negative; -1 is none.
struct Best {
  float residual = -1, all = -1;
  int residual_token = 0, all_token = 0;

  DEVICE void Add(float p, float q, float noise, int token) {
    const float left = (p - q) * noise, whole = p * noise;
    if (p > q && left > residual) residual = left, residual_token = token;
    if (whole > all) all = whole, all_token = token;
  }
};

// Of several threads: the larger key is of the larger weight, then of the smaller token; 0 is none.
struct Keys {
  Key residual, all;

  DEVICE static Key Of(float weight, int token) {
    if (weight < 0) return 0;
    return static_cast<Key>(__float_as_uint(weight)) << 32 | (0xffffffffu - token);
  }
  DEVICE void Add(Keys other) {
    residual = max(residual, other.residual), all = max(all, other.all);
  }
  // The next token. Nothing is left where no p is larger than its q.
  DEVICE long long Next(bool all_stand) const {
    return 0xffffffffu - static_cast<unsigned>(all_stand || residual == 0 ? all : residual);
  }
};

// Of the block, in thread 0.
DEVICE Keys KeysOfBlock(const Best& best) {
  __shared__ Keys of_warp[kWarps];
  Keys keys = {Keys::Of(best.residual, best.residual_token), Keys::Of(best.all, best.all_token)};
  for (int step = 16; step > 0; step /= 2)
    keys.Add({__shfl_xor_sync(~0u, keys.residual, step), __shfl_xor_sync(~0u, keys.all, step)});
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = keys;
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp) keys.Add(of_warp[warp]);
  return keys;
}

// The largest logit, and the sum of powers of the distances to it.
struct Ends {
  float largest, sum;

  DEVICE void Add(Ends other) {
    const float now = fmaxf(largest, other.largest);
    if (now == MinusInfinity()) return;  // both are of nothing
    sum = sum * PowerOfTwo((largest - now) * kLog2E) +
          other.sum * PowerOfTwo((other.largest - now) * kLog2E);
    largest = now;
  }
};

// What makes probabilities of a row's logits.
struct Row {
  float largest, factor;

  DEVICE explicit Row(Ends ends) : largest(ends.largest), factor(1 / ends.sum) {}
  DEVICE float ProbabilityOf(float logit) const {
    return PowerOfTwo((logit - largest) * kLog2E) * factor;
  }
};

DEVICE void Unpack(uint4 pack, float (&values)[8]) {
  const unsigned pairs[] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = __uint_as_float(pairs[i] << 16);
    values[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000);
  }
}

// Eight logits more.
DEVICE void AddPack(Ends& ends, uint4 pack) {
  float values[8];
  Unpack(pack, values);
  float now = ends.largest, sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) now = fmaxf(now, values[i]);
  const float base = -now * kLog2E;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += PowerOfTwo(values[i] * kLog2E + base);
  ends.sum = ends.sum * PowerOfTwo((ends.largest - now) * kLog2E) + sum;  // 0 at first
  ends.largest = now;
}

// Of the block, in every thread. Between two calls there is a barrier.
DEVICE Ends EndsOfBlock(Ends ends) {
  __shared__ Ends of_warp[kWarps];
  for (int step = 16; step > 0; step /= 2)
    ends.Add({__shfl_xor_sync(~0u, ends.largest, step), __shfl_xor_sync(~0u, ends.sum, step)});
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = ends;
  __syncthreads();
  ends = of_warp[0];
  for (int warp = 1; warp < kWarps; ++warp) ends.Add(of_warp[warp]);
  return ends;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    sum_up(const uint4* target, const uint4* draft, Ends* all_ends) {
  const int row = blockIdx.x, sequence = blockIdx.y;
  const uint4* const logits =
      row <= DRAFTED ? target + ((long long)sequence * (DRAFTED + 1) + row) * kPacks
                     : draft + ((long long)sequence * DRAFTED + row - DRAFTED - 1) * kPacks;
  Ends ends = {MinusInfinity(), 0};
#pragma unroll 4
  for (int i = threadIdx.x; i < kPacks; i += kThreads) AddPack(ends, logits[i]);
  ends = EndsOfBlock(ends);
  if (threadIdx.x == 0) all_ends[sequence * kRows + row] = ends;
}

// How many tokens of a sequence stand; `target` and `draft` are its own logits, `ends` its rows'.
DEVICE int CountStanding(const Half* target, const Half* draft, const Ends* ends,
                         const long long* tokens, const float* u) {
  int stand = DRAFTED;
#pragma unroll
  for (int i = DRAFTED - 1; i >= 0; --i) {
    const long long place = (long long)i * VOCABULARY + tokens[i];
    const float p = Row(ends[i]).ProbabilityOf(ToFloat(target[place]));
    const float q = Row(ends[DRAFTED + 1 + i]).ProbabilityOf(ToFloat(draft[place]));
    if (!(u[i] * q < p)) stand = i;
  }
  return stand;
}

// Of a pack of p and of q, if there is one, and the noise of its tokens.
DEVICE void AddPacks(Best& best, uint4 p_pack, Row p_row, uint4 q_pack, Row q_row, bool has_q,
                     const float4* noise, int pack) {
  float p[8], q[8];
  Unpack(p_pack, p), Unpack(q_pack, q);
  const float4 low = noise[2 * pack], high = noise[2 * pack + 1];
  const float noises[] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int i = 0; i < 8; ++i)
    best.Add(p_row.ProbabilityOf(p[i]), has_q ? q_row.ProbabilityOf(q[i]) : 0, noises[i],
             8 * pack + i);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    choose(const uint4* all_target, const uint4* all_draft, const Ends* all_ends,
           const long long* tokens, const float* u, const float4* all_noise, long long* out,
           long long* out1) {
  const int sequence = blockIdx.x;
  const uint4* const target = all_target + (long long)sequence * (DRAFTED + 1) * kPacks;
  const uint4* const draft = all_draft + (long long)sequence * DRAFTED * kPacks;
  const Ends* const ends = all_ends + sequence * kRows;
  const int stand =
      CountStanding(reinterpret_cast<const Half*>(target), reinterpret_cast<const Half*>(draft),
                    ends, tokens + sequence * DRAFTED, u + sequence * DRAFTED);
  const bool has_q = stand < DRAFTED;
  const uint4* const p = target + (long long)stand * kPacks;
  const uint4* const q = has_q ? draft + (long long)stand * kPacks : p;
  const float4* const noise = all_noise + (long long)sequence * (VOCABULARY / 4);
  const Row p_row(ends[stand]), q_row(ends[has_q ? DRAFTED + 1 + stand : stand]);
  Best best;
#pragma unroll 2
  for (int i = threadIdx.x; i < kPacks; i += kThreads)
    AddPacks(best, p[i], p_row, q[i], q_row, has_q, noise, i);
  const Keys keys = KeysOfBlock(best);
  if (threadIdx.x == 0) out[sequence] = stand, out1[sequence] = keys.Next(!has_q);
}
