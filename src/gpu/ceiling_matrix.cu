// What a GPU's matrix units reach through mma.sync, and its ordinary units in pairs of 16 bits, for
// `assay doctor` (sm_80 and newer). Compiled by NVRTC for the device's architecture.
//
// Theory of operation. Operands are rows of 128 bytes along k, whatever the element: a step of k is
// 32 bytes in every dtype, and a thread's words lie at the same place. A block keeps 128 rows of A
// and 64 of B in registers and adds A B^T to its accumulators `rounds` times. All is written, and
// the doctor compares it with products of its own.

namespace {

constexpr int kRowWords = 32;  // 128 bytes
constexpr int kRows = 128, kColumns = 64, kSteps = 4, kTilesA = 2, kTilesB = 4;

#define MMA(type, shape)                                                                \
  struct type {                                                                         \
    static __device__ void Multiply(float (&c)[4], const unsigned (&a)[4],              \
                                    const unsigned (&b)[2]) {                           \
      asm volatile("mma.sync.aligned." shape                                            \
                   " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"   \
                   : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                     \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
    }                                                                                   \
  };
MMA(Float16, "m16n8k16.row.col.f32.f16.f16.f32")
MMA(BFloat16, "m16n8k16.row.col.f32.bf16.bf16.f32")
MMA(Tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")
#if __CUDA_ARCH__ >= 890 && __CUDA_ARCH__ != 900
MMA(Float8, "m16n8k32.row.col.f32.e4m3.e4m3.f32")
#endif

// A warp's 32 x 32 elements of the block's 128 x 64.
template <typename Type>
__device__ void Products(const unsigned* a, const unsigned* b, float* out, int rounds) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
  const int row = 32 * (warp % 4), column = 32 * (warp / 4);
  unsigned a_words[kSteps][kTilesA][4], b_words[kSteps][kTilesB][2];
  float sums[kTilesA][kTilesB][4] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int i = 0; i < kTilesA; ++i)
#pragma unroll
      for (int k = 0; k < 4; ++k)
        a_words[step][i][k] =
            a[(row + 16 * i + group + 8 * (k % 2)) * kRowWords + 8 * step + member + 4 * (k / 2)];
#pragma unroll
    for (int j = 0; j < kTilesB; ++j)
#pragma unroll
      for (int k = 0; k < 2; ++k)
        b_words[step][j][k] = b[(column + 8 * j + group) * kRowWords + 8 * step + member + 4 * k];
  }
  for (int round = 0; round < rounds; ++round)
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
      for (int i = 0; i < kTilesA; ++i)
#pragma unroll
        for (int j = 0; j < kTilesB; ++j)
          Type::Multiply(sums[i][j], a_words[step][i], b_words[step][j]);
  float* block = out + static_cast<long long>(blockIdx.x) * kRows * kColumns;
#pragma unroll
  for (int i = 0; i < kTilesA; ++i)
#pragma unroll
    for (int j = 0; j < kTilesB; ++j)
#pragma unroll
      for (int k = 0; k < 4; ++k)
        block[(row + 16 * i + group + 8 * (k / 2)) * kColumns + column + 8 * j + 2 * member +
              k % 2] = sums[i][j][k];
}

// The same in float64, whose instructions are their own.
__device__ void Float64Products(const double* a, const double* b, float* out, int rounds) {
  constexpr int kDepth = 16;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
  const int row = 32 * (warp % 4), column = 32 * (warp / 4);
  double a_values[4][kSteps], b_values[kTilesB][kSteps], sums[4][kTilesB][2] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      a_values[i][step] = a[(row + 8 * i + group) * kDepth + 4 * step + member];
#pragma unroll
    for (int j = 0; j < kTilesB; ++j)
      b_values[j][step] = b[(column + 8 * j + group) * kDepth + 4 * step + member];
  }
  for (int round = 0; round < rounds; ++round)
#if __CUDA_ARCH__ >= 900
#pragma unroll
    for (int i = 0; i < 4; i += 2)
#pragma unroll
      for (int j = 0; j < kTilesB; ++j)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
            : "+d"(sums[i][j][0]), "+d"(sums[i][j][1]), "+d"(sums[i + 1][j][0]),
              "+d"(sums[i + 1][j][1])
            : "d"(a_values[i][0]), "d"(a_values[i + 1][0]), "d"(a_values[i][1]),
              "d"(a_values[i + 1][1]), "d"(a_values[i][2]), "d"(a_values[i + 1][2]),
              "d"(a_values[i][3]), "d"(a_values[i + 1][3]), "d"(b_values[j][0]),
              "d"(b_values[j][1]), "d"(b_values[j][2]), "d"(b_values[j][3]));
#else
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < kTilesB; ++j)
          asm volatile(
              "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, "
              "{%0, %1};"
              : "+d"(sums[i][j][0]), "+d"(sums[i][j][1])
              : "d"(a_values[i][step]), "d"(b_values[j][step]));
#endif
  float* block = out + static_cast<long long>(blockIdx.x) * kRows * kColumns;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < kTilesB; ++j)
#pragma unroll
      for (int k = 0; k < 2; ++k)
        block[(row + 8 * i + group) * kColumns + column + 8 * j + 2 * member + k] =
            static_cast<float>(sums[i][j][k]);
}

// Chains of x = 1 - x in both halves of a word: an odd number of rounds turns a half x into 1 - x.
#define PAIRS(name, instruction)                                                                  \
  extern "C" __global__ void name(unsigned* out, unsigned factor, unsigned summand, int rounds) { \
    constexpr int kChains = 16;                                                                   \
    unsigned chain[kChains];                                                                      \
    _Pragma("unroll") for (int i = 0; i < kChains; ++i) chain[i] = i % 2 == 0 ? summand : 0;      \
    _Pragma("unroll 16") for (int round = 0; round < rounds; ++round) {                           \
      _Pragma("unroll") for (int i = 0; i < kChains; ++i) asm volatile(                           \
          instruction " %0, %0, %1, %2;" : "+r"(chain[i]) : "r"(factor), "r"(summand));           \
    }                                                                                             \
    unsigned bits = 0;                                                                            \
    _Pragma("unroll") for (int i = 0; i < kChains; ++i) bits += chain[i] * (i + 1);               \
    out[static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x] = bits;                    \
  }

}  // namespace

PAIRS(assay_float16_pairs, "fma.rn.f16x2")
PAIRS(assay_bfloat16_pairs, "fma.rn.bf16x2")

extern "C" __global__ void __launch_bounds__(256, 1)
    assay_mma_float64(const double* a, const double* b, float* out, int rounds) {
  Float64Products(a, b, out, rounds);
}

#define PRODUCTS(name, type)                                               \
  extern "C" __global__ void __launch_bounds__(256, 2)                     \
      name(const unsigned* a, const unsigned* b, float* out, int rounds) { \
    Products<type>(a, b, out, rounds);                                     \
  }
PRODUCTS(assay_mma_float16, Float16)
PRODUCTS(assay_mma_bfloat16, BFloat16)
PRODUCTS(assay_mma_tf32, Tf32)
#if __CUDA_ARCH__ >= 890 && __CUDA_ARCH__ != 900
PRODUCTS(assay_mma_float8, Float8)
#endif
