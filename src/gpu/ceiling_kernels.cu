// What a GPU reaches at most, for `assay doctor`: traffic of its memory and its L2 cache, and
// multiply-adds in float32 and float64. NVRTC compiles it for the device's architecture; tests
// compile it for the host (tests/fake_cuda/emulate.h). Every result is written, and the doctor
// compares it with what it must be: a kernel that does nothing has no rate.
#ifdef ASSAY_EMULATED
#include "emulate.h"
#endif

namespace {

__device__ inline float FusedMultiplyAdd(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double FusedMultiplyAdd(double a, double b, double c) { return fma(a, b, c); }

// 16 bytes that a thread moves at once.
struct alignas(16) Words {
  unsigned word[4];
};

// Past the L1 cache, which would serve what is read again.
__device__ inline Words Load(const Words* from) {
  Words words;
#ifdef ASSAY_EMULATED
  words = *from;
#else
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.word[0]), "=r"(words.word[1]), "=r"(words.word[2]), "=r"(words.word[3])
               : "l"(from));
#endif
  return words;
}

__device__ inline unsigned Sum(const Words& words) {
  return words.word[0] + words.word[1] + words.word[2] + words.word[3];
}

__device__ inline long long Thread() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline long long Threads() { return static_cast<long long>(gridDim.x) * blockDim.x; }

// Sixteen chains hide the latency of a multiply-add. A chain's value depends on every round.
template <typename Scalar>
__device__ inline void MultiplyAdd(Scalar* out, Scalar factor, Scalar summand, int rounds) {
  constexpr int kChains = 16;
  Scalar chain[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i)
    chain[i] = static_cast<Scalar>(i) + static_cast<Scalar>(threadIdx.x % 32) / 32;
// The loop's own instructions take issue slots, too: one in a hundred of them is left.
#pragma unroll 16
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kChains; ++i) chain[i] = FusedMultiplyAdd(chain[i], factor, summand);
  }
  Scalar sum = chain[0];
#pragma unroll
  for (int i = 1; i < kChains; ++i) sum += chain[i];
  out[Thread()] = sum;
}

}  // namespace

extern "C" __global__ void assay_empty() {}

// Word i becomes 2654435761 i: no two blocks alike, and the sum is known.
extern "C" __global__ void assay_weyl(Words* to, long long count) {
  for (long long i = Thread(); i < count; i += Threads())
    for (unsigned k = 0; k < 4; ++k)
      to[i].word[k] = (static_cast<unsigned>(4 * i) + k) * 2654435761u;
}

extern "C" __global__ void assay_copy(const Words* from, Words* to, long long count) {
  const long long step = Threads();
  long long i = Thread();
  for (; i + 3 * step < count; i += 4 * step) {
    const Words a = Load(from + i), b = Load(from + i + step), c = Load(from + i + 2 * step),
                d = Load(from + i + 3 * step);
    to[i] = a;
    to[i + step] = b;
    to[i + 2 * step] = c;
    to[i + 3 * step] = d;
  }
  for (; i < count; i += step) to[i] = Load(from + i);
}

// Each thread's sum of all words that it reads, `passes` times over the same array.
extern "C" __global__ void assay_read(const Words* from, long long count, int passes,
                                      unsigned* out) {
  const long long step = Threads();
  unsigned sum = 0;
  for (int pass = 0; pass < passes; ++pass) {
    long long i = Thread();
    for (; i + 3 * step < count; i += 4 * step) {
      const Words a = Load(from + i), b = Load(from + i + step), c = Load(from + i + 2 * step),
                  d = Load(from + i + 3 * step);
      sum += Sum(a) + Sum(b) + Sum(c) + Sum(d);
    }
    for (; i < count; i += step) sum += Sum(Load(from + i));
  }
  out[Thread()] = sum;
}

extern "C" __global__ void assay_float32(float* out, float factor, float summand, int rounds) {
  MultiplyAdd(out, factor, summand, rounds);
}
extern "C" __global__ void assay_float64(double* out, double factor, double summand, int rounds) {
  MultiplyAdd(out, factor, summand, rounds);
}
