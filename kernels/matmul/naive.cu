// Product of two matrices on a GPU as it is written on paper: a thread an element of the output.
//
// Idea: none. Each thread reads a row of A and a column of B for itself, so that every value is
// fetched thousands of times. `assay demo gap --device cuda` sets it beside PyTorch's BLAS.
// expected: slower at small
//! constant ROWS = a.size(0)
//! constant INNER = a.size(1)
//! constant COLUMNS = b.size(1)
//! tune     TILE = 16
//! launch naive grid=(ceil_div(COLUMNS, TILE), ceil_div(ROWS, TILE)) block=(TILE, TILE) args=(a, b, out)
extern "C" __global__ void naive(const float* a, const float* b, float* out) {
  const long long row = blockIdx.y * TILE + threadIdx.y;
  const long long column = blockIdx.x * TILE + threadIdx.x;
  if (row >= ROWS || column >= COLUMNS) return;
  float sum = 0;
  for (long long k = 0; k < INNER; ++k) sum += a[row * INNER + k] * b[k * COLUMNS + column];
  out[row * COLUMNS + column] = sum;
}
