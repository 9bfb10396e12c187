// Verifying drafted tokens, probabilities written out.
//
// Idea: none; the starting point. A block a row of logits reads it three times and writes its
//   probabilities; then a block a sequence tests the tokens, and reads p, q and the noise.
// Prediction: 130% of the library, which makes a few more passes.
// Measured: on an H100 394.9 us, 254.1% of the library, 15.0% of the speed of a copy.
// Sizes: vocabularies of a multiple of 8.
//! constant DRAFTED = tokens.size(1)
//! constant VOCABULARY = noise.size(1)
//! dim      batch = tokens.size(0)
//! scratch  probabilities float[batch * (2 * DRAFTED + 1) * VOCABULARY]
//! launch   soften grid=(2*DRAFTED+1, batch) block=(1024) args=(target, draft, probabilities)
//! launch   choose grid=(batch) block=(1024) args=(probabilities, tokens, u, noise, out, out1)
#define DEVICE __device__ __forceinline__
static_assert(VOCABULARY % 8 == 0);

using Half = unsigned short;  // the bits of a bfloat16
using Key = unsigned long long;
constexpr int kWarps = 32, kThreads = 32 * kWarps;
constexpr int kRows = 2 * DRAFTED + 1;  // of a sequence: those of the target, then of the draft

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

// In every thread. Between two calls there is a barrier.
DEVICE float MaximumOfBlock(float value) {
  __shared__ float of_warp[kWarps];
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp) value = fmaxf(value, of_warp[warp]);
  return value;
}

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
    soften(const Half* target, const Half* draft, float* probabilities) {
  const int row = blockIdx.x, sequence = blockIdx.y;
  const Half* const logits =
      row <= DRAFTED ? target + ((long long)sequence * (DRAFTED + 1) + row) * VOCABULARY
                     : draft + ((long long)sequence * DRAFTED + row - DRAFTED - 1) * VOCABULARY;
  float* const to = probabilities + ((long long)sequence * kRows + row) * VOCABULARY;
  float largest = MinusInfinity(), sum = 0;
  for (int i = threadIdx.x; i < VOCABULARY; i += kThreads)
    largest = fmaxf(largest, ToFloat(logits[i]));
  largest = MaximumOfBlock(largest);
  for (int i = threadIdx.x; i < VOCABULARY; i += kThreads)
    sum += PowerOfTwo((ToFloat(logits[i]) - largest) * kLog2E);
  const float factor = 1 / SumOfBlock(sum);
  for (int i = threadIdx.x; i < VOCABULARY; i += kThreads)
    to[i] = PowerOfTwo((ToFloat(logits[i]) - largest) * kLog2E) * factor;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    choose(const float* probabilities, const long long* tokens, const float* u, const float* noise,
           long long* out, long long* out1) {
  const int sequence = blockIdx.x;
  const float* const p = probabilities + (long long)sequence * kRows * VOCABULARY;
  const float* const q = p + (long long)(DRAFTED + 1) * VOCABULARY;
  int stand = 0;
  for (; stand < DRAFTED; ++stand) {
    const int at = sequence * DRAFTED + stand;
    const long long place = (long long)stand * VOCABULARY + tokens[at];
    if (!(u[at] * q[place] < p[place])) break;
  }
  Best best;
  for (int i = threadIdx.x; i < VOCABULARY; i += kThreads) {
    const long long place = (long long)stand * VOCABULARY + i;
    best.Add(p[place], stand < DRAFTED ? q[place] : 0, noise[(long long)sequence * VOCABULARY + i],
             i);
  }
  const Keys keys = KeysOfBlock(best);
  if (threadIdx.x == 0) out[sequence] = stand, out1[sequence] = keys.Next(stand == DRAFTED);
}
