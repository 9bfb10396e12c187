// A tile is turned in shared memory: both sides go along rows.
//
// Idea: a block reads a tile of 32x32 along its rows into shared memory, waits, and writes the
// turned tile along the rows of the output. What goes across now goes across shared memory, which
// has no sectors but 32 banks: a column of the tile lies in one bank, and a warp that reads it
// waits 32 times.
// Prediction: 80% of the library: memory moves just the bytes it has to; 32 clocks a warp for a
// read of shared memory are about what memory takes for the same 128 bytes (an SM's share is 14 a
// clock).
// Measured: 551 us on an H100, 101% of the library (a tie), 32% of the speed of a copy: a loss of
// 38% on rung 2, where a gain was predicted. 32 turns a warp for each read of a column cost more
// than sectors did. Likely the library meets the same collisions: it takes as long.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1)
//! constant TILE = 32
//! launch transpose grid=(ceil_div(COLUMNS, TILE), ceil_div(ROWS, TILE)) block=(TILE, TILE) args=(x, out)
extern "C" __global__ void __launch_bounds__(TILE * TILE)
    transpose(const float* __restrict__ x, float* __restrict__ out) {
  __shared__ float tile[TILE][TILE];
  const int first_column = blockIdx.x * TILE, first_row = blockIdx.y * TILE;
  int row = first_row + threadIdx.y, column = first_column + threadIdx.x;
  if (row < ROWS && column < COLUMNS)
    tile[threadIdx.y][threadIdx.x] = x[(long long)row * COLUMNS + column];
  __syncthreads();
  row = first_row + threadIdx.x;
  column = first_column + threadIdx.y;
  if (row < ROWS && column < COLUMNS)
    out[(long long)column * ROWS + row] = tile[threadIdx.x][threadIdx.y];
}
