// Idea: a tile of A and B in shared memory serves eight warps. A block owns 128 x 128 elements of
//   C, a warp 64 x 32, so that a value fetched from global memory is used 128 times, and a pair
//   read from shared memory 4 or 8 times. Rows are padded by 16 bytes: 36 words apart, the eight
//   rows that a warp reads at once lie in different banks.
// Prediction: 25% of the library. Shared memory no longer limits (24 reads of 32 words for 16 steps
//   of 32 clocks a warp), but nothing overlaps: fetch, wait, multiply, wait.
// Measured: 640 us, 28% of the library, 24% of the peak. The prediction held.
//! constant ROWS = a.size(0)
//! constant INNER = a.size(1)
//! constant COLUMNS = b.size(0)
//! launch product grid=(ceil_div(COLUMNS, 128), ceil_div(ROWS, 128)) block=(256) args=(a, b, out)
#define DEVICE __device__ __forceinline__

using BFloat16 = unsigned short;  // its bits

constexpr int kTile = 128, kDepth = 64;  // rows of A and of B in a block; their elements along k
constexpr int kThreads = 256;
constexpr int kChunks = kDepth / 8;  // of 16 bytes, in a row of a tile
constexpr int kPitch = kDepth + 8;   // elements between rows in shared memory

using Tile = BFloat16[kTile][kPitch];

// Eight elements of a row from k on, zeros beyond the matrix.
DEVICE uint4 Chunk(const BFloat16* matrix, int rows, int row, int k) {
  if (row >= rows || k >= INNER) return uint4{0, 0, 0, 0};
  const BFloat16* at = matrix + (long long)row * INNER + k;
  if constexpr (INNER % 8 == 0) {
    return *reinterpret_cast<const uint4*>(at);
  } else {
    unsigned words[4] = {};
    for (int i = 0; i < 8; ++i)
      if (k + i < INNER) words[i / 2] |= unsigned{at[i]} << 16 * (i % 2);
    return uint4{words[0], words[1], words[2], words[3]};
  }
}

// Rows from `row` on, kDepth elements from k on.
DEVICE void LoadTile(Tile& tile, const BFloat16* matrix, int rows, int row, int k) {
#pragma unroll
  for (int i = threadIdx.x; i < kTile * kChunks; i += kThreads)
    *reinterpret_cast<uint4*>(&tile[i / kChunks][i % kChunks * 8]) =
        Chunk(matrix, rows, row + i / kChunks, k + i % kChunks * 8);
}

DEVICE unsigned Pair(const Tile& tile, int row, int k) {
  return *reinterpret_cast<const unsigned*>(&tile[row][k]);
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

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    product(const BFloat16* a, const BFloat16* b, BFloat16* out) {
  __shared__ __align__(16) Tile a_tile, b_tile;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int g = lane / 4, t = lane % 4;
  const int row = blockIdx.y * kTile, column = blockIdx.x * kTile;
  const int warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;  // in the tile
  float sum[4][4][4] = {};
  for (int k = 0; k < INNER; k += kDepth) {
    LoadTile(a_tile, a, ROWS, row, k);
    LoadTile(b_tile, b, COLUMNS, column, k);
    __syncthreads();
#pragma unroll
    for (int step = 0; step < kDepth; step += 16) {
      unsigned a_pairs[4][4], b_pairs[4][2];
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int part = 0; part < 4; ++part)
          a_pairs[i][part] =
              Pair(a_tile, warp_row + 16 * i + g + part % 2 * 8, step + 2 * t + part / 2 * 8);
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int part = 0; part < 2; ++part)
          b_pairs[j][part] = Pair(b_tile, warp_column + 8 * j + g, step + 2 * t + part * 8);
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) Multiply(sum[i][j], a_pairs[i], b_pairs[j]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int r = row + warp_row + 16 * i + g, c = column + warp_column + 8 * j + 2 * t;
      StorePair(out, r, c, sum[i][j][0], sum[i][j][1]);
      StorePair(out, r + 8, c, sum[i][j][2], sum[i][j][3]);
    }
}
