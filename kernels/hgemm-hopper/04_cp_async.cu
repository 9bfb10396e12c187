// Idea: three tiles in flight. cp.async copies from global to shared memory without registers and
//   without waiting; while the tensor cores work on one tile, the next two are on their way.
// Prediction: 60% of the library. mma.sync reaches about 62% of what wgmma does on this chip, and
//   with the waits gone that is the limit.
// Measured: 479 us, 37% of the library, 32% of the peak, not 60%. The cause is open: two blocks
//   of 8 warps may be too few to hide ldmatrix and mma.sync.
//! constant ROWS = a.size(0)
//! constant INNER = a.size(1)
//! constant COLUMNS = b.size(0)
//! tune     STAGES = 3
//! launch product grid=(ceil_div(COLUMNS, 128), ceil_div(ROWS, 128)) block=(256) shared=STAGES*32768 args=(a, b, out)
#define DEVICE __device__ __forceinline__

using BFloat16 = unsigned short;  // its bits

constexpr int kTile = 128, kDepth = 64;  // rows of A and of B in a block; their elements along k
constexpr int kThreads = 256;
constexpr int kChunks = kDepth / 8;  // of 16 bytes, in a row of a tile

constexpr int kBlocks = (INNER + kDepth - 1) / kDepth;  // along k

using Tile = uint4[kTile][kChunks];
struct Stage {
  Tile a, b;
};

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

DEVICE unsigned SharedAddress(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Starts a copy of 16 bytes, or writes 16 zeros where `bytes` is 0.
DEVICE void CopyChunk(unsigned target, const void* source, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source),
               "r"(bytes)
               : "memory");
}

// The copies started since the last call make a group.
DEVICE void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `pending` groups of this thread are on their way.
template <int pending>
DEVICE void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Rows from `row` on, kDepth elements from k on. Rows that are not a multiple of 16 bytes long
// cannot be copied in chunks: threads carry them, and wait.
DEVICE void LoadTile(Tile& tile, const BFloat16* matrix, int rows, int row, int k) {
#pragma unroll
  for (int i = threadIdx.x; i < kTile * kChunks; i += kThreads) {
    const int r = row + i / kChunks, c = k + i % kChunks * 8;
    uint4* const target = &tile[i / kChunks][i % kChunks ^ i / kChunks % 8];
    if constexpr (INNER % 8 == 0) {
      const bool inside = r < rows && c < INNER;
      CopyChunk(SharedAddress(target), inside ? matrix + (long long)r * INNER + c : matrix,
                inside ? 16 : 0);
    } else {
      *target = Chunk(matrix, rows, r, c);
    }
  }
}

// Four 8 x 8 blocks; lanes 8 i to 8 i + 7 give the addresses of the rows of block i.
DEVICE void LoadBlocks(unsigned (&blocks)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(blocks[0]), "=r"(blocks[1]), "=r"(blocks[2]), "=r"(blocks[3])
               : "r"(address)
               : "memory");
}

// Where chunk `chunk` of row `row` lies.
DEVICE unsigned ChunkAddress(const Tile& tile, int row, int chunk) {
  return SharedAddress(&tile[row][chunk ^ row % 8]);
}

// sum (16 x 8) += a (16 x 16) b^T (8 x 16). Of the lane numbered 4 g + t, sum is rows g and g + 8,
// columns 2 t and 2 t + 1; a the pairs of k at 2 t and 2 t + 8 in rows g, g + 8; b those in row g.
DEVICE void Multiply(float (&sum)[4], const unsigned (&a)[4], const unsigned* b) {
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
  extern __shared__ __align__(128) unsigned char shared[];
  Stage* const stages = reinterpret_cast<Stage*>(shared);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int g = lane / 4, t = lane % 4;
  const int row = blockIdx.y * kTile, column = blockIdx.x * kTile;
  const int warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;  // in the tile
  float sum[4][4][4] = {};
  const auto load = [&](int block) {
    Stage& stage = stages[block % STAGES];
    if (block < kBlocks) {
      LoadTile(stage.a, a, ROWS, row, block * kDepth);
      LoadTile(stage.b, b, COLUMNS, column, block * kDepth);
    }
    CommitCopies();  // an empty group past the end, so that counting groups counts blocks
  };
  for (int block = 0; block < STAGES - 1; ++block) load(block);
  for (int block = 0; block < kBlocks; ++block) {
    WaitCopies<STAGES - 2>();
    __syncthreads();  // everybody's copies of `block` are there; its predecessor's stage is free
    load(block + STAGES - 1);
    const Tile& a_tile = stages[block % STAGES].a;
    const Tile& b_tile = stages[block % STAGES].b;
#pragma unroll
    for (int step = 0; step < kDepth; step += 16) {
      const int chunk = step / 8;
      unsigned a_pairs[4][4], b_pairs[2][4];  // of B: two tiles of 8 rows, two blocks each
#pragma unroll
      for (int i = 0; i < 4; ++i)
        LoadBlocks(a_pairs[i],
                   ChunkAddress(a_tile, warp_row + 16 * i + lane % 16, chunk + lane / 16));
#pragma unroll
      for (int j = 0; j < 2; ++j)
        LoadBlocks(b_pairs[j], ChunkAddress(b_tile, warp_column + 16 * j + lane / 16 * 8 + lane % 8,
                                            chunk + lane / 8 % 2));
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) Multiply(sum[i][j], a_pairs[i], &b_pairs[j / 2][j % 2 * 2]);
    }
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
