// Routing to experts, a warp a token.
//
// Idea: a logit and its expert's number are one word, whose order is that of the choice, ties
//   included, so that an instruction finds the largest of 32 lanes. A lane has eight of 256 experts
//   in registers, and the owner of the largest word clears it. The order is made as before.
// Prediction: 400% of the library; looking for places takes most of what is left.
// Measured: on an H100 175.7 us, 195.9% of the library, 1.8% of the speed of a copy.
// Sizes: up to 65535 experts, of which a lane has a 32nd in registers; up to 32 of them chosen.
//! constant TOKENS = logits.size(0)
//! constant EXPERTS = logits.size(1)
//! constant TOP = out.size(1)
//! scratch  counts int32[EXPERTS]
//! launch   choose grid=(ceil_div(TOKENS, 8)) block=(256) args=(logits, out, out1)
//! launch   count grid=(EXPERTS) block=(256) args=(out1, counts)
//! launch   add_up grid=(1) block=(1) args=(counts, out3)
//! launch   place grid=(EXPERTS) block=(256) args=(out1, out3, out2)
#define DEVICE __device__ __forceinline__

using Half = unsigned short;  // the bits of a bfloat16
constexpr int kThreads = 256, kPlaces = TOKENS * TOP;
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

extern "C" __global__ void __launch_bounds__(kThreads)
    choose(const Half* logits, Half* out, int* out1) {
  const int token = blockIdx.x * (kThreads / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (token >= TOKENS) return;
  const unsigned key = Choose(logits + (long long)token * EXPERTS);
  const float weight = WeightOf(key);
  if (lane >= TOP) return;
  out[token * TOP + lane] = PackTwo(weight, 0);
  out1[token * TOP + lane] = ExpertOf(key);
}

// A block an expert: how many places it has.
extern "C" __global__ void __launch_bounds__(kThreads) count(const int* out1, int* counts) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  int mine = 0;
  for (int i = threadIdx.x; i < kPlaces; i += kThreads) mine += out1[i] == blockIdx.x;
  atomicAdd(&sum, mine);
  __syncthreads();
  if (threadIdx.x == 0) counts[blockIdx.x] = sum;
}

// One thread.
extern "C" __global__ void __launch_bounds__(1) add_up(const int* counts, int* out3) {
  int sum = 0;
#pragma unroll 16
  for (int expert = 0; expert < EXPERTS; ++expert)
    out3[expert] = sum, sum += __ldg(counts + expert);
  out3[EXPERTS] = sum;
}

// A block an expert: writes its places in their order, a warp's 32 at a time.
extern "C" __global__ void __launch_bounds__(kThreads)
    place(const int* out1, const int* out3, int* out2) {
  __shared__ int of_warp[kThreads / 32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int next = out3[blockIdx.x];
  for (int start = 0; start < kPlaces; start += kThreads) {
    const int i = start + threadIdx.x;
    const bool mine = i < kPlaces && out1[i] == blockIdx.x;
    const unsigned all = __ballot_sync(~0u, mine);
    if (lane == 0) of_warp[warp] = __popc(all);
    __syncthreads();
    int at = next + __popc(all & ((1u << lane) - 1));
    for (int w = 0; w < kThreads / 32; ++w) {
      if (w < warp) at += of_warp[w];
      next += of_warp[w];
    }
    if (mine) out2[at] = i;
    __syncthreads();  // before the counts are written again
  }
}
