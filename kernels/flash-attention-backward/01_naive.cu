// Idea: the formulas as they are written, a warp a row. One kernel makes the gradient of a query,
//   visiting all keys, another those of a key and its value, visiting all queries. A lane has four
//   of a row's numbers, and every score is a sum over a warp. No score is stored: all are computed
//   twice, so that there are seven products instead of five.
// Prediction: 1% of the library: some 60 instructions of a warp for a score.
// Measured: right on an H200; not timed.
// Sizes: any LENGTH; HEAD_DIM 128.
//! constant HEADS = query.size(0) * query.size(1)
//! constant LENGTH = query.size(2)
//! constant HEAD_DIM = query.size(3)
//! constant CAUSAL = causal.size(0) - 1
//! launch   visit_keys grid=(ceil_div(LENGTH, 8), HEADS) block=(256) args=(query, key, value, output, d_output, logsumexp, out)
//! launch   visit_queries grid=(ceil_div(LENGTH, 8), HEADS) block=(256) args=(query, key, value, output, d_output, logsumexp, out1, out2)
#define DEVICE __device__ __forceinline__
static_assert(HEAD_DIM == 128);

using Four = uint2;  // numbers of 16 bits

DEVICE float4 ToFloats(Four four) {
  return {__uint_as_float(four.x << 16), __uint_as_float(four.x & 0xffff0000),
          __uint_as_float(four.y << 16), __uint_as_float(four.y & 0xffff0000)};
}

DEVICE Four FromFloats(float4 x) {
  Four four;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(four.x) : "f"(x.y), "f"(x.x));
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(four.y) : "f"(x.w), "f"(x.z));
  return four;
}

// This lane's numbers of a row.
DEVICE long long PlaceOf(int head, int row) {
  return ((long long)head * LENGTH + row) * 32 + threadIdx.x % 32;
}
DEVICE float4 Load(const Four* tensor, int head, int row) {
  return ToFloats(tensor[PlaceOf(head, row)]);
}

// The sum of products of two rows.
DEVICE float Product(float4 a, float4 b) {
  float sum = a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  return sum;
}

DEVICE void Add(float4& sum, float factor, float4 row) {
  sum.x += factor * row.x;
  sum.y += factor * row.y;
  sum.z += factor * row.z;
  sum.w += factor * row.w;
}

DEVICE float4 Scaled(float4 row) {
  const float scale = rsqrtf(HEAD_DIM);
  return {row.x * scale, row.y * scale, row.z * scale, row.w * scale};
}

extern "C" __global__ void __launch_bounds__(256)
    visit_keys(const Four* query, const Four* key, const Four* value, const Four* output,
               const Four* d_output, const float* logsumexp, Four* d_query) {
  const int head = blockIdx.y, row = blockIdx.x * 8 + threadIdx.x / 32;
  if (row >= LENGTH) return;
  const float4 q = Load(query, head, row), d = Load(d_output, head, row);
  const float sum = logsumexp[(long long)head * LENGTH + row];
  const float delta = Product(Load(output, head, row), d);
  float4 result = {0, 0, 0, 0};
  const int seen = CAUSAL ? row + 1 : LENGTH;
  for (int i = 0; i < seen; ++i) {
    const float4 k = Load(key, head, i);
    const float weight = expf(Product(q, k) * rsqrtf(HEAD_DIM) - sum);
    Add(result, weight * (Product(d, Load(value, head, i)) - delta), k);
  }
  d_query[PlaceOf(head, row)] = FromFloats(Scaled(result));
}

extern "C" __global__ void __launch_bounds__(256)
    visit_queries(const Four* query, const Four* key, const Four* value, const Four* output,
                  const Four* d_output, const float* logsumexp, Four* d_key, Four* d_value) {
  const int head = blockIdx.y, row = blockIdx.x * 8 + threadIdx.x / 32;
  if (row >= LENGTH) return;
  const float4 k = Load(key, head, row), v = Load(value, head, row);
  float4 key_result = {0, 0, 0, 0}, value_result = {0, 0, 0, 0};
  for (int i = CAUSAL ? row : 0; i < LENGTH; ++i) {
    const float4 q = Load(query, head, i), d = Load(d_output, head, i);
    const float weight =
        expf(Product(q, k) * rsqrtf(HEAD_DIM) - logsumexp[(long long)head * LENGTH + i]);
    Add(value_result, weight, d);
    Add(key_result, weight * (Product(d, v) - Product(Load(output, head, i), d)), q);
  }
  d_key[PlaceOf(head, row)] = FromFloats(Scaled(key_result));
  d_value[PlaceOf(head, row)] = FromFloats(value_result);
}
