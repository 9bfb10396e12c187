// Products of a mixture of experts in float8 with few rows each, a thread an element.
//
// Idea: the formula, as in rung 1; a row that its expert does not have is zeros.
// Prediction: 20% of the library: every weight is read by few threads, so that memory waits.
// Sizes: INNER % 128 == 0 and COLUMNS % 128 == 0, by the problem.
//! constant MOST = a.size(1)
//! constant INNER = a.size(2)
//! constant EXPERTS = b.size(0)
//! constant COLUMNS = b.size(1)
//! launch product grid=(COLUMNS / 32, ceil_div(EXPERTS * MOST, 8)) block=(32, 8) args=(a, a_scales, b, b_scales, counts, out)
#define DEVICE __device__ __forceinline__

using BFloat16 = unsigned short;  // its bits
constexpr int kBlocks = INNER / 128;

// Two numbers of e4m3, the first in the lower byte.
DEVICE float2 NumbersOf(unsigned codes) {
  float2 numbers;
  asm("{\n.reg .b16 pair, low, high;\n.reg .b32 halves;\n"
      "cvt.u16.u32 pair, %2;\n"
      "cvt.rn.f16x2.e4m3x2 halves, pair;\n"
      "mov.b32 {low, high}, halves;\n"
      "cvt.f32.f16 %0, low;\n"
      "cvt.f32.f16 %1, high;\n}"
      : "=f"(numbers.x), "=f"(numbers.y)
      : "r"(codes));
  return numbers;
}

// The sum of four products.
DEVICE float Dot(unsigned a, unsigned b) {
  const float2 a0 = NumbersOf(a), a1 = NumbersOf(a >> 16);
  const float2 b0 = NumbersOf(b), b1 = NumbersOf(b >> 16);
  return a0.x * b0.x + a0.y * b0.y + (a1.x * b1.x + a1.y * b1.y);
}

DEVICE BFloat16 Round(float value) {
  BFloat16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

extern "C" __global__ void __launch_bounds__(256)
    product(const uint4* a, const float* a_scales, const uint4* b, const float* b_scales,
            const int* counts, BFloat16* out) {
  const int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  if (row >= EXPERTS * MOST) return;
  a += (long long)row * (INNER / 16);
  const int expert = row / MOST;
  if (row % MOST >= __ldg(counts + expert)) {
    out[(long long)row * COLUMNS + column] = 0;
    return;
  }
  b += ((long long)expert * COLUMNS + column) * (INNER / 16);
  b_scales += ((long long)expert * (COLUMNS / 128) + column / 128) * kBlocks;
  float total = 0;
  for (int block = 0; block < kBlocks; ++block) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint4 x = __ldg(a + block * 8 + i), y = __ldg(b + block * 8 + i);
      sum += Dot(x.x, y.x) + Dot(x.y, y.y) + (Dot(x.z, y.z) + Dot(x.w, y.w));
    }
    total += sum * (a_scales[((long long)expert * kBlocks + block) * MOST + row % MOST] *
                    b_scales[block]);
  }
  out[(long long)row * COLUMNS + column] = Round(total);
}
