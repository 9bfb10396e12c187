// Latent attention over a paged cache, wgmma, for many heads.
//
// Idea: with 128 heads there are as many products as bytes, so that the matrix unit counts, and
//   rows read for 16 heads alone come eight times from L2. A block has 64 heads. Their results,
//   64 x 512, fill half of the registers of two groups of 128 threads, 256 columns each. Both
//   compute all scores, so that they exchange nothing: a third of all products is made twice.
//   Latents are read as they lie, rows across, as values.
// Prediction: 450% of the library with 128 heads, 60% of the speed of wgmma: 3400 clocks of
//   products for a tile, and 500 in which both groups compute powers. With 16 heads three quarters
//   are padding, and it loses to rung 4.
// Sizes: latents of 512 and 64 numbers of position; any heads, pages and lengths.
//! constant HEADS = q.size(1)
//! constant WIDTH = q.size(2)
//! constant LATENT = out.size(2)
//! constant PAGE = cache.size(1)
//! constant PAGES_MAX = page_table.size(1)
//! dim      batch = q.size(0)
//! launch   attention grid=(ceil_div(HEADS, 64), batch) block=(256) shared=64*2*WIDTH*3 args=(q, cache, page_table, lengths, out)
#define DEVICE __device__ __forceinline__
static_assert(LATENT == 512 && WIDTH == 576);

using Half = unsigned short;  // the bits of a bfloat16
using Address = unsigned;     // in shared memory
using Descriptor = unsigned long long;
constexpr int kGroup = 128, kThreads = 2 * kGroup;  // threads that share an instruction; all
constexpr int kHeads = 64, kTokens = 64;            // of a block, in a tile
constexpr int kChunks = WIDTH / 8;                  // of 16 bytes, in a row
constexpr int kColumns = LATENT / 2;                // of a group
// The scores times this are exponents of 2: 1 / sqrt(192) / ln(2).
constexpr float kScale = 0.104117546f;

// 64 rows, in parts of 64 columns: rows of 128 bytes, chunks of 16 bytes swapped as c ^ row % 8.
using Tile = uint4[kChunks / 8][64][8];

// Starts a copy of 16 bytes, or of zeros.
DEVICE void CopyAsync(void* to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(inside ? 16 : 0)
               : "memory");
}

// Waits for all copies of this thread, and shows them to the matrix unit.
DEVICE void WaitCopies() {
  asm volatile("cp.async.commit_group; cp.async.wait_group 0; fence.proxy.async.shared::cta;" ::
                   : "memory");
}

DEVICE Address SharedAddress(const void* pointer) {
  return static_cast<Address>(__cvta_generic_to_shared(pointer));
}

// A tile of rows of 128 bytes, swapped as above, eight rows every 1024 bytes, from an address that
// is a multiple of 1024. Fields: address / 16 in bits 0 to 13; `next` / 16 from bit 16; 1024 / 16
// from bit 32; 1 in bits 62 and 63 for this swapping. `next` is unused for queries and keys, which
// are added up along their rows; for values, added up across them, it leads to the next 64 columns.
constexpr __host__ __device__ Descriptor DescriptorOf(Address tile, unsigned next) {
  return Descriptor{(tile & 0x3FFFF) >> 4} | Descriptor{next >> 4} << 16 |
         Descriptor{1024 / 16} << 32 | Descriptor{1} << 62;
}
static_assert(DescriptorOf(0x400, 16) == 0x4000004000010040);

// Sixteen columns further along: 32 bytes, and after 64 columns the next part of the tile.
template <int rows>
DEVICE constexpr Descriptor Columns(int step) {
  return (step / 4 * rows * 128 + step % 4 * 32) / 16;
}

// Before the first multiplication, and after its registers were touched by other instructions.
DEVICE void FenceSums() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Waits for all multiplications of the group.
DEVICE void WaitMultiplies() {
  asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// Keeps the compiler from using registers before the wait that stands above.
template <int count>
DEVICE void Settle(float (&sum)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sum[i])::"memory");
}

#define FOUR(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
#define REGISTERS_32                                                                      \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, " \
  "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define REGISTERS_128                                                                    \
  REGISTERS_32                                                                           \
      ", "                                                                               \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, " \
      "%110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, "   \
      "%123, %124, %125, %126, %127"

// Starts sum (64 x 64) = a (64 x 16) b^T (64 x 16), added to what sum holds where `add`. Of thread
// 32 w + 4 g + t, sum[4 j + 2 h + e] is row 16 w + g + 8 h, column 8 j + 2 t + e.
DEVICE void Multiply(float (&sum)[32], Descriptor a, Descriptor b, int add) {
  asm volatile(
      "{\n.reg .pred p;\n"
      "setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" REGISTERS_32
      "}, "
      "%32, %33, p, 1, 1, 0, 0;\n}"
      : SIXTEEN(0), SIXTEEN(16)
      : "l"(a), "l"(b), "r"(add));
}

// Starts sum (64 x 256) += a (64 x 16) b (16 x 256), with a in registers: pairs of rows g and g + 8
// at columns 2 t, then of both at 2 t + 8. The last 1: b's rows run along those of sum.
DEVICE void Multiply(float (&sum)[128], const unsigned* a, Descriptor b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" REGISTERS_128
               "}, "
               "{%128, %129, %130, %131}, %132, 1, 1, 1, 1;"
               : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), SIXTEEN(64), SIXTEEN(80),
                 SIXTEEN(96), SIXTEEN(112)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// Two numbers rounded to bfloat16, the first in the lower half.
DEVICE unsigned PackTwo(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

DEVICE float PowerOfTwo(float value) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(value));
  return power;
}

DEVICE float MinusInfinity() { return __int_as_float(0xff800000); }

// Of the two rows of a thread, g and g + 8 of its warp's 16: the largest score so far, and this
// thread's part of the sum of powers; the other parts are those of the threads with the same g.
struct Rows {
  float largest[2], total[2];
};

// Scores of a tile, of which the first `count` tokens count, become weights: powers of the distance
// to the largest score so far, rounded, in pairs. What was summed up is to be multiplied by
// `shrink`.
DEVICE void Weigh(float (&score)[32], int count, Rows& rows, unsigned (&weight)[16],
                  float (&shrink)[2]) {
  if (count < kTokens) {
#pragma unroll
    for (int i = 0; i < 32; ++i)
      if (i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2 >= count) score[i] = MinusInfinity();
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float largest = rows.largest[h], total = 0;
#pragma unroll
    for (int i = 2 * h; i < 32; i += 4) largest = fmaxf(largest, fmaxf(score[i], score[i + 1]));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    // A tile has a token that counts, so `largest` is a number.
    shrink[h] = PowerOfTwo((rows.largest[h] - largest) * kScale);  // 0 at first
    rows.largest[h] = largest;
#pragma unroll
    for (int i = 2 * h; i < 32; i += 4) {
      const float low = PowerOfTwo((score[i] - largest) * kScale);
      const float high = PowerOfTwo((score[i + 1] - largest) * kScale);
      weight[i / 2] = PackTwo(low, high);
      total += low + high;
    }
    rows.total[h] = rows.total[h] * shrink[h] + total;
  }
}

// A sequence's rows of the pool.
struct Cache {
  const uint4* rows;  // row 0 of the pool
  const int* table;
  int length;

  // Of token `token`, -1 past the end; int holds it.
  DEVICE int RowOf(int token) const {
    return token < length ? table[token / PAGE] * PAGE + token % PAGE : -1;
  }
};

// Starts copies of a warp's eight rows of a tile; `row` of lane i is that of row i, -1 for zeros.
DEVICE void LoadTile(Tile& tile, const uint4* rows, int row) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll 3
  for (int i = 0; i < 8 * kChunks / 32; ++i) {
    const int r = (32 * i + lane) / kChunks, c = (32 * i + lane) % kChunks;
    const int from = __shfl_sync(~0u, row, r), to = 8 * warp + r;
    CopyAsync(&tile[c / 8][to][c % 8 ^ to % 8], rows + (long long)max(from, 0) * kChunks + c,
              from >= 0);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention(const uint4* q, const uint4* rows, const int* page_table, const int* lengths,
              Half* out) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Tile* const tiles = reinterpret_cast<Tile*>(shared);  // the queries, and two stages
  const int sequence = blockIdx.y, first = blockIdx.x * kHeads, heads = min(kHeads, HEADS - first);
  const int group = threadIdx.x / kGroup, warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
  const long long head = (long long)sequence * HEADS + first;
  const Cache cache = {rows, page_table + (long long)sequence * PAGES_MAX, lengths[sequence]};
  const int in_tile = 8 * warp + threadIdx.x % 8;  // the row that this lane looks up
  const Address queries = SharedAddress(tiles);

  LoadTile(tiles[0], q + head * kChunks, in_tile < heads ? in_tile : -1);
  if (cache.length > 0) LoadTile(tiles[1], rows, cache.RowOf(in_tile));
  int row = cache.RowOf(kTokens + in_tile);  // of the tile after
  Rows state = {{MinusInfinity(), MinusInfinity()}, {0, 0}};
  float sum[kColumns / 2] = {};
  int stage = 0;
  for (int start = 0; start < cache.length; start += kTokens, stage ^= 1) {
    WaitCopies();
    __syncthreads();  // this tile is there, and the other stage is no longer read
    if (start + kTokens < cache.length) LoadTile(tiles[2 - stage], rows, row);
    row = cache.RowOf(start + 2 * kTokens + in_tile);
    const Address tile = SharedAddress(tiles[1 + stage]);
    float score[32], shrink[2];
    unsigned weight[16];
    FenceSums();
#pragma unroll
    for (int step = 0; step < WIDTH / 16; ++step)
      Multiply(score, DescriptorOf(queries, 16) + Columns<64>(step),
               DescriptorOf(tile, 16) + Columns<64>(step), step > 0);
    WaitMultiplies();
    Settle(score);
    Weigh(score, cache.length - start, state, weight, shrink);
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) sum[i] *= shrink[i / 2 % 2];
    FenceSums();
    const Address values = tile + group * (kColumns / 64) * 64 * 128;
#pragma unroll
    for (int step = 0; step < kTokens / 16; ++step)  // of 16 tokens: two times 1024 bytes
      Multiply(sum, &weight[4 * step], DescriptorOf(values, 64 * 128) + step * (2048 / 16));
    WaitMultiplies();
    Settle(sum);
  }
  WaitCopies();
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float total = state.total[h];
    total += __shfl_xor_sync(~0u, total, 1);
    total += __shfl_xor_sync(~0u, total, 2);
    const float factor = cache.length > 0 ? 1 / total : 0;
    const int mine = warp % 4 * 16 + g + 8 * h;
    if (mine >= heads) continue;
    Half* const to = out + (head + mine) * LATENT + group * kColumns + threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j)
      *reinterpret_cast<unsigned*>(to + 8 * j) =
          PackTwo(sum[4 * j + 2 * h] * factor, sum[4 * j + 2 * h + 1] * factor);
  }
}
