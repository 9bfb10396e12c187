// Softmax, a thread a row.
//
// Idea: none; the definition as it is written on paper. A thread finds its row's largest value,
// adds up the exponentials, and reads the row a third time to write the result.
// Prediction: 2% of the library. Neighbouring threads read addresses that lie a row apart, so each
// value of 4 bytes comes with a 32-byte sector, and 4096 threads are 1 warp an SM: 16 times too few
// bytes are in flight.
// Measured: 15.7 ms on an H100, 9.9% of the library, 4.5% of the speed of a copy: five times the
// prediction. Likely: the next seven values of a sector are found in L1, so memory moves it once. A
// form whose sum was a float was wrong on an H100: where half of the values are zeros, they add the
// same number again and again, and all additions round to the same side.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1)
//! tune     BLOCK = 32 64
//! launch   softmax grid=(ceil_div(ROWS, BLOCK)) block=(BLOCK) args=(x, out)

__device__ float Infinity() { return __int_as_float(0x7f800000); }

extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ out) {
  const long long row = (long long)blockIdx.x * BLOCK + threadIdx.x;
  if (row >= ROWS) return;
  x += row * COLUMNS;
  out += row * COLUMNS;

  float largest = -Infinity();
  for (int column = 0; column < COLUMNS; ++column) largest = fmaxf(largest, x[column]);
  double sum = 0;  // 65536 floats added up one by one lose 8 bits where many are the same
  for (int column = 0; column < COLUMNS; ++column) sum += expf(x[column] - largest);
  const float scale = 1 / sum;
  for (int column = 0; column < COLUMNS; ++column) out[column] = expf(x[column] - largest) * scale;
}
