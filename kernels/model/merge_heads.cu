// Heads become rows: (1, HEADS, ROWS, HEAD_DIM) is written as (ROWS, HEADS, HEAD_DIM), 16 bytes a
// thread and step.
// Sizes: heads of a multiple of 8 elements.
//! constant HEADS = x.size(1)
//! constant ROWS = x.size(2)
//! constant HEAD_DIM = x.size(3)
//! launch   merge grid=(ROWS) block=(256) args=(x, out)

constexpr int kPacks = HEAD_DIM / 8;
static_assert(HEAD_DIM % 8 == 0);

extern "C" __global__ void __launch_bounds__(256) merge(const uint4* x, uint4* out) {
  const long long row = blockIdx.x;
  for (int at = threadIdx.x; at < HEADS * kPacks; at += 256) {
    const int head = at / kPacks, pack = at % kPacks;
    out[row * HEADS * kPacks + at] = x[(head * (long long)ROWS + row) * kPacks + pack];
  }
}
