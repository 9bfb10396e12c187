// Attention over a paged cache, rows ahead in a ring of shared memory.
//
// Idea: rows come by cp.async, three steps ahead, so that the bytes on their way need no registers.
//   A thread copies just the 16 bytes that it uses itself: it waits for its own copies, and for no
//   other thread. A row's place in the cache is looked up a step before its copy starts.
// Prediction: 450% of the library: 96 KB on their way on each SM, and arithmetic that is no longer
//   behind the loads.
// Measured: on an H100 204.2 us, 300.6% of the library, 86.6% of the speed of a copy (32
//   sequences of 4096 tokens); 145.1 us, 370.2% of the library, 64.9% of the speed of a copy
//   (mixed lengths).
// Sizes: heads of 64 or 128; any groups, pages and lengths. Rows of the pool are counted by int.
//! constant HEADS = q.size(1)
//! constant HEAD_DIM = q.size(2)
//! constant PAGE = k_cache.size(1)
//! constant KV_HEADS = k_cache.size(2)
//! constant PAGES_MAX = page_table.size(1)
//! dim      batch = q.size(0)
//! tune     STAGES = 4 3
//! dim      ring_bytes = max(16384 * STAGES, 8192 * HEADS / KV_HEADS)
//! launch   attention grid=(KV_HEADS, batch) block=(256) shared=ring_bytes args=(q, k_cache, v_cache, page_table, lengths, out)
#define DEVICE __device__ __forceinline__
static_assert(HEAD_DIM == 64 || HEAD_DIM == 128);

using Half = unsigned short;  // the bits of a bfloat16
constexpr int kThreads = 256;
constexpr int kLanes = HEAD_DIM / 8, kTeams = kThreads / kLanes;
constexpr int kAhead = 2;               // rows of keys, and of values, of a team in a step
constexpr int kStep = kTeams * kAhead;  // tokens
constexpr int kGroup = HEADS / KV_HEADS;
// The scores times this are exponents of 2.
constexpr float kScale = 1.4426950409f * (HEAD_DIM == 64 ? 0.125f : 0.0883883476f);

DEVICE float MinusInfinity() { return __int_as_float(0xff800000); }

// bfloat16 is the upper half of a float.
DEVICE void Unpack(uint4 pack, float (&values)[8]) {
  const unsigned pairs[] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = __uint_as_float(pairs[i] << 16);
    values[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000);
  }
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

// What a thread uses in a step.
struct Stage {
  uint4 key[kAhead][kThreads], value[kAhead][kThreads];
};

// Of one head of queries in one team: eight elements a lane, the rest the same in all lanes.
struct Head {
  float query[8], sums[8];
  float largest, total;
};

// The sum over a team, in each of its lanes.
DEVICE float SumOfTeam(float value) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

// Adds `kAhead` tokens of a team, of which those past the end do not count.
DEVICE void Add(Head& head, const float (&keys)[kAhead][8], const float (&values)[kAhead][8],
                const bool (&counts)[kAhead]) {
  float score[kAhead], now = head.largest;
#pragma unroll
  for (int u = 0; u < kAhead; ++u) {
    float product = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) product += head.query[i] * keys[u][i];
    product = SumOfTeam(product);
    score[u] = counts[u] ? product : MinusInfinity();
    now = fmaxf(now, score[u]);
  }
  // A team that has met no token yet: (-inf) - (-inf) would be no number.
  const float base = now == MinusInfinity() ? 0 : now;
  const float shrink = PowerOfTwo(head.largest - base);
  head.largest = now;
  head.total *= shrink;
#pragma unroll
  for (int i = 0; i < 8; ++i) head.sums[i] *= shrink;
#pragma unroll
  for (int u = 0; u < kAhead; ++u) {
    const float power = PowerOfTwo(score[u] - base);
    head.total += power;
#pragma unroll
    for (int i = 0; i < 8; ++i) head.sums[i] += power * values[u][i];
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    attention(const uint4* q, const uint4* k_cache, const uint4* v_cache, const int* page_table,
              const int* lengths, Half* out) {
  extern __shared__ __align__(128) unsigned char shared[];
  Stage* const stages = reinterpret_cast<Stage*>(shared);
  float* const parts = reinterpret_cast<float*>(shared);  // then: [kTeams][kGroup][HEAD_DIM]
  __shared__ float largest[kTeams][kGroup], total[kTeams][kGroup];
  const int kv_head = blockIdx.x, sequence = blockIdx.y;
  const int team = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const int length = lengths[sequence];
  const int* const table = page_table + (long long)sequence * PAGES_MAX;
  const long long first_head = (long long)sequence * HEADS + kv_head * kGroup;
  Head heads[kGroup];
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    Unpack(q[(first_head + j) * kLanes + lane], heads[j].query);
#pragma unroll
    for (int i = 0; i < 8; ++i) heads[j].query[i] *= kScale, heads[j].sums[i] = 0;
    heads[j].largest = MinusInfinity();
    heads[j].total = 0;
  }

  int row[kAhead];  // in either cache, of the tokens of the next step to copy; -1 past the end
  const auto look_up = [&](int start) {
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int token = start + u * kTeams + team;
      row[u] = token < length ? table[token / PAGE] * PAGE + token % PAGE : -1;
    }
  };
  const auto load = [&](int start) {
    Stage& stage = stages[start / kStep % STAGES];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const long long at = ((long long)max(row[u], 0) * KV_HEADS + kv_head) * kLanes + lane;
      CopyAsync(&stage.key[u][threadIdx.x], k_cache + at, row[u] >= 0);
      CopyAsync(&stage.value[u][threadIdx.x], v_cache + at, row[u] >= 0);
    }
    CommitCopies();
    look_up(start + kStep);
  };
  look_up(0);
  for (int step = 0; step < STAGES - 1; ++step) load(step * kStep);
  for (int start = 0; start < length; start += kStep) {
    WaitCopies<STAGES - 2>();
    load(start + (STAGES - 1) * kStep);
    const Stage& stage = stages[start / kStep % STAGES];
    float keys[kAhead][8], values[kAhead][8];
    bool counts[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      Unpack(stage.key[u][threadIdx.x], keys[u]);
      Unpack(stage.value[u][threadIdx.x], values[u]);
      counts[u] = start + u * kTeams + team < length;
    }
#pragma unroll
    for (int j = 0; j < kGroup; ++j) Add(heads[j], keys, values, counts);
  }
  WaitCopies<0>();
  __syncthreads();  // the ring is free for the parts

#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      parts[(team * kGroup + j) * HEAD_DIM + 8 * lane + i] = heads[j].sums[i];
    largest[team][j] = heads[j].largest;
    total[team][j] = heads[j].total;
  }
  __syncthreads();
  for (int at = threadIdx.x; at < kGroup * HEAD_DIM; at += kThreads) {
    const int j = at / HEAD_DIM;
    float most = MinusInfinity(), sum = 0, powers = 0;
    for (int i = 0; i < kTeams; ++i) most = fmaxf(most, largest[i][j]);
    const float base = most == MinusInfinity() ? 0 : most;
    for (int i = 0; i < kTeams; ++i) {
      const float shrink = PowerOfTwo(largest[i][j] - base);
      powers += shrink * total[i][j];
      sum += shrink * parts[i * kGroup * HEAD_DIM + at];
    }
    out[first_head * HEAD_DIM + at] = PackTwo(length > 0 ? sum / powers : 0, 0);
  }
}
