// A stays as it lies: rows of 64 bytes in shared memory, read four k at a time.
//
// Idea: turning A cost four colliding writes a thread. A thread can just as well read four
// neighbouring k of one row: eight reads of 16 bytes, then, serve four k, as many as before.
// Neighbouring lanes take neighbouring rows, 64 bytes apart, which would collide: so the four
// 16-byte chunks of a row change places, by an exclusive or with the row's number. A row of a tile
// is 16 floats for that, not 8.
// Prediction: 83% of the library: a few percent for the writes that are saved. What matters is that
// a tile is now a plain copy of memory, which hardware can make without a thread. Four k of eight
// rows take 32 registers instead of 8: eight addresses are spilled at the cap of 128 (two blocks an
// SM).
// Measured: 3.80 ms, 79.2%: no gain, where four points were predicted. What is saved in writes is
// paid in registers, most likely: at the cap of 128, of 1024 multiplies 411 take two values from
// one register bank (see rung 16).
//! constant ROWS = a.size(0)
//! constant INNER = a.size(1)
//! constant COLUMNS = b.size(1)
//! constant BLOCK_ROWS = 128
//! constant BLOCK_COLUMNS = 128
//! constant BLOCK_INNER = 16
//! constant WARP_ROWS = 64
//! constant WARP_COLUMNS = 32
//! constant THREAD_ROWS = 8
//! constant THREAD_COLUMNS = 8
//! constant THREADS = BLOCK_ROWS * BLOCK_COLUMNS / (THREAD_ROWS * THREAD_COLUMNS)
//! launch product grid=(ceil_div(COLUMNS, BLOCK_COLUMNS), ceil_div(ROWS, BLOCK_ROWS)) block=(THREADS) args=(a, b, out)

// Four neighbours of a row, zeros where the matrix ends. They are 16 bytes of one read if every row
// begins on 16 bytes.
template <int kRows, int kColumns>
__device__ float4 LoadFour(const float* __restrict__ matrix, int row, int column) {
  float4 four = {};
  if (row >= kRows || column >= kColumns) return four;
  const float* from = matrix + size_t(row) * kColumns + column;
  if constexpr (kColumns % 4 == 0) return *reinterpret_cast<const float4*>(from);
  four.x = from[0];
  if (column + 1 < kColumns) four.y = from[1];
  if (column + 2 < kColumns) four.z = from[2];
  if (column + 3 < kColumns) four.w = from[3];
  return four;
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

// Where the chunk of four k that begins at `k` lies in its row of a tile of A.
__device__ int Swizzled(int row, int k) { return k ^ row / 2 % 4 * 4; }

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out) {
  __shared__ __align__(16) float a_tile[BLOCK_ROWS][BLOCK_INNER];
  __shared__ __align__(16) float b_tile[BLOCK_INNER][BLOCK_COLUMNS];
  constexpr int kWarpsAcross = BLOCK_COLUMNS / WARP_COLUMNS;
  constexpr int kRowStep = 8;         // from a row of a thread's to the next
  constexpr int kColumnStep = 4 * 4;  // from four columns to the next four
  const int block_row = blockIdx.y * BLOCK_ROWS, block_column = blockIdx.x * BLOCK_COLUMNS;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int thread_row = warp / kWarpsAcross * WARP_ROWS + lane / 2 % 8;
  const int thread_column = warp % kWarpsAcross * WARP_COLUMNS + (lane % 2 + lane / 16 * 2) * 4;
  float sum[THREAD_ROWS][THREAD_COLUMNS] = {};
  for (int first = 0; first < INNER; first += BLOCK_INNER) {
#pragma unroll
    for (int begin = 0; begin < BLOCK_ROWS * BLOCK_INNER; begin += THREADS * 4) {
      const int i = begin + threadIdx.x * 4;
      const int row = i / BLOCK_INNER, k = i % BLOCK_INNER;
      *reinterpret_cast<float4*>(&a_tile[row][Swizzled(row, k)]) =
          LoadFour<ROWS, INNER>(a, block_row + row, first + k);
    }
#pragma unroll
    for (int begin = 0; begin < BLOCK_INNER * BLOCK_COLUMNS; begin += THREADS * 4) {
      const int i = begin + threadIdx.x * 4;
      const int k = i / BLOCK_COLUMNS, column = i % BLOCK_COLUMNS;
      *reinterpret_cast<float4*>(&b_tile[k][column]) =
          LoadFour<INNER, COLUMNS>(b, first + k, block_column + column);
    }
    __syncthreads();
#pragma unroll
    for (int four = 0; four < BLOCK_INNER; four += 4) {
      float a_values[THREAD_ROWS][4];
#pragma unroll
      for (int i = 0; i < THREAD_ROWS; ++i)
        *reinterpret_cast<float4*>(a_values[i]) = *reinterpret_cast<const float4*>(
            &a_tile[thread_row + i * kRowStep][Swizzled(thread_row, four)]);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float b_values[THREAD_COLUMNS];
#pragma unroll
        for (int j = 0; j < THREAD_COLUMNS; j += 4)
          *reinterpret_cast<float4*>(b_values + j) = *reinterpret_cast<const float4*>(
              &b_tile[four + k][thread_column + j / 4 * kColumnStep]);
#pragma unroll
        for (int i = 0; i < THREAD_ROWS; ++i)
#pragma unroll
          for (int j = 0; j < THREAD_COLUMNS; ++j) sum[i][j] += a_values[i][k] * b_values[j];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < THREAD_ROWS; ++i)
#pragma unroll
    for (int j = 0; j < THREAD_COLUMNS; j += 4)
      StoreFour(out, block_row + thread_row + i * kRowStep,
                block_column + thread_column + j / 4 * kColumnStep, &sum[i][j]);
}
