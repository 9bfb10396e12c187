// Product of two matrices on a GPU with seven choices left open, for `assay search`: 732 variants.
//
// Idea: a block has a tile of C, a thread a part of it in registers, and slices of A and B pass by in
// shared memory. How large the tiles are, how deep a slice is, whether a thread's columns lie side by
// side, and whether the next slice waits in registers depend on the GPU. The first value of each
// line is taken by `assay judge`.
//! constant ROWS = a.size(0)
//! constant INNER = a.size(1)
//! constant COLUMNS = b.size(1)
//! tune     BLOCK_ROWS = 64 32 128
//! tune     BLOCK_COLUMNS = 64 32 128
//! tune     DEPTH = 8 16 32
//! tune     THREAD_ROWS = 4 2 8
//! tune     THREAD_COLUMNS = 4 2 8
//! tune     SPREAD = 0 1
//! tune     AHEAD = 0 1
//! require  BLOCK_ROWS * BLOCK_COLUMNS >= 64 * THREAD_ROWS * THREAD_COLUMNS
//! require  BLOCK_ROWS * BLOCK_COLUMNS <= 512 * THREAD_ROWS * THREAD_COLUMNS
//! constant THREADS = BLOCK_ROWS * BLOCK_COLUMNS / (THREAD_ROWS * THREAD_COLUMNS)
//! launch   product grid=(ceil_div(COLUMNS, BLOCK_COLUMNS), ceil_div(ROWS, BLOCK_ROWS)) block=(THREADS) args=(a, b, out)
constexpr int kAcross = BLOCK_COLUMNS / THREAD_COLUMNS, kDown = BLOCK_ROWS / THREAD_ROWS;
constexpr int kOfA = BLOCK_ROWS * DEPTH, kOfB = DEPTH * BLOCK_COLUMNS;  // values of a slice
constexpr int kLoadsOfA = (kOfA + THREADS - 1) / THREADS;
constexpr int kLoadsOfB = (kOfB + THREADS - 1) / THREADS;
constexpr int kPitch = DEPTH + 1;  // of a row of A: no two rows begin in one bank

// A thread's part of a slice of A and of one of B, on the way to shared memory.
struct Slice {
  float a[kLoadsOfA], b[kLoadsOfB];

  __device__ void Load(const float* from_a, const float* from_b, int row0, int column0, int k0) {
#pragma unroll
    for (int n = 0; n < kLoadsOfA; ++n) {
      const int i = n * THREADS + threadIdx.x, row = row0 + i / DEPTH, k = k0 + i % DEPTH;
      a[n] = i < kOfA && row < ROWS && k < INNER ? from_a[size_t(row) * INNER + k] : 0;
    }
#pragma unroll
    for (int n = 0; n < kLoadsOfB; ++n) {
      const int i = n * THREADS + threadIdx.x;
      const int k = k0 + i / BLOCK_COLUMNS, column = column0 + i % BLOCK_COLUMNS;
      b[n] = i < kOfB && k < INNER && column < COLUMNS ? from_b[size_t(k) * COLUMNS + column] : 0;
    }
  }

  __device__ void Store(float* to_a, float* to_b) const {
#pragma unroll
    for (int n = 0; n < kLoadsOfA; ++n) {
      const int i = n * THREADS + threadIdx.x;
      if (i < kOfA) to_a[i / DEPTH * kPitch + i % DEPTH] = a[n];
    }
#pragma unroll
    for (int n = 0; n < kLoadsOfB; ++n) {
      const int i = n * THREADS + threadIdx.x;
      if (i < kOfB) to_b[i] = b[n];
    }
  }
};

// The thread's n-th column in the block's tile.
__device__ int ColumnOf(int n) {
  const int across = threadIdx.x % kAcross;
  return SPREAD ? across + n * kAcross : across * THREAD_COLUMNS + n;
}

// The thread's n-th row in the block's tile.
__device__ int RowOf(int n) { return threadIdx.x / kAcross + n * kDown; }

extern "C" __global__ void __launch_bounds__(THREADS)
    product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out) {
  __shared__ float of_a[BLOCK_ROWS * kPitch], of_b[kOfB];
  const int row0 = blockIdx.y * BLOCK_ROWS, column0 = blockIdx.x * BLOCK_COLUMNS;
  float sums[THREAD_ROWS][THREAD_COLUMNS] = {};
  Slice slice;
  if (AHEAD) slice.Load(a, b, row0, column0, 0);
  for (int k0 = 0; k0 < INNER; k0 += DEPTH) {
    if (!AHEAD) slice.Load(a, b, row0, column0, k0);
    slice.Store(of_a, of_b);
    __syncthreads();
    if (AHEAD && k0 + DEPTH < INNER) slice.Load(a, b, row0, column0, k0 + DEPTH);
#pragma unroll
    for (int k = 0; k < DEPTH; ++k) {
      float column_values[THREAD_COLUMNS];
#pragma unroll
      for (int n = 0; n < THREAD_COLUMNS; ++n)
        column_values[n] = of_b[k * BLOCK_COLUMNS + ColumnOf(n)];
#pragma unroll
      for (int m = 0; m < THREAD_ROWS; ++m) {
        const float value = of_a[RowOf(m) * kPitch + k];
#pragma unroll
        for (int n = 0; n < THREAD_COLUMNS; ++n) sums[m][n] += value * column_values[n];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int m = 0; m < THREAD_ROWS; ++m)
#pragma unroll
    for (int n = 0; n < THREAD_COLUMNS; ++n) {
      const int row = row0 + RowOf(m), column = column0 + ColumnOf(n);
      if (row < ROWS && column < COLUMNS) out[size_t(row) * COLUMNS + column] = sums[m][n];
    }
}
