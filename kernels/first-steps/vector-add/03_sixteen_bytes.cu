// Four elements a thread, 16 bytes an access.
//
// Idea: a thread reads four neighbours with one instruction. There are a quarter of the threads and
// of the instructions, and four times the bytes on their way for each thread that waits. Up to
// three elements are left at the end; the thread that is there takes them one by one.
// Prediction: 100% of the library, which does the same. Both stand at what the memory gives.
// Measured: 268 us on an H100, 102% of the library, 99.6% of the speed of a copy. As predicted.
//! constant COUNT = a.count
//! constant THREADS = 256
//! launch add grid=(ceil_div(COUNT, 4*THREADS)) block=(THREADS) args=(a, b, out)
extern "C" __global__ void __launch_bounds__(THREADS)
    add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out) {
  const long long i = ((long long)blockIdx.x * THREADS + threadIdx.x) * 4;
  if (i + 4 <= COUNT) {
    const float4 left = *reinterpret_cast<const float4*>(a + i);
    const float4 right = *reinterpret_cast<const float4*>(b + i);
    *reinterpret_cast<float4*>(out + i) =
        make_float4(left.x + right.x, left.y + right.y, left.z + right.z, left.w + right.w);
  } else {
    for (long long rest = i; rest < COUNT; ++rest) out[rest] = a[rest] + b[rest];
  }
}
