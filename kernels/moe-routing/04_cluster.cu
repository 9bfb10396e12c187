// Routing to experts, one launch by a cluster, for few tokens.
//
// Idea: with 512 tokens launches that follow each other cost more than the work. A cluster of eight
//   blocks has all tokens; each block gives its counts to the others by their shared memory, and
//   one barrier of the cluster later every place is known.
// Prediction: 1200% of the library with 512 tokens: 5 us, not 10. With many tokens a loss, as eight
//   multiprocessors do all.
// Sizes: up to 650 experts, which take 68 bytes of shared memory each; up to 32 of them chosen.
//! constant TOKENS = logits.size(0)
//! constant EXPERTS = logits.size(1)
//! constant TOP = out.size(1)
//! constant CLUSTER = 8
//! constant SHARE = ceil_div(TOKENS, CLUSTER)
//! launch   route grid=(CLUSTER) block=(1024) cluster=(CLUSTER) args=(logits, out, out1, out2, out3)
#define DEVICE __device__ __forceinline__

using Half = unsigned short;  // the bits of a bfloat16
constexpr int kThreads = 1024, kWarps = kThreads / 32;
constexpr int kEach = (EXPERTS + 31) / 32;  // experts of a lane
static_assert(TOP <= 32 && TOP <= EXPERTS && EXPERTS < 65536);

// bfloat16 is the upper half of a float.
DEVICE float ToFloat(Half bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

DEVICE float MinusInfinity() { return __int_as_float(0xff800000); }

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
constexpr float kLog2E = 1.4426950409f;

// The larger key is of the larger logit, then of the lower number; 0 is none.
DEVICE unsigned KeyOf(Half bits, int expert) {
  if (bits == 0x8000) bits = 0;  // -0 is as large as 0
  const unsigned ordered = bits & 0x8000 ? ~bits & 0xffff : bits | 0x8000;
  return ordered << 16 | (0xffff - expert);
}
DEVICE int ExpertOf(unsigned key) { return 0xffff - (key & 0xffff); }
DEVICE float LogitOf(unsigned key) {
  const unsigned ordered = key >> 16;
  return ToFloat(static_cast<Half>(ordered & 0x8000 ? ordered & 0x7fff : ~ordered));
}

// A warp's choice for a token: lane k gets the key of the k-th expert.
DEVICE unsigned Choose(const Half* row) {
  const int lane = threadIdx.x % 32;
  unsigned keys[kEach], chosen = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = lane + 32 * i;
    keys[i] = expert < EXPERTS ? KeyOf(__ldg(row + expert), expert) : 0;
  }
  for (int k = 0; k < TOP; ++k) {
    unsigned largest = keys[0];
#pragma unroll
    for (int i = 1; i < kEach; ++i) largest = max(largest, keys[i]);
    largest = __reduce_max_sync(~0u, largest);
    if (lane == k) chosen = largest;
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      if (keys[i] == largest) keys[i] = 0;
  }
  return chosen;
}

// Of lane k's choice among the warp's.
DEVICE float WeightOf(unsigned key) {
  const float largest = LogitOf(__shfl_sync(~0u, key, 0));
  const float power = threadIdx.x % 32 < TOP ? PowerOfTwo((LogitOf(key) - largest) * kLog2E) : 0;
  float sum = power;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  return power / sum;
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
  for (int i = 0; i < kWarps; ++i) {
    if (i < warp) before += of_warp[i];
    total += of_warp[i];
  }
  __syncthreads();  // before the sums are written again
  return before;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    route(const Half* logits, Half* out, int* out1, int* out2, int* out3) {
  __shared__ int counts[CLUSTER][EXPERTS];            // of all blocks
  __shared__ int next[EXPERTS];                       // the block's count, then its next place
  __shared__ unsigned char of_warp[kWarps][EXPERTS];  // how many each warp has now
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = ClusterRank();
  const int first = min(rank * SHARE, TOKENS), last = min(first + SHARE, TOKENS);
  for (int i = threadIdx.x; i < EXPERTS; i += kThreads) next[i] = 0;
  __syncthreads();
  for (int token = first + warp; token < last; token += kWarps) {
    const unsigned key = Choose(logits + (long long)token * EXPERTS);
    const float weight = WeightOf(key);
    if (lane < TOP) {
      out[token * TOP + lane] = PackTwo(weight, 0);
      out1[token * TOP + lane] = ExpertOf(key);
      atomicAdd(&next[ExpertOf(key)], 1);
    }
  }
  ClusterBarrier();  // all blocks have begun, so that their memory may be written to
  for (int i = threadIdx.x; i < CLUSTER * EXPERTS; i += kThreads)
    StoreRemote(&counts[rank][i % EXPERTS], i / EXPERTS, next[i % EXPERTS]);
  ClusterBarrier();
  int carried = 0;
  for (int start = 0; start < EXPERTS; start += kThreads) {
    const int expert = start + threadIdx.x;
    int all = 0, before_rank = 0, total;
    for (int i = 0; i < CLUSTER && expert < EXPERTS; ++i) {
      if (i < rank) before_rank += counts[i][expert];
      all += counts[i][expert];
    }
    const int before = carried + SumBefore(all, total);
    if (expert < EXPERTS) next[expert] = before + before_rank;
    if (expert < EXPERTS && rank == 0) out3[expert] = before;
    carried += total;
  }
  if (rank == 0 && threadIdx.x == 0) out3[EXPERTS] = carried;
  for (int start = first * TOP; start < last * TOP; start += kThreads) {
    for (int i = threadIdx.x; i < kWarps * EXPERTS; i += kThreads)
      of_warp[i / EXPERTS][i % EXPERTS] = 0;
    __syncthreads();
    const int i = start + threadIdx.x, expert = i < last * TOP ? out1[i] : -1;
    const unsigned same = __match_any_sync(~0u, expert);
    const int before = __popc(same & ((1u << lane) - 1));
    if (expert >= 0 && before == 0) of_warp[warp][expert] = __popc(same);
    __syncthreads();
    if (expert >= 0) {
      int at = next[expert] + before;
      for (int w = 0; w < warp; ++w) at += of_warp[w][expert];
      out2[at] = i;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < EXPERTS; e += kThreads)
      for (int w = 0; w < kWarps; ++w) next[e] += of_warp[w][e];
    __syncthreads();  // before the counts are written again
  }
}
