// Softmax, the row held on chip: one read, one write.
//
// Idea: a row of 65536 values is 256 KB. An SM has 256 KB of registers and 227 KB of shared memory:
// half of the row stays in registers, half in shared memory, and nothing is read twice. With the
// row at hand, first the largest value and then the sum is simpler than online, and no slower.
// Prediction: 105% of the library. 2/3 of the bytes of the rung before. But one block fills an SM,
// and it first only reads, then only computes, then only writes: the memory rests in between.
// Measured: 0.796 ms on an H100, 195% of the library, 89.7% of the speed of a copy: far above the
// prediction. Likely: the start of the next block on an SM overlaps the stores of the last, so the
// memory rests less than was thought.
// Takes rows of up to 90112 columns: 32 values a thread in registers and 56 in shared memory.
//! constant ROWS = x.size(0)
//! constant COLUMNS = x.size(1)
//! tune     BLOCK = 1024
//! constant WIDTH = 4 - 3 * min(COLUMNS % 4, 1)
//! constant EACH = ceil_div(COLUMNS, BLOCK * WIDTH)
//! constant IN_REGISTERS = min(EACH, 32 / WIDTH)
//! dim      held_bytes = 4 * WIDTH * BLOCK * (EACH - IN_REGISTERS)
//! launch   softmax grid=(ROWS) block=(BLOCK) shared=held_bytes args=(x, out)

__device__ float Infinity() { return __int_as_float(0x7f800000); }

// WIDTH: values a load, 1 where rows do not start on 16 bytes. EACH: loads a thread.

__device__ void Load(const float* from, float (&value)[WIDTH]) {
  if constexpr (WIDTH == 4) {
    const float4 four = __ldcs(reinterpret_cast<const float4*>(from));
    value[0] = four.x, value[1] = four.y, value[2] = four.z, value[3] = four.w;
  } else {
    value[0] = __ldcs(from);
  }
}

__device__ void Store(float* to, const float (&value)[WIDTH]) {
  if constexpr (WIDTH == 4)
    __stcs(reinterpret_cast<float4*>(to), make_float4(value[0], value[1], value[2], value[3]));
  else
    __stcs(to, value[0]);
}

__device__ void LoadShared(const float* from, float (&value)[WIDTH]) {
  if constexpr (WIDTH == 4) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    value[0] = four.x, value[1] = four.y, value[2] = four.z, value[3] = four.w;
  } else {
    value[0] = *from;
  }
}

__device__ void StoreShared(float* to, const float (&value)[WIDTH]) {
  if constexpr (WIDTH == 4)
    *reinterpret_cast<float4*>(to) = make_float4(value[0], value[1], value[2], value[3]);
  else
    *to = value[0];
}

__device__ float MaximumOfBlock(float value) {
  __shared__ float of_warp[BLOCK / 32];
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < BLOCK / 32; ++warp) value = fmaxf(value, of_warp[warp]);
  return value;
}

__device__ float SumOfBlock(float value) {
  __shared__ float of_warp[BLOCK / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < BLOCK / 32; ++warp) value += of_warp[warp];
  return value;
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1)
    softmax(const float* __restrict__ x, float* __restrict__ out) {
  extern __shared__ __align__(16) float held[];  // each thread uses places of its own alone
  x += (long long)blockIdx.x * COLUMNS;
  out += (long long)blockIdx.x * COLUMNS;
  const int first = threadIdx.x * WIDTH;
  constexpr int kStep = BLOCK * WIDTH;  // columns that the block reads at once

  float values[IN_REGISTERS][WIDTH];
  float largest = -Infinity();
#pragma unroll
  for (int i = 0; i < IN_REGISTERS; ++i) {
    const int column = first + i * kStep;
    for (float& value : values[i]) value = -Infinity();  // adds nothing
    if (column < COLUMNS) Load(x + column, values[i]);
  }
#pragma unroll 4
  for (int i = IN_REGISTERS; i < EACH; ++i) {
    const int column = first + i * kStep;
    float here[WIDTH];
    for (float& value : here) value = -Infinity();
    if (column < COLUMNS) Load(x + column, here);
    for (const float value : here) largest = fmaxf(largest, value);
    StoreShared(held + first + (i - IN_REGISTERS) * kStep, here);
  }
#pragma unroll
  for (int i = 0; i < IN_REGISTERS; ++i)
    for (const float value : values[i]) largest = fmaxf(largest, value);
  largest = MaximumOfBlock(largest);

  float sum = 0;
#pragma unroll
  for (int i = 0; i < IN_REGISTERS; ++i)
    for (float& value : values[i]) {
      value = expf(value - largest);
      sum += value;
    }
#pragma unroll 2
  for (int i = IN_REGISTERS; i < EACH; ++i) {
    float* const place = held + first + (i - IN_REGISTERS) * kStep;
    float here[WIDTH];
    LoadShared(place, here);
    for (float& value : here) {
      value = expf(value - largest);
      sum += value;
    }
    StoreShared(place, here);
  }
  const float scale = 1 / SumOfBlock(sum);

#pragma unroll
  for (int i = 0; i < IN_REGISTERS; ++i) {
    const int column = first + i * kStep;
    for (float& value : values[i]) value *= scale;
    if (column < COLUMNS) Store(out + column, values[i]);
  }
#pragma unroll 2
  for (int i = IN_REGISTERS; i < EACH; ++i) {
    const int column = first + i * kStep;
    float here[WIDTH];
    LoadShared(held + first + (i - IN_REGISTERS) * kStep, here);
    for (float& value : here) value *= scale;
    if (column < COLUMNS) Store(out + column, here);
  }
}
