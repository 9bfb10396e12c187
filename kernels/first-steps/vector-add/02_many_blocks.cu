// A thread an element, in as many blocks as that takes.
//
// Idea: the loop goes away. Blocks are numbered, and so are the threads of a block: the two numbers
// say which element a thread makes. The hardware deals the blocks out to all SMs. The last block
// may reach beyond the end, so every thread asks whether its element is there.
// Prediction: 98% of the library: 32 neighbouring threads read 128 neighbouring bytes, and enough
// of them wait at once to keep the memory busy.
// Measured: 297 us on an H100, 92% of the library, 90% of the speed of a copy, not 98%. Likely: two
// reads of 4 bytes a thread are too few bytes on their way.
//! constant COUNT = a.count
//! constant THREADS = 256
//! launch add grid=(ceil_div(COUNT, THREADS)) block=(THREADS) args=(a, b, out)
extern "C" __global__ void __launch_bounds__(THREADS)
    add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out) {
  const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
  if (i < COUNT) out[i] = a[i] + b[i];
}
