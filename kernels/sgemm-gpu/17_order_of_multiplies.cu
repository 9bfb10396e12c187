// The order of the multiplies: columns at equal places of their 16 bytes, forth and back.
//
// Idea: 16 bytes read together lie in four neighbouring registers, so their banks alternate: the
// first and third value of every read are in one bank, the second and fourth in the other. In the
// order 0 4 8 12, 1 5 9 13, ... a row goes through one bank four times before it changes, and the
// compiler finds sums in the other bank for all four. Every second row goes backwards and begins
// with the value of B that was used last. What the compiler makes of it is another order still, but
// a better one. BLOCK_INNER = 8 halves the loop to 18 KB, should the cache for instructions matter;
// a block of 256 columns is rung 14's shape.
// Prediction: 105% of the library: 2315 clocks instead of 2387 by the count of the rung before.
// Measured: 2.89 and 2.87 ms in two runs, 99.7% (98.4 to 100.7: a tie) and 96.7% (95.4 to 98.8) of
// the library, which took 2.87 and 2.77 ms; 72% and 73% of the peak: gains of 1.3% and 2.3%, where
// 3% were predicted. By the count 2435 us are explained; the other 450 us (likely
// waits, ends of blocks and a lower clock under this load) are open.
//! constant ROWS = a.size(0)
//! constant INNER = a.size(1)
//! constant COLUMNS = b.size(1)
//! constant BLOCK_ROWS = 128
//! tune BLOCK_COLUMNS = 128 256
//! tune BLOCK_INNER = 16 8
//! constant WARP_ROWS = 64
//! constant WARP_COLUMNS = 64
//! constant THREAD_ROWS = 8
//! constant THREAD_COLUMNS = 16
//! constant THREADS = BLOCK_ROWS * BLOCK_COLUMNS / (THREAD_ROWS * THREAD_COLUMNS)
//! constant TILES_DOWN = ceil_div(ROWS, BLOCK_ROWS)
//! constant TILES_ACROSS = ceil_div(COLUMNS, BLOCK_COLUMNS)
//! tune GROUP = 16 8 32
//! tune STAGES = 4 3 5
//! constant A_PITCH = BLOCK_ROWS + 4
//! constant STAGE_FLOATS = (A_PITCH + BLOCK_COLUMNS) * BLOCK_INNER
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

// One value of A, zero where it ends.
__device__ void CopyOne(float* to, const float* from, const float* a, int row, int k) {
  const bool wanted = kWholeTiles || (row < ROWS && k < INNER);
  CopyAsync4(to, wanted ? from : a, wanted);
}
// Four neighbours of a row of B, zeros where it ends. They are one copy of 16 bytes if every row
// begins on 16 bytes.
__device__ void CopyFour(float* to, const float* from, const float* b, int k, int column) {
  if constexpr (COLUMNS % 4 == 0) {
    const bool wanted = kWholeTiles || (k < INNER && column < COLUMNS);
    CopyAsync16(to, wanted ? from : b, wanted);
  } else {
    for (int i = 0; i < 4; ++i) {
      const bool wanted = k < INNER && column + i < COLUMNS;
      CopyAsync4(to + i, wanted ? from + i : b, wanted);
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

// The same number, of which the compiler knows nothing any more.
__device__ int Opaque(int number) {
  asm volatile("" : "+r"(number));
  return number;
}
__device__ const float* OpaqueAddress(const float* address) {
  asm volatile("" : "+l"(address));
  return address;
}

// The copies of a thread. All those of a tile lie at fixed distances from the first one.
struct Copies {
  const float *a, *b;
  const float *a_from, *b_from;   // the first values of the next tiles
  int a_row, a_k, b_k, b_column;  // where these are in the matrices
  int a_to, b_to;                 // and in a stage

  // Starts to copy the next tiles of A and B; a stage holds one of each, that of A turned.
  __device__ void Start(float* stages, int stage) {
    constexpr int kRows = THREADS / 8;  // rows of A that all threads copy at once, eight k of each
    constexpr int kInner = THREADS * 4 / BLOCK_COLUMNS;  // rows of B
    a_from = OpaqueAddress(a_from);
    b_from = OpaqueAddress(b_from);
    float* a_tile = stages + Opaque(stage * STAGE_FLOATS + a_to);
    float* b_tile = stages + Opaque(stage * STAGE_FLOATS + b_to);
#pragma unroll
    for (int row = 0; row < BLOCK_ROWS; row += kRows)
#pragma unroll
      for (int k = 0; k < BLOCK_INNER; k += 8)
        CopyOne(a_tile + k * A_PITCH + row, a_from + size_t(row) * INNER + k, a, a_row + row,
                a_k + k);
#pragma unroll
    for (int k = 0; k < BLOCK_INNER; k += kInner)
      CopyFour(b_tile + k * BLOCK_COLUMNS, b_from + size_t(k) * COLUMNS, b, b_k + k, b_column);
    a_from += BLOCK_INNER;
    b_from += size_t(BLOCK_INNER) * COLUMNS;
    a_k += BLOCK_INNER;
    b_k += BLOCK_INNER;
  }
};
__device__ Copies CopiesOf(const float* a, const float* b, int block_row, int block_column) {
  const int i = threadIdx.x * 4, row = threadIdx.x / 8, k = threadIdx.x % 8;
  Copies copies = {a, b};
  copies.a_row = block_row + row;
  copies.a_k = k;
  copies.b_k = i / BLOCK_COLUMNS;
  copies.b_column = block_column + i % BLOCK_COLUMNS;
  copies.a_from = a + size_t(copies.a_row) * INNER + copies.a_k;
  copies.b_from = b + size_t(copies.b_k) * COLUMNS + copies.b_column;
  copies.a_to = k * A_PITCH + row;
  copies.b_to = A_PITCH * BLOCK_INNER + i;
  return copies;
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

extern "C" __global__ void __launch_bounds__(THREADS, 256 / THREADS)
    product(const float* a, const float* b, float* __restrict__ out) {
  extern __shared__ __align__(128) float stages[];
  constexpr int kWarpsAcross = BLOCK_COLUMNS / WARP_COLUMNS;
  constexpr int kRowStep = 8 * 4;     // from four rows of a thread's to the next four
  constexpr int kColumnStep = 4 * 4;  // from four columns to the next four
  constexpr int kTiles = (INNER + BLOCK_INNER - 1) / BLOCK_INNER;
  const Place place = PlaceOf(blockIdx.x);
  const int block_row = place.down * BLOCK_ROWS, block_column = place.across * BLOCK_COLUMNS;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int thread_row = warp / kWarpsAcross * WARP_ROWS + lane / 2 % 8 * 4;
  const int thread_column = warp % kWarpsAcross * WARP_COLUMNS + (lane % 2 + lane / 16 * 2) * 4;
  float sum[THREAD_ROWS][THREAD_COLUMNS] = {};
  Copies copies = CopiesOf(a, b, block_row, block_column);
  for (int tile = 0; tile < STAGES; ++tile) {
    if (tile < kTiles) copies.Start(stages, tile);
    CommitCopies();
  }
  WaitForCopies<STAGES - 1>();
  __syncthreads();

  float a_values[2][THREAD_ROWS], b_values[2][THREAD_COLUMNS];
  int a_at = thread_row;
  int b_at = A_PITCH * BLOCK_INNER + thread_column;
#pragma unroll
  for (int i = 0; i < THREAD_ROWS; i += 4)
    ReadFour(&a_values[0][i], stages + a_at + i / 4 * kRowStep);
#pragma unroll
  for (int j = 0; j < THREAD_COLUMNS; j += 4)
    ReadFour(&b_values[0][j], stages + b_at + j / 4 * kColumnStep);

  int stage = 0;
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int k = 0; k < BLOCK_INNER; ++k) {
      if (k == BLOCK_INNER - 1) {
        WaitForCopies<STAGES - 2>();  // this thread's part of the next tile has arrived,
        __syncthreads();              // and so has everybody's; this tile is not read any more
        if (tile + STAGES < kTiles) copies.Start(stages, stage);
        CommitCopies();
        stage = stage == STAGES - 1 ? 0 : stage + 1;
        a_at = Opaque(stage * STAGE_FLOATS + thread_row);
        b_at = Opaque(stage * STAGE_FLOATS + A_PITCH * BLOCK_INNER + thread_column);
      }
      const int next_k = (k + 1) % BLOCK_INNER;
#pragma unroll
      for (int i = 0; i < THREAD_ROWS; i += 4)
        ReadFour(&a_values[next_k % 2][i], stages + a_at + next_k * A_PITCH + i / 4 * kRowStep);
#pragma unroll
      for (int j = 0; j < THREAD_COLUMNS; j += 4)
        ReadFour(&b_values[next_k % 2][j],
                 stages + b_at + next_k * BLOCK_COLUMNS + j / 4 * kColumnStep);
      // Columns 0 4 8 12, 1 5 9 13, ...: equal places of the four reads. Odd rows go backwards.
#pragma unroll
      for (int i = 0; i < THREAD_ROWS; ++i)
#pragma unroll
        for (int n = 0; n < THREAD_COLUMNS; ++n) {
          const int place = i % 2 == 0 ? n : THREAD_COLUMNS - 1 - n, j = place % 4 * 4 + place / 4;
          sum[i][j] += a_values[k % 2][i] * b_values[k % 2][j];
        }
    }
  }
#pragma unroll
  for (int i = 0; i < THREAD_ROWS; ++i)
#pragma unroll
    for (int j = 0; j < THREAD_COLUMNS; j += 4)
      StoreFour(out, block_row + thread_row + i / 4 * kRowStep + i % 4,
                block_column + thread_column + j / 4 * kColumnStep, &sum[i][j]);
}
