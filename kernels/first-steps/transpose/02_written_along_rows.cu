// A thread an element: read down a column, written along a row.
//
// Idea: one side must go across. Reads do it better: a warp's 32 sectors stay in the first-level
// cache, and the other warps of the block, which want the other bytes, find them there. A write
// goes to L2 each time.
// Prediction: 50% of the library.
// Measured: 399 us on an H100, 139% of the library, 45% of the speed of a copy: 2.9 times rung 1,
// where 1.7 times was predicted. The first-level cache does its part better than was thought.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1)
//! constant TILE = 32
//! launch transpose grid=(ceil_div(ROWS, TILE), ceil_div(COLUMNS, TILE)) block=(TILE, TILE) args=(x, out)
extern "C" __global__ void __launch_bounds__(TILE * TILE)
    transpose(const float* __restrict__ x, float* __restrict__ out) {
  const int row = blockIdx.x * TILE + threadIdx.x;
  const int column = blockIdx.y * TILE + threadIdx.y;
  if (row < ROWS && column < COLUMNS)
    out[(long long)column * ROWS + row] = x[(long long)row * COLUMNS + column];
}
