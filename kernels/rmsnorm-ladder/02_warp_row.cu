// RMSNorm in bfloat16, a warp a row.
//
// Idea: the 32 lanes of a warp read 32 neighbours, 64 bytes that are all used.
// Prediction: 45% of the library. The row of 16 KB is still in L1 or L2 when it is read again, so
// memory is read once; but each load brings 64 bytes a warp, and two such loads follow each other
// slowly.
// Measured: 91.6 us on an H100, 53% of the library, 49% of the speed of a copy: a little better
// than predicted.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1)
//! tune     BLOCK = 128 256
//! launch   rms_norm grid=(ceil_div(ROWS, BLOCK / 32)) block=(BLOCK) args=(x, weight, out)

constexpr float kEpsilon = 1e-6f;  // EPSILON of the problem file

// bfloat16 is the upper half of a float.
using Bits = unsigned short;
__device__ float ToFloat(Bits bits) {
  return __uint_as_float(static_cast<unsigned int>(bits) << 16);
}
__device__ Bits ToBits(float value) {  // rounds to nearest even
  Bits bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

extern "C" __global__ void rms_norm(const Bits* __restrict__ x, const Bits* __restrict__ weight,
                                    Bits* __restrict__ out) {
  const long long row = (long long)blockIdx.x * (BLOCK / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= ROWS) return;
  x += row * COLUMNS;
  out += row * COLUMNS;

  float squares = 0;
  for (int column = lane; column < COLUMNS; column += 32)
    squares += ToFloat(x[column]) * ToFloat(x[column]);
  for (int step = 16; step > 0; step /= 2) squares += __shfl_xor_sync(~0u, squares, step);
  const float scale = rsqrtf(squares / COLUMNS + kEpsilon);
  for (int column = lane; column < COLUMNS; column += 32)
    out[column] = ToBits(ToFloat(x[column]) * scale * ToFloat(weight[column]));
}
