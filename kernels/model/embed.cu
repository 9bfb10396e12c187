// The rows of a table that tokens name: a block a token, 16 bytes a thread and step.
// Sizes: rows of a multiple of 8 elements.
//! constant HIDDEN = embedding.size(1)
//! launch   embed grid=(tokens.size(0)) block=(256) args=(tokens, embedding, out)

static_assert(HIDDEN % 8 == 0);
constexpr int kPacks = HIDDEN / 8;

extern "C" __global__ void embed(const long long* tokens, const uint4* embedding, uint4* out) {
  const uint4* const from = embedding + tokens[blockIdx.x] * kPacks;
  for (int i = threadIdx.x; i < kPacks; i += 256) out[(long long)blockIdx.x * kPacks + i] = from[i];
}
