// Products of a mixture of experts in float8, one launch for all of them.
//
// Idea: the host does not know how many rows an expert has, and waiting for it costs more than the
//   products. There are at most ROWS / 128 + EXPERTS tiles down: that many blocks start, each walks
//   over the experts until it has its own, and the rest return. A tile keeps to one expert; where
//   it has fewer than 128 rows left, the others are computed from zeros and not written. The
//   product is that of rung 3 of fp8-gemm: mma.sync of e4m3.
// Prediction: 50% of the library.
// Measured: on an H100 4.19 ms, 42.3% of the library, 13.0% of the peak.
// Sizes: INNER % 128 == 0 and COLUMNS % 128 == 0, by the problem.
//! constant ROWS = a.size(0)
//! constant INNER = a.size(1)
//! constant EXPERTS = b.size(0)
//! constant COLUMNS = b.size(1)
//! tune     STAGES = 3
//! dim      most_tiles = ceil_div(ROWS, 128) + EXPERTS
//! launch product grid=(COLUMNS / 128, most_tiles) block=(256) shared=STAGES*36864 args=(a, a_scales, b, b_scales, ends, out)
#define DEVICE __device__ __forceinline__

using BFloat16 = unsigned short;  // its bits
using Address = unsigned;         // in shared memory

constexpr int kTile = 128, kDepth = 128;    // of the result; along k
constexpr int kPitch = kDepth + 16;         // bytes from row to row: eight rows in all 32 banks
constexpr int kTileBytes = kTile * kPitch;  // of one matrix
constexpr int kBlocks = INNER / kDepth;
constexpr int kThreads = 256;
constexpr int kTileRows = kTile, kTilesAcross = 1;  // a block finds its row of tiles
constexpr int kDown = 4, kAcross = 4;  // of a warp: tiles of 16 rows, tiles of 8 columns

DEVICE Address SharedAddress(const void* pointer) {
  return static_cast<Address>(__cvta_generic_to_shared(pointer));
}

// Walks over the experts' tiles, expert by expert; tiles are asked for in rising order.
struct Groups {
  int expert = -1;
  int first = 0, tiles = 0;  // of the expert: its first tile, how many it has
  int begin = 0, end = 0;    // its rows

  // Returns false past the last tile.
  DEVICE bool Find(int tile, const int* ends) {
    while (tile >= first + tiles) {
      if (++expert == EXPERTS) return false;
      first += tiles;
      begin = end;
      end = __ldg(ends + expert);
      tiles = (end - begin + kTileRows - 1) / kTileRows * kTilesAcross;
    }
    return true;
  }
};

// Starts the copy of 128 rows of 128 numbers into shared memory; rows from `rows` on are zeros.
DEVICE void LoadTile(Address tile, const uint4* from, int rows) {
#pragma unroll
  for (int i = 0; i < kTile * kDepth / 16 / kThreads; ++i) {
    const int piece = threadIdx.x + i * kThreads, row = piece / 8, chunk = piece % 8;
    const bool inside = row < rows;
    const uint4* const source = inside ? from + (long long)row * (INNER / 16) + chunk : from;
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(tile + row * kPitch + chunk * 16),
        "l"(source), "r"(inside ? 16 : 0)
        : "memory");
  }
}

// The copies started since the last call make a group.
DEVICE void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `pending` groups of this thread are on their way.
template <int pending>
DEVICE void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Four matrices of 8 rows of 16 bytes; lane l gives the address of row l % 8 of matrix l / 8.
DEVICE void LoadMatrices(unsigned (&to)[4], Address row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

// sum (16 x 8) += a (16 x 32) b^T (8 x 32). Of the lane numbered 4 g + t, sum is rows g and g + 8,
// columns 2 t and 2 t + 1.
DEVICE void Multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two numbers rounded to bf16, the first in the lower half.
DEVICE unsigned Pack(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    product(const uint4* a, const float* a_scales, const uint4* b, const float* b_scales,
            const int* ends, BFloat16* out) {
  extern __shared__ __align__(128) unsigned char shared[];
  const Address stages = SharedAddress(shared);
  Groups groups;
  if (!groups.Find(blockIdx.y, ends)) return;
  const int row = groups.begin + (static_cast<int>(blockIdx.y) - groups.first) * kTile;
  const int end = groups.end, column = blockIdx.x * kTile;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;  // in the tile
  a += (long long)row * (INNER / 16);
  b += ((long long)groups.expert * COLUMNS + column) * (INNER / 16);
  b_scales += ((long long)groups.expert * (COLUMNS / 128) + blockIdx.x) * kBlocks;
  const auto load = [&](int block) {
    if (block < kBlocks) {
      const Address tile = stages + block % STAGES * 2 * kTileBytes;
      LoadTile(tile, a + block * (kDepth / 16), end - row);
      LoadTile(tile + kTileBytes, b + block * (kDepth / 16), kTile);
    }
    CommitCopies();  // an empty group past the end, so that counting groups counts blocks
  };
  for (int block = 0; block < STAGES - 1; ++block) load(block);
  float total[kDown][kAcross][4] = {};
  for (int block = 0; block < kBlocks; ++block) {
    WaitCopies<STAGES - 2>();
    __syncthreads();  // the block's tiles are there, and nobody reads those before them any more
    load(block + STAGES - 1);
    const Address a_tile = stages + block % STAGES * 2 * kTileBytes, b_tile = a_tile + kTileBytes;
    float sum[kDown][kAcross][4] = {};
#pragma unroll 1  // unrolled, the decoding takes more registers than there are
    for (int step = 0; step < kDepth / 32; ++step) {
      unsigned left[kDown][4], right[kAcross / 2][4];
#pragma unroll
      for (int i = 0; i < kDown; ++i)
        LoadMatrices(left[i], a_tile + (warp_row + 16 * i + lane % 16) * kPitch + 32 * step +
                                  lane / 16 * 16);
#pragma unroll
      for (int i = 0; i < kAcross / 2; ++i)
        LoadMatrices(right[i], b_tile + (warp_column + 16 * i + lane / 16 * 8 + lane % 8) * kPitch +
                                   32 * step + lane / 8 % 2 * 16);
#pragma unroll
      for (int i = 0; i < kDown; ++i)
#pragma unroll
        for (int j = 0; j < kAcross; ++j)
          Multiply(sum[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
    }
    const float b_scale = __ldg(b_scales + block);
#pragma unroll
    for (int i = 0; i < kDown; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = min(row + warp_row + 16 * i + 8 * half + g, end - 1);
        const float scale = __ldg(a_scales + (long long)block * ROWS + r) * b_scale;
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
          total[i][j][2 * half] += sum[i][j][2 * half] * scale;
          total[i][j][2 * half + 1] += sum[i][j][2 * half + 1] * scale;
        }
      }
  }
#pragma unroll
  for (int i = 0; i < kDown; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = row + warp_row + 16 * i + 8 * half + g;
      if (r >= end) continue;
#pragma unroll
      for (int j = 0; j < kAcross; ++j) {
        const int c = column + warp_column + 8 * j + 2 * t;
        *reinterpret_cast<unsigned*>(out + (long long)r * COLUMNS + c) =
            Pack(total[i][j][2 * half], total[i][j][2 * half + 1]);
      }
    }
}
