// Attention over a paged cache of float8, tensor cores.
//
// Idea: bytes become float16 by pairs, in registers, and mma.sync multiplies them. Keys are the
//   matrix of 16 rows and the group's queries the one of 8, so that half of the products are
//   padding for groups of four, and not three quarters; values likewise, turned. A lane takes 16
//   bytes of a row at a time: the order of k is free, if the queries have the same. A warp takes 16
//   tokens at a time from a ring of its own, which cp.async fills, and moves the base of its powers
//   only where a score is far above it, so that most tiles need no shuffle.
// Prediction: 480% of the library, 75% of the speed of a copy, 1.7 times the bf16 kernel's speed:
//   some 150 instructions for 4 KB. What is left of a time that is half as long is start and end.
// Measured: on an H200 80.2 us, 23 times eager, 481% of compiled. In one run by events 71.0 us, and
//   the bfloat16 ladder's best rung there 124: 1.75 times.
// Sizes: heads of 128, groups of up to 8; any pages and lengths.
//! constant HEADS = q.size(1)
//! constant HEAD_DIM = q.size(2)
//! constant PAGE = k_cache.size(1)
//! constant KV_HEADS = k_cache.size(2)
//! constant PAGES_MAX = page_table.size(1)
//! dim      batch = q.size(0)
//! tune     STAGES = 6 4 3
//! launch   attention grid=(KV_HEADS, batch) block=(128) shared=16384*STAGES args=(q, k_cache, v_cache, k_scales, v_scales, page_table, lengths, out)
#define DEVICE __device__ __forceinline__
static_assert(HEAD_DIM == 128);

using Half = unsigned short;  // the bits of a bfloat16
constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kKeys = 16;               // in a tile
constexpr int kChunks = HEAD_DIM / 16;  // of 16 bytes, in a row
constexpr int kSteps = HEAD_DIM / 16;   // products along k
constexpr int kGroup = HEADS / KV_HEADS;
static_assert(kGroup <= 8);
// log2(e) / sqrt(HEAD_DIM): a score times this is an exponent of 2.
constexpr float kScale = 1.4426950409f * 0.0883883476f;

using Tile = uint4[kKeys][kChunks];
struct Stage {
  Tile keys, values;
};
// The warps' sums lie where the ring was.
static_assert(kGroup * HEAD_DIM * 4 * kWarps <= STAGES * kWarps * sizeof(Stage));

// Where chunk `chunk` of row `row` lies: swapped, so that eight lanes find all banks both in two
// neighbouring rows (keys, four chunks of each) and in four rows, every second (values, two each).
DEVICE int PlaceOf(int row, int chunk) { return chunk ^ (row / 2 % 4 * 2) ^ (row % 2 * 4); }

// Starts a copy of 16 bytes, or of zeros.
DEVICE void CopyAsync(void* to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(inside ? 16 : 0)
               : "memory");
}

// The copies started since the last call make a group.
DEVICE void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `pending` groups of this thread are on their way.
template <int pending>
DEVICE void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// ---- Numbers.

// Two numbers of e4m3 as float16, exactly; the first in the lower half.
DEVICE unsigned Widen(unsigned codes) {
  unsigned pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<unsigned short>(codes)));
  return pair;
}

// Two numbers rounded to float16 or to bfloat16, the first in the lower half.
DEVICE unsigned PackHalves(float low, float high) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
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

// sum (16 x 8) += a (16 x 16) b^T (8 x 16). Of the lane numbered 4 g + t, sum is rows g and g + 8,
// columns 2 t and 2 t + 1; a the pairs of k at 2 t and 2 t + 8 in rows g, g + 8; b those in row g.
DEVICE void Multiply(float (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                     const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b[0]), "r"(b[1]));
}

// Turns an 8 x 8 matrix of float16: lane 4 g + t gives row g, columns 2 t and 2 t + 1, and gets
// rows 2 t and 2 t + 1 of column g.
DEVICE unsigned Turn(unsigned pair) {
  unsigned turned;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(pair));
  return turned;
}

// ---- A warp's work: one head of keys and values, one sequence.

// The group's queries, rows of a matrix of 8 whose last ones are zeros: row g of lane 4 g + t, in
// float16, times a power of two that brings the row's largest number to 2^14, and with the sign of
// the keys' scale. No number of bfloat16 that counts beside the largest is lost so. Of step
// 4 i + j, the lane has dimensions 16 (t + 4 i) + 4 j to + 3.
struct Queries {
  unsigned pairs[kSteps][2];
  float unit[2];  // of rows 2 t and 2 t + 1: a product times this is an exponent of 2
};

DEVICE void LoadQueries(Queries& queries, const uint4* group, float k_scale) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  unsigned words[4 * kSteps / 2];
#pragma unroll
  for (int i = 0; i < kSteps / 2; ++i) {
    const uint4 four =
        g < kGroup ? __ldg(group + g * (HEAD_DIM / 8) + 2 * (t + i / 2 * 4) + i % 2) : uint4();
    words[4 * i] = four.x, words[4 * i + 1] = four.y;
    words[4 * i + 2] = four.z, words[4 * i + 3] = four.w;
  }
  float largest = 0;
#pragma unroll
  for (int i = 0; i < 2 * kSteps; ++i) {
    largest = fmaxf(largest, fabsf(__uint_as_float(words[i] << 16)));
    largest = fmaxf(largest, fabsf(__uint_as_float(words[i] & 0xffff0000)));
  }
  largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
  largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
  const int exponent = max((__float_as_int(largest) >> 23) - 127, -100);
  const float grow = copysignf(__int_as_float((127 + 14 - exponent) << 23), k_scale);
  const float unit = __int_as_float((127 - 14 + exponent) << 23) * fabsf(k_scale) * kScale;
  queries.unit[0] = __shfl_sync(~0u, unit, 8 * t);
  queries.unit[1] = __shfl_sync(~0u, unit, 8 * t + 4);
#pragma unroll
  for (int i = 0; i < 2 * kSteps; ++i)
    queries.pairs[i / 2][i % 2] = PackHalves(__uint_as_float(words[i] << 16) * grow,
                                             __uint_as_float(words[i] & 0xffff0000) * grow);
}

// Of queries 2 t and 2 t + 1: `base`, a product that is at most kSlack below the largest so far,
// and this lane's part of the sum of powers (the other parts are in the lanes with the same t).
// values[s][2 e + c] is the weighted sum of dimension 16 g + 2 s + e for query 2 t + c.
struct Sums {
  float base[2] = {MinusInfinity(), MinusInfinity()}, total[2] = {};
  float values[kSteps][4] = {};
};

// The base moves once a product is more than this above it, as an exponent of 2; powers are
// multiplied by 2^kShift, so that float16 holds both the largest and those that hardly count.
constexpr float kSlack = 8, kShift = 6;

// Moves the bases to the largest products, of the tile or before; sums shrink to fit.
DEVICE void MoveBases(Sums& sums, const Queries& queries, float (&most)[2]) {
#pragma unroll
  for (int c = 0; c < 2; ++c) {
#pragma unroll
    for (int step = 4; step < 32; step *= 2)
      most[c] = fmaxf(most[c], __shfl_xor_sync(~0u, most[c], step));
    const float old = sums.base[c], base = fmaxf(most[c], old);
    const float shrink = old == MinusInfinity() ? 0 : PowerOfTwo((old - base) * queries.unit[c]);
    sums.base[c] = base;
    sums.total[c] *= shrink;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) sums.values[s][c] *= shrink, sums.values[s][c + 2] *= shrink;
  }
}

// Adds a tile, of which the first `count` tokens count (at least one); values of others are finite.
// Called with key(row, chunk) and value(row, chunk), which give 16 bytes.
template <typename Keys, typename Values>
DEVICE void AddTile(Sums& sums, const Queries& queries, const Keys& key, const Values& value,
                    int count) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  // Keys times queries. Chunk by chunk, a lane has 16 neighbours of rows g and g + 8: k is in
  // another order than in memory, for the queries as well.
  float even[4] = {}, odd[4] = {};
#pragma unroll
  for (int i = 0; i < kSteps / 4; ++i) {
    const uint4 upper = key(g, t + 4 * i), lower = key(g + 8, t + 4 * i);
    const unsigned u[] = {upper.x, upper.y, upper.z, upper.w};
    const unsigned l[] = {lower.x, lower.y, lower.z, lower.w};
#pragma unroll
    for (int j = 0; j < 4; ++j)
      Multiply(j % 2 ? odd : even, Widen(u[j]), Widen(l[j]), Widen(u[j] >> 16), Widen(l[j] >> 16),
               queries.pairs[4 * i + j]);
  }
  uint4 codes[4];  // of keys 2 t, 2 t + 1, 2 t + 8, 2 t + 9: dimensions 16 g to 16 g + 15
#pragma unroll
  for (int i = 0; i < 4; ++i) codes[i] = value(2 * t + i % 2 + i / 2 * 8, g);

  // Products become powers. product[2 h + c] is that of key g + 8 h and query 2 t + c.
  float product[4], power[4], most[2];
#pragma unroll
  for (int i = 0; i < 4; ++i) product[i] = even[i] + odd[i];
  if (count < kKeys) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (g + i / 2 * 8 >= count) product[i] = MinusInfinity();
  }
  bool beyond = false;
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    most[c] = fmaxf(product[c], product[c + 2]);
    beyond |= !((most[c] - sums.base[c]) * queries.unit[c] <= kSlack);
  }
  if (__any_sync(~0u, beyond)) MoveBases(sums, queries, most);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    power[i] = PowerOfTwo(fmaf(product[i] - sums.base[i % 2], queries.unit[i % 2], kShift));
  if (count < kKeys) {  // a unit may be 0, so that the products do not say it
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (g + i / 2 * 8 >= count) power[i] = 0;
  }
#pragma unroll
  for (int c = 0; c < 2; ++c) sums.total[c] += power[c] + power[c + 2];
  const unsigned weights[2] = {Turn(PackHalves(power[0], power[1])),
                               Turn(PackHalves(power[2], power[3]))};

  // Values times powers: dimensions are rows, so bytes of two keys are paired first.
  const unsigned first[] = {codes[0].x, codes[0].y, codes[0].z, codes[0].w};
  const unsigned second[] = {codes[1].x, codes[1].y, codes[1].z, codes[1].w};
  const unsigned third[] = {codes[2].x, codes[2].y, codes[2].z, codes[2].w};
  const unsigned fourth[] = {codes[3].x, codes[3].y, codes[3].z, codes[3].w};
#pragma unroll
  for (int w = 0; w < kSteps / 2; ++w) {
    const unsigned a = __byte_perm(first[w], second[w], 0x5140);
    const unsigned b = __byte_perm(third[w], fourth[w], 0x5140);
    Multiply(sums.values[2 * w], Widen(a), Widen(a >> 16), Widen(b), Widen(b >> 16), weights);
    const unsigned c = __byte_perm(first[w], second[w], 0x7362);
    const unsigned d = __byte_perm(third[w], fourth[w], 0x7362);
    Multiply(sums.values[2 * w + 1], Widen(c), Widen(c >> 16), Widen(d), Widen(d >> 16), weights);
  }
}

// Adds up the parts of the sums of powers.
DEVICE void FoldTotals(Sums& sums) {
#pragma unroll
  for (int c = 0; c < 2; ++c)
#pragma unroll
    for (int step = 4; step < 32; step *= 2)
      sums.total[c] += __shfl_xor_sync(~0u, sums.total[c], step);
}

// One sequence's keys or values of one head, from its first token on.
struct Cache {
  const uint4 *keys, *values;  // of row 0 of the pool
  const int* table;

  // In the pool; int holds it.
  DEVICE int RowOf(int token) const { return __ldg(table + token / PAGE) * PAGE + token % PAGE; }
};

// Starts copies of a tile; `row` of lane i is that of token i, -1 for zeros.
DEVICE void LoadTile(Stage& stage, const Cache& cache, int row) {
#pragma unroll
  for (int i = threadIdx.x % 32; i < kKeys * kChunks; i += 32) {
    const int r = i / kChunks, c = i % kChunks;
    const int from = __shfl_sync(~0u, row, r);
    const long long at = (long long)max(from, 0) * (KV_HEADS * kChunks) + c;
    CopyAsync(&stage.keys[r][PlaceOf(r, c)], cache.keys + at, from >= 0);
    CopyAsync(&stage.values[r][PlaceOf(r, c)], cache.values + at, from >= 0);
  }
}

// Adds the tokens of a sequence, a warp every fourth tile. Places in the pool are looked up one
// tile before copies start.
DEVICE void AddTokens(Sums& sums, const Queries& queries, const Cache& cache, Stage* ring,
                      int length) {
  const int warp = threadIdx.x / 32, tiles = (length + kKeys - 1) / kKeys;
  const auto look_up = [&](int tile) {
    const int token = tile * kKeys + threadIdx.x % kKeys;
    return token < length ? cache.RowOf(token) : -1;
  };
  int row = look_up(warp), to_load = warp, stage_to_load = 0;
  const auto load = [&] {
    if (to_load < tiles) LoadTile(ring[stage_to_load], cache, row);
    CommitCopies();  // an empty group past the end, so that counting groups counts tiles
    to_load += kWarps;
    row = look_up(to_load);
    stage_to_load = stage_to_load + 1 == STAGES ? 0 : stage_to_load + 1;
  };
  for (int i = 0; i < STAGES - 1; ++i) load();
  int stage = 0;
  for (int tile = warp; tile < tiles; tile += kWarps) {
    WaitCopies<STAGES - 2>();
    __syncwarp();  // this stage is there, and the one before is free
    load();
    const Stage& at = ring[stage];
    AddTile(
        sums, queries, [&](int r, int c) { return at.keys[r][PlaceOf(r, c)]; },
        [&](int r, int c) { return at.values[r][PlaceOf(r, c)]; }, length - tile * kKeys);
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
  WaitCopies<0>();
}

// The warps' sums in shared memory: bases, totals and, apart, values.
struct Parts {
  float base[kWarps][kGroup], total[kWarps][kGroup], unit[kGroup];
};

DEVICE void StoreParts(Parts& parts, float* values, const Sums& sums, const Queries& queries) {
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    const int query = 2 * t + c;
    if (query >= kGroup) continue;
    if (g == 0) {
      parts.base[warp][query] = sums.base[c];
      parts.total[warp][query] = sums.total[c];
      parts.unit[query] = queries.unit[c];
    }
    float* const to = values + (warp * kGroup + query) * HEAD_DIM + 16 * g;
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
      to[2 * s] = sums.values[s][c], to[2 * s + 1] = sums.values[s][c + 2];
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    attention(const uint4* q, const uint4* k_cache, const uint4* v_cache, const float* k_scales,
              const float* v_scales, const int* page_table, const int* lengths, Half* out) {
  extern __shared__ __align__(128) unsigned char shared[];
  Stage* const ring = reinterpret_cast<Stage*>(shared) + threadIdx.x / 32 * STAGES;
  float* const values = reinterpret_cast<float*>(shared);  // then: [kWarps][kGroup][HEAD_DIM]
  __shared__ Parts parts;
  const int kv_head = blockIdx.x, sequence = blockIdx.y;
  const int length = __ldg(lengths + sequence);
  const long long group = ((long long)sequence * HEADS + kv_head * kGroup) * HEAD_DIM;
  Queries queries;
  LoadQueries(queries, q + group / 8, __ldg(k_scales + kv_head));
  const Cache cache = {k_cache + kv_head * kChunks, v_cache + kv_head * kChunks,
                       page_table + (long long)sequence * PAGES_MAX};
  Sums sums;
  AddTokens(sums, queries, cache, ring, length);
  FoldTotals(sums);
  __syncthreads();  // the ring is free for the sums
  StoreParts(parts, values, sums, queries);
  __syncthreads();
  const float v_scale = __ldg(v_scales + kv_head);
  for (int at = threadIdx.x; at < kGroup * HEAD_DIM; at += kThreads) {
    const int row = at / HEAD_DIM;
    float largest = MinusInfinity(), total = 0, sum = 0;
    for (int i = 0; i < kWarps; ++i) largest = fmaxf(largest, parts.base[i][row]);
    for (int i = 0; i < kWarps; ++i) {
      if (parts.base[i][row] == MinusInfinity()) continue;  // a warp without a tile
      const float shrink = PowerOfTwo((parts.base[i][row] - largest) * parts.unit[row]);
      total += shrink * parts.total[i][row];
      sum += shrink * values[i * kGroup * HEAD_DIM + at];
    }
    out[group + at] = PackTwo(length > 0 ? sum / total * v_scale : 0, 0);
  }
}
