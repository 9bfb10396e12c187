// A block of 128x256, a thread of 8x16: 24 reads for 128 multiplies.
//
// Idea: twice the columns a thread. For four k a thread makes 8 + 16 reads of 16 bytes for 512
// multiplies, where it was 8 + 8 for 256, and a block fetches 3/4 of the bytes a multiply from L2.
// It takes 128 registers for the sums alone, so one block of eight warps fills an SM; with 128 sums
// that do not wait for each other, two warps keep a scheduler busy.
// Prediction: 94% of the library: multiplies are 93% of the instructions of the loop instead of
// 86%, and every other instruction costs a multiply its turn.
// Measured: 3.18 ms, 93.3%. As predicted.
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
//! tune STAGES = 4 3 5
//! constant STAGE_FLOATS = (BLOCK_ROWS + BLOCK_COLUMNS) * BLOCK_INNER
//! launch product grid=(ceil_div(COLUMNS, BLOCK_COLUMNS), ceil_div(ROWS, BLOCK_ROWS)) block=(THREADS) shared=4*STAGES*STAGE_FLOATS args=(a, b, out)

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

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    product(const float* a, const float* b, float* __restrict__ out) {
  extern __shared__ __align__(128) float stages[];
  constexpr int kWarpsAcross = BLOCK_COLUMNS / WARP_COLUMNS;
  constexpr int kRowStep = 8;         // from a row of a thread's to the next
  constexpr int kColumnStep = 4 * 4;  // from four columns to the next four
  constexpr int kTiles = (INNER + BLOCK_INNER - 1) / BLOCK_INNER;
  const int block_row = blockIdx.y * BLOCK_ROWS, block_column = blockIdx.x * BLOCK_COLUMNS;
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
