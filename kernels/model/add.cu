// A sum of two matrices, 8 elements a thread.
// Sizes: a multiple of 8 elements.
//! constant PACKS = x.size(0) * x.size(1) / 8
//! launch   add grid=(ceil_div(PACKS, 256)) block=(256) args=(x, residual, out)

// The sums of two pairs of bfloat16, each the upper half of a float.
__device__ unsigned AddPairs(unsigned a, unsigned b) {
  const float low = __uint_as_float(a << 16) + __uint_as_float(b << 16);
  const float high = __uint_as_float(a & 0xffff0000) + __uint_as_float(b & 0xffff0000);
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

extern "C" __global__ void __launch_bounds__(256)
    add(const uint4* x, const uint4* residual, uint4* out) {
  const long long at = blockIdx.x * 256ll + threadIdx.x;
  if (at >= PACKS) return;
  const uint4 a = x[at], b = residual[at];
  out[at] = make_uint4(AddPairs(a.x, b.x), AddPairs(a.y, b.y), AddPairs(a.z, b.z),
                       AddPairs(a.w, b.w));
}
