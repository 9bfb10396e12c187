// Attention over a paged cache of float8, 16 bytes a load.
//
// Idea: eight lanes, a team, read a row of 128 bytes at once, for all heads of a group, and add up
//   its products by shuffles. Each team has tokens, largest scores and sums of its own, so that the
//   loop has no barrier; teams are put together at the end. Four rows of keys and of values are
//   asked for before the first is used.
// Prediction: 250% of the library, half of the speed of a copy: arithmetic in float, 4 bytes a
//   number, is now as long as the loads, and a thread has 16 sums for each of 4 heads.
// Measured: not yet.
// Sizes: heads of 128; any pages and lengths.
//! constant HEADS = q.size(1)
//! constant HEAD_DIM = q.size(2)
//! constant PAGE = k_cache.size(1)
//! constant KV_HEADS = k_cache.size(2)
//! constant PAGES_MAX = page_table.size(1)
//! dim      batch = q.size(0)
//! dim      parts_bytes = 16384 * HEADS / KV_HEADS
//! launch   attention grid=(KV_HEADS, batch) block=(256) shared=parts_bytes args=(q, k_cache, v_cache, k_scales, v_scales, page_table, lengths, out)
#define DEVICE __device__ __forceinline__
static_assert(HEAD_DIM == 128);

using Half = unsigned short;  // the bits of a bfloat16
constexpr int kThreads = 256;
constexpr int kLanes = HEAD_DIM / 16, kTeams = kThreads / kLanes;
constexpr int kAhead = 4;  // rows of keys, and of values, that a team asks for at once
constexpr int kGroup = HEADS / KV_HEADS;
// log2(e) / sqrt(HEAD_DIM): a score times this is an exponent of 2.
constexpr float kScale = 1.4426950409f * 0.0883883476f;

DEVICE float MinusInfinity() { return __int_as_float(0xff800000); }

// bfloat16 is the upper half of a float.
DEVICE float ToFloat(Half bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

// Four numbers of e4m3. Each is one of float16, and that one of float.
DEVICE void Unpack(unsigned codes, float* numbers) {
#pragma unroll
  for (int i = 0; i < 2; ++i)
    asm("{.reg .b32 pair; .reg .b16 low, high; cvt.rn.f16x2.e4m3x2 pair, %2; "
        "mov.b32 {low, high}, pair; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
        : "=f"(numbers[2 * i]), "=f"(numbers[2 * i + 1])
        : "h"(static_cast<unsigned short>(codes >> 16 * i)));
}

DEVICE void Unpack(uint4 codes, float (&numbers)[16]) {
  Unpack(codes.x, numbers);
  Unpack(codes.y, numbers + 4);
  Unpack(codes.z, numbers + 8);
  Unpack(codes.w, numbers + 12);
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

// Of one head of queries in one team: 16 elements a lane, the rest the same in all lanes.
struct Head {
  float query[16], sums[16];
  float largest, total;
};

// The sum over a team, in each of its lanes.
DEVICE float SumOfTeam(float value) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

// Adds a token, if it counts. All lanes of a warp call it.
DEVICE void Add(Head& head, const float (&keys)[16], const float (&values)[16], bool counts,
                float unit) {
  float product = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) product += head.query[i] * keys[i];
  const float score = SumOfTeam(product) * unit;
  if (!counts) return;
  const float now = fmaxf(head.largest, score);
  const float shrink = PowerOfTwo(head.largest - now), power = PowerOfTwo(score - now);
  head.largest = now;
  head.total = head.total * shrink + power;
#pragma unroll
  for (int i = 0; i < 16; ++i) head.sums[i] = head.sums[i] * shrink + power * values[i];
}

extern "C" __global__ void __launch_bounds__(kThreads)
    attention(const Half* q, const uint4* k_cache, const uint4* v_cache, const float* k_scales,
              const float* v_scales, const int* page_table, const int* lengths, Half* out) {
  extern __shared__ __align__(128) unsigned char shared[];
  float* const parts = reinterpret_cast<float*>(shared);  // [kTeams][kGroup][HEAD_DIM]
  __shared__ float largest[kTeams][kGroup], total[kTeams][kGroup];
  const int kv_head = blockIdx.x, sequence = blockIdx.y;
  const int team = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const int length = lengths[sequence];
  const int* const table = page_table + (long long)sequence * PAGES_MAX;
  const long long first_head = (long long)sequence * HEADS + kv_head * kGroup;
  const float unit = k_scales[kv_head] * kScale;
  Head heads[kGroup];
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      heads[j].query[i] = ToFloat(q[(first_head + j) * HEAD_DIM + 16 * lane + i]);
      heads[j].sums[i] = 0;
    }
    heads[j].largest = MinusInfinity();
    heads[j].total = 0;
  }

  for (int start = 0; start < length; start += kTeams * kAhead) {
    uint4 key[kAhead], value[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int token = start + u * kTeams + team;
      key[u] = value[u] = make_uint4(0, 0, 0, 0);
      if (token >= length) continue;
      const long long row = (long long)table[token / PAGE] * PAGE + token % PAGE;
      const long long at = (row * KV_HEADS + kv_head) * kLanes + lane;
      key[u] = __ldcs(k_cache + at);
      value[u] = __ldcs(v_cache + at);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      float keys[16], values[16];
      Unpack(key[u], keys);
      Unpack(value[u], values);
#pragma unroll
      for (int j = 0; j < kGroup; ++j)
        Add(heads[j], keys, values, start + u * kTeams + team < length, unit);
    }
  }

#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
#pragma unroll
    for (int i = 0; i < 16; ++i)
      parts[(team * kGroup + j) * HEAD_DIM + 16 * lane + i] = heads[j].sums[i];
    largest[team][j] = heads[j].largest;
    total[team][j] = heads[j].total;
  }
  __syncthreads();
  for (int at = threadIdx.x; at < kGroup * HEAD_DIM; at += kThreads) {
    const int j = at / HEAD_DIM;
    float most = MinusInfinity(), sum = 0, powers = 0;
    for (int i = 0; i < kTeams; ++i) most = fmaxf(most, largest[i][j]);
    for (int i = 0; i < kTeams; ++i) {
      if (total[i][j] == 0) continue;  // a team without a token
      const float shrink = PowerOfTwo(largest[i][j] - most);
      powers += shrink * total[i][j];
      sum += shrink * parts[i * kGroup * HEAD_DIM + at];
    }
    out[first_head * HEAD_DIM + at] = PackTwo(length > 0 ? sum / powers * v_scales[kv_head] : 0, 0);
  }
}
