// Idea: the simplest use of the tensor cores. A warp owns 16 x 8 elements of C and walks along k,
//   16 at a time; each lane fetches its pairs of A and B from global memory by itself.
// Prediction: 3% of the library. A step is 6 loads that touch 8 rows each for 4096 operations, so
//   the load unit (about one row a clock) gives 4096 / 48 = 85 operations a clock of 4096: 2%, a
//   little more where lanes share sectors.
// Measured: 6705 us, 2.7% of the library, 2.3% of the peak. The prediction held.
//! constant ROWS = a.size(0)
//! constant INNER = a.size(1)
//! constant COLUMNS = b.size(0)
//! launch product grid=(ceil_div(COLUMNS, 32), ceil_div(ROWS, 16)) block=(128) args=(a, b, out)
#define DEVICE __device__ __forceinline__

using BFloat16 = unsigned short;  // its bits

// Elements k and k + 1 of a row; zeros beyond the matrix. k is even.
DEVICE unsigned Pair(const BFloat16* matrix, int rows, int row, int k) {
  if (row >= rows || k >= INNER) return 0;
  const BFloat16* at = matrix + (long long)row * INNER + k;
  if constexpr (INNER % 2 == 0)
    return *reinterpret_cast<const unsigned*>(at);
  else
    return at[0] | (k + 1 < INNER ? at[1] << 16 : 0);
}

// sum (16 x 8) += a (16 x 16) b^T (8 x 16). Of the lane numbered 4 g + t, sum is rows g and g + 8,
// columns 2 t and 2 t + 1; a the pairs of k at 2 t and 2 t + 8 in rows g, g + 8; b those in row g.
DEVICE void Multiply(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two numbers rounded to bf16, the first in the lower half.
DEVICE unsigned Pack(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Writes two neighbours of C; `column` is even.
DEVICE void StorePair(BFloat16* out, int row, int column, float first, float second) {
  if (row >= ROWS || column >= COLUMNS) return;
  const unsigned pair = Pack(first, second);
  BFloat16* at = out + (long long)row * COLUMNS + column;
  if constexpr (COLUMNS % 2 == 0) {
    *reinterpret_cast<unsigned*>(at) = pair;
  } else {
    at[0] = static_cast<BFloat16>(pair);
    if (column + 1 < COLUMNS) at[1] = static_cast<BFloat16>(pair >> 16);
  }
}

extern "C" __global__ void __launch_bounds__(128)
    product(const BFloat16* a, const BFloat16* b, BFloat16* out) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int g = lane / 4, t = lane % 4;
  const int row = blockIdx.y * 16, column = blockIdx.x * 32 + 8 * warp;
  float sum[4] = {};
  for (int k = 2 * t; k < INNER + 2 * t; k += 16) {
    const unsigned a_pairs[4] = {Pair(a, ROWS, row + g, k), Pair(a, ROWS, row + g + 8, k),
                                 Pair(a, ROWS, row + g, k + 8), Pair(a, ROWS, row + g + 8, k + 8)};
    const unsigned b_pairs[2] = {Pair(b, COLUMNS, column + g, k),
                                 Pair(b, COLUMNS, column + g, k + 8)};
    Multiply(sum, a_pairs, b_pairs);
  }
  StorePair(out, row + g, column + 2 * t, sum[0], sum[1]);
  StorePair(out, row + g + 8, column + 2 * t, sum[2], sum[3]);
}
