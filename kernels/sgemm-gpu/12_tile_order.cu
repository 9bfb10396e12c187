// Blocks that run together take tiles that lie together.
//
// Idea: 132 blocks run at once. Row by row they cover 8 rows of tiles and all of their columns, and
// need 8 x 128 rows of A and 4096 columns of B. In groups of 16 rows, column by column, they cover
// 16 by 8 tiles: 2048 rows and 2112 columns, a fifth less, and more of it is found in L2.
// Prediction: no more than half a percent at 4096: even row by row a wave reads 81 MB from memory
// in 0.7 ms, 4% of what memory gives. At 16384 it should show.
// Measured: 3.14 ms, 88.5% of a library that ran 6% faster in that call than in rung 11's, 66.6% of
// the peak. 1.4% faster than rung 11, where half a percent was predicted: within the spread of 3%.
//! constant ROWS = a.size(0)
//! constant INNER = a.size(1)
//! constant COLUMNS = b.size(1)
//! constant BLOCK_ROWS = 128
//! constant BLOCK_COLUMNS = 256
//! constant BLOCK_INNER = 16
//! constant WARP_ROWS = 64
//! constant WARP_COLUMNS = 64
//! constant THREAD_ROWS = 8
//! constant THREAD_COLUMNS = 16
//! constant THREADS = BLOCK_ROWS * BLOCK_COLUMNS / (THREAD_ROWS * THREAD_COLUMNS)
//! constant TILES_DOWN = ceil_div(ROWS, BLOCK_ROWS)
//! constant TILES_ACROSS = ceil_div(COLUMNS, BLOCK_COLUMNS)
//! tune GROUP = 16 8 32
//! tune STAGES = 4 3 5
//! constant STAGE_FLOATS = (BLOCK_ROWS + BLOCK_COLUMNS) * BLOCK_INNER
//! launch product grid=(TILES_DOWN * TILES_ACROSS) block=(THREADS) shared=4*STAGES*STAGE_FLOATS args=(a, b, out)

__device__ unsigned SharedAddress(const void* at) { return __cvta_generic_to_shared(at); }

// Asynchronous copies to shared memory; those that are not `wanted` write zeros.
__device__ void CopyAsync16(float* to, const float* from, bool wanted) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(SharedAddress(to)), "l"(from), "r"(wanted ? 16 : 0) : "memory");
}
__device__ void CopyAsync4(float* to, const float* from, bool wanted) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :: "r"(SharedAddress(to)), "l"(from), "r"(wanted ? 4 : 0) : "memory");
}
__device__ void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kGroupsLeft>
__device__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" :: "n"(kGroupsLeft) : "memory");
}

// Whether no tile reaches beyond an edge: known when this is compiled, so that nothing is left to
// test.
constexpr bool kWholeTiles =
    ROWS % BLOCK_ROWS == 0 && COLUMNS % BLOCK_COLUMNS == 0 && INNER % BLOCK_INNER == 0;

// Four neighbours of a row, zeros where the matrix ends. They are one copy of 16 bytes if every row
// begins on 16 bytes.
template <int kRows, int kColumns>
__device__ void CopyFour(float* to, const float* matrix, int row, int column) {
  const float* from = matrix + size_t(row) * kColumns + column;
  if constexpr (kColumns % 4 == 0) {
    const bool wanted = kWholeTiles || (row < kRows && column < kColumns);
    CopyAsync16(to, wanted ? from : matrix, wanted);
  } else {
    for (int i = 0; i < 4; ++i) {
      const bool wanted = row < kRows && column + i < kColumns;
      CopyAsync4(to + i, wanted ? from + i : matrix, wanted);
    }
  }
}

__device__ void StoreFour(float* __restrict__ out, int row, int column, const float* from) {
  if (row >= ROWS || column >= COLUMNS) return;
  float* to = out + size_t(row) * COLUMNS + column;
  if constexpr (COLUMNS % 4 == 0) {
    *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
  } else {
    for (int i = 0; i < 4; ++i)
      if (column + i < COLUMNS) to[i] = from[i];
  }
}

__device__ void ReadFour(float* to, const float* from) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
}

// Where the chunk of four k that begins at `k` lies in its row of a tile of A.
__device__ int Swizzled(int row, int k) { return k ^ row / 2 % 4 * 4; }

// Starts to copy the tiles of A and B that begin at k = `first`; a stage holds one of each.
__device__ void StartCopies(float* stage, const float* a, const float* b, int block_row,
                            int block_column, int first) {
  float* a_tile = stage;
  float* b_tile = stage + BLOCK_ROWS * BLOCK_INNER;
#pragma unroll
  for (int begin = 0; begin < BLOCK_ROWS * BLOCK_INNER; begin += THREADS * 4) {
    const int i = begin + threadIdx.x * 4, row = i / BLOCK_INNER, k = i % BLOCK_INNER;
    CopyFour<ROWS, INNER>(a_tile + row * BLOCK_INNER + Swizzled(row, k), a, block_row + row,
                          first + k);
  }
#pragma unroll
  for (int begin = 0; begin < BLOCK_INNER * BLOCK_COLUMNS; begin += THREADS * 4) {
    const int i = begin + threadIdx.x * 4, k = i / BLOCK_COLUMNS, column = i % BLOCK_COLUMNS;
    CopyFour<INNER, COLUMNS>(b_tile + i, b, first + k, block_column + column);
  }
}

// The tile of C of a block, as its row and column of tiles.
struct Place {
  int down, across;
};
__device__ Place PlaceOf(int tile) {
  const int first = tile / (GROUP * TILES_ACROSS) * GROUP;
  const int height = min(GROUP, TILES_DOWN - first);
  const int within = tile - first * TILES_ACROSS;
  return {first + within % height, within / height};
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    product(const float* a, const float* b, float* __restrict__ out) {
  extern __shared__ __align__(128) float stages[];
  constexpr int kWarpsAcross = BLOCK_COLUMNS / WARP_COLUMNS;
  constexpr int kRowStep = 8;         // from a row of a thread's to the next
  constexpr int kColumnStep = 4 * 4;  // from four columns to the next four
  constexpr int kTiles = (INNER + BLOCK_INNER - 1) / BLOCK_INNER;
  const Place place = PlaceOf(blockIdx.x);
  const int block_row = place.down * BLOCK_ROWS, block_column = place.across * BLOCK_COLUMNS;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int thread_row = warp / kWarpsAcross * WARP_ROWS + lane / 2 % 8;
  const int thread_column = warp % kWarpsAcross * WARP_COLUMNS + (lane % 2 + lane / 16 * 2) * 4;
  float sum[THREAD_ROWS][THREAD_COLUMNS] = {};
  for (int tile = 0; tile < STAGES; ++tile) {
    if (tile < kTiles)
      StartCopies(stages + tile * STAGE_FLOATS, a, b, block_row, block_column, tile * BLOCK_INNER);
    CommitCopies();
  }
  WaitForCopies<STAGES - 1>();
  __syncthreads();

  float a_values[THREAD_ROWS][4], b_values[2][THREAD_COLUMNS];
  const float* a_from = stages + thread_row * BLOCK_INNER;
  const float* b_from = stages + BLOCK_ROWS * BLOCK_INNER + thread_column;
#pragma unroll
  for (int i = 0; i < THREAD_ROWS; ++i)
    ReadFour(a_values[i], a_from + i * kRowStep * BLOCK_INNER + Swizzled(thread_row, 0));
#pragma unroll
  for (int j = 0; j < THREAD_COLUMNS; j += 4)
    ReadFour(&b_values[0][j], b_from + j / 4 * kColumnStep);

  int stage = 0;
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int k = 0; k < BLOCK_INNER; ++k) {
      if (k == BLOCK_INNER - 1) {
        WaitForCopies<STAGES - 2>();  // this thread's part of the next tile has arrived,
        __syncthreads();              // and so has everybody's; this tile is not read any more
        if (tile + STAGES < kTiles)
          StartCopies(stages + stage * STAGE_FLOATS, a, b, block_row, block_column,
                      (tile + STAGES) * BLOCK_INNER);
        CommitCopies();
        stage = stage == STAGES - 1 ? 0 : stage + 1;
        a_from = stages + stage * STAGE_FLOATS + thread_row * BLOCK_INNER;
        b_from = stages + stage * STAGE_FLOATS + BLOCK_ROWS * BLOCK_INNER + thread_column;
      }
      const int next_k = (k + 1) % BLOCK_INNER;
#pragma unroll
      for (int j = 0; j < THREAD_COLUMNS; j += 4)
        ReadFour(&b_values[next_k % 2][j], b_from + next_k * BLOCK_COLUMNS + j / 4 * kColumnStep);
#pragma unroll
      for (int i = 0; i < THREAD_ROWS; ++i) {
#pragma unroll
        for (int j = 0; j < THREAD_COLUMNS; ++j)
          sum[i][j] += a_values[i][k % 4] * b_values[k % 2][j];
        if (k % 4 == 3)
          ReadFour(a_values[i],
                   a_from + i * kRowStep * BLOCK_INNER + Swizzled(thread_row, next_k));
      }
    }
  }
#pragma unroll
  for (int i = 0; i < THREAD_ROWS; ++i)
#pragma unroll
    for (int j = 0; j < THREAD_COLUMNS; j += 4)
      StoreFour(out, block_row + thread_row + i * kRowStep,
                block_column + thread_column + j / 4 * kColumnStep, &sum[i][j]);
}
