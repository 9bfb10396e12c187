// Attention over a paged cache of float8, shares that meet in a cluster.
//
// Idea: the blocks that share a sequence are a cluster, and put their sums together through each
//   other's shared memory: no second launch, no sums in memory. Four blocks for each of 32
//   sequences are 128, on 132 multiprocessors. The ring is small enough for two blocks on one.
// Prediction: 520% of the library, 83% of the speed of a copy, 1.9 times the bf16 kernel's speed:
//   3 us less than rung 4. With mixed lengths slower than rung 4, as shares are uneven.
// Measured: on an H200 90.3 us, 428% of compiled: a loss of 10% on rung 04; clusters of four blocks
//   share processors unevenly.
// Sizes: heads of 128, groups of up to 8, up to 16 heads of keys; any pages and lengths.
//! constant BATCH = q.size(0)
//! constant HEADS = q.size(1)
//! constant HEAD_DIM = q.size(2)
//! constant PAGE = k_cache.size(1)
//! constant KV_HEADS = k_cache.size(2)
//! constant PAGES_MAX = page_table.size(1)
//! tune     SPLITS = 4 8 2
//! tune     ROOM = 98304 196608
//! constant STAGES = max(2, min(8, ROOM / (32 * KV_HEADS * HEAD_DIM)))
//! launch   attention grid=(SPLITS, BATCH) block=(32*KV_HEADS+32) cluster=(SPLITS) shared=32*KV_HEADS*HEAD_DIM*STAGES+528*HEADS+16*STAGES args=(q, k_cache, v_cache, k_scales, v_scales, page_table, lengths, out)
#define DEVICE __device__ __forceinline__
static_assert(HEAD_DIM == 128);

using Half = unsigned short;                    // the bits of a bfloat16
using Address = unsigned;                       // in shared memory
constexpr int kKeys = 16;                       // tokens in a tile
constexpr int kChunks = HEAD_DIM / 16;          // of 16 bytes, in a head's row
constexpr int kSteps = HEAD_DIM / 16;           // products along k
constexpr int kRowBytes = KV_HEADS * HEAD_DIM;  // of a token: all heads
constexpr int kTileBytes = kKeys * kRowBytes;   // of keys, and then of values
constexpr int kWarps = KV_HEADS;                // one a head; another one makes copies
constexpr int kThreads = 32 * (kWarps + 1);
constexpr int kGroup = HEADS / KV_HEADS;
static_assert(kGroup <= 8 && KV_HEADS <= 16);
// Pages that a tile can lie in.
constexpr int kRuns = PAGE % kKeys == 0   ? 1
                      : kKeys % PAGE == 0 ? kKeys / PAGE
                                          : (kKeys + PAGE - 2) / PAGE + 1;
// log2(e) / sqrt(HEAD_DIM): a score times this is an exponent of 2.
constexpr float kScale = 1.4426950409f * 0.0883883476f;

DEVICE Address SharedAddress(const void* pointer) {
  return static_cast<Address>(__cvta_generic_to_shared(pointer));
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

// ---- Barriers in shared memory. A phase ends when all arrivals and all expected bytes are there.

DEVICE void InitBarrier(Address barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Shows initialised barriers to the copy engine; a block's barrier shows them to its threads.
DEVICE void FenceBarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// What this thread wrote to shared memory comes before later copies of the copy engine.
DEVICE void FenceCopies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

DEVICE void Arrive(Address barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and adds `bytes` to what the phase waits for.
DEVICE void ArriveExpecting(Address barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// True once the phase of this parity has ended; may suspend the thread for a while first.
DEVICE bool HasEnded(Address barrier, unsigned parity) {
  unsigned ended;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(ended)
      : "r"(barrier), "r"(parity)
      : "memory");
  return ended != 0;
}

// Waits for the end of the phase of this parity. A wait without end is a bug: it ends in a trap.
DEVICE void Wait(Address barrier, unsigned parity) {
  for (int tries = 0; !HasEnded(barrier, parity); ++tries)
    if (tries == 1 << 24) __trap();
}

// Starts a copy of neighbouring bytes, a multiple of 16; it is counted by `barrier` in bytes.
DEVICE void LoadBytes(Address target, const void* from, unsigned bytes, Address barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(target),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

// A place in the ring of stages, and the parity of its barriers there.
struct Ring {
  int stage = 0;
  unsigned parity = 0;
  DEVICE void Advance() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// ---- Copies: a warp of its own makes them, a tile after the other.

// The inputs that tiles are made of.
struct Pool {
  const unsigned char *keys, *values;
  const int *page_table, *lengths;
};

// A tile's tokens in the pool: the first one, how many, and the pages that they lie in.
struct Place {
  int token = 0, count = 0;
  int pages[kRuns];
};

DEVICE Place PlaceOf(const Pool& pool, int sequence, int token, int length) {
  Place place;
  place.token = token;
  place.count = min(kKeys, length - token);
  const int* const table = pool.page_table + (long long)sequence * PAGES_MAX;
#pragma unroll
  for (int r = 0; r < kRuns; ++r) {
    const int page = token / PAGE + r;
    place.pages[r] = page * PAGE < token + place.count ? __ldg(table + page) : 0;
  }
  return place;
}

// Starts the copies of a tile, of all heads: from each page it has a stretch of neighbours.
DEVICE void LoadTile(const Pool& pool, const Place& place, Address stage, Address full) {
  ArriveExpecting(full, 2 * place.count * kRowBytes);
#pragma unroll
  for (int r = 0; r < kRuns; ++r) {
    const int page = place.token / PAGE + r;
    const int from = max(page * PAGE, place.token);
    const int to = min((page + 1) * PAGE, place.token + place.count);
    if (from >= to) continue;
    const long long at = ((long long)place.pages[r] * PAGE + from % PAGE) * kRowBytes;
    const Address target = stage + (from - place.token) * kRowBytes;
    const unsigned bytes = (to - from) * kRowBytes;
    LoadBytes(target, pool.keys + at, bytes, full);
    LoadBytes(target + kTileBytes, pool.values + at, bytes, full);
  }
}

// Called by one warp: loads `tiles` tiles, number i of which lies at place_of(i). Each lane looks
// up every 32nd, so that one wait for the table serves 32 tiles; copies start in order.
template <typename PlaceOfTile>
DEVICE void LoadTiles(const Pool& pool, int tiles, Address stages, Address full, Address empty,
                      const PlaceOfTile& place_of) {
  Ring ring;
  for (int first = 0; first < tiles; first += 32) {
    const int mine = first + threadIdx.x % 32;
    Place place;
    if (mine < tiles) place = place_of(mine);
    for (int tile = first; tile < min(first + 32, tiles); ++tile, ring.Advance()) {
      if (tile == mine) {
        // Parity 1 of a fresh barrier counts as ended: the first round finds all stages empty.
        Wait(empty + 8 * ring.stage, ring.parity ^ 1);
        LoadTile(pool, place, stages + ring.stage * 2 * kTileBytes, full + 8 * ring.stage);
      }
      __syncwarp();  // a lane must not wait for a phase before the one in front of it
    }
  }
}

// ---- Sums of tiles: a warp for each head.

// Takes the next tile from the ring, of which the first `count` tokens count.
DEVICE void TakeTile(Sums& sums, const Queries& queries, unsigned char* stages, Address full,
                     Address empty, Ring& ring, int count) {
  const int lane = threadIdx.x % 32;
  unsigned char* const keys = stages + ring.stage * 2 * kTileBytes + threadIdx.x / 32 * HEAD_DIM;
  unsigned char* const values = keys + kTileBytes;
  Wait(full + 8 * ring.stage, ring.parity);
  if (count < kKeys) {
    // What an earlier tile, or nobody, left behind the last token may be NaN, and 0 NaN = NaN.
    for (int i = lane; i < (kKeys - count) * kChunks; i += 32)
      *reinterpret_cast<uint4*>(values + (count + i / kChunks) * kRowBytes + i % kChunks * 16) =
          make_uint4(0, 0, 0, 0);
    FenceCopies();
    __syncwarp();
  }
  const auto at = [](const unsigned char* rows, int row, int chunk) {
    return *reinterpret_cast<const uint4*>(rows + row * kRowBytes + chunk * 16);
  };
  AddTile(
      sums, queries, [&](int row, int chunk) { return at(keys, row, chunk); },
      [&](int row, int chunk) { return at(values, row, chunk); }, count);
  __syncwarp();  // all lanes have read
  if (lane == 0) Arrive(empty + 8 * ring.stage);
  ring.Advance();
}

// ---- The cluster.

DEVICE int RankInCluster() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// A barrier of all threads of the cluster. What a thread wrote before can be read by all after it.
DEVICE void SyncCluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Reads what lies at `mine` in the shared memory of the cluster's block `rank`.
DEVICE float4 ReadFrom(const float4* mine, int rank) {
  float4 value;
  asm volatile(
      "{.reg .u32 there; mapa.shared::cluster.u32 there, %4, %5; "
      "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];}"
      : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
      : "r"(SharedAddress(mine)), "r"(rank)
      : "memory");
  return value;
}

// Writes a head's sums to shared memory: four columns of a query in a float4.
DEVICE void StoreShare(const Sums& sums, const Queries& queries, float4* to, float4* ends) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int c = 0; c < 2; ++c) {
    const int query = 2 * t + c;
    if (query >= kGroup) continue;
    if (g == 0) ends[query] = make_float4(sums.base[c], sums.total[c], queries.unit[c], 0);
#pragma unroll
    for (int s = 0; s < kSteps; s += 2)
      to[query * (HEAD_DIM / 4) + 4 * g + s / 2] =
          make_float4(sums.values[s][c], sums.values[s][c + 2], sums.values[s + 1][c],
                      sums.values[s + 1][c + 2]);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    attention(const uint4* q, const unsigned char* k_cache, const unsigned char* v_cache,
              const float* k_scales, const float* v_scales, const int* page_table,
              const int* lengths, uint2* out) {
  extern __shared__ __align__(128) unsigned char stages[];
  float4* const parts = reinterpret_cast<float4*>(stages + STAGES * 2 * kTileBytes);
  float4* const ends = parts + HEADS * (HEAD_DIM / 4);
  const Address full = SharedAddress(ends + HEADS), empty = full + 8 * STAGES;
  const int rank = RankInCluster(), sequence = blockIdx.y;
  const int length = __ldg(lengths + sequence);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      InitBarrier(full + 8 * stage, 1);
      InitBarrier(empty + 8 * stage, kWarps);
    }
    FenceBarrierInit();
  }
  __syncthreads();
  const int tiles = (length + kKeys - 1) / kKeys;
  const int begin = tiles * rank / SPLITS, end = tiles * (rank + 1) / SPLITS;
  const int head = threadIdx.x / 32;  // of keys
  if (head == kWarps) {
    const Pool pool = {k_cache, v_cache, page_table, lengths};
    LoadTiles(pool, end - begin, SharedAddress(stages), full, empty,
              [&](int i) { return PlaceOf(pool, sequence, (begin + i) * kKeys, length); });
  } else {
    Queries queries;
    const long long at = (long long)sequence * HEADS + head * kGroup;
    LoadQueries(queries, q + at * (HEAD_DIM / 8), __ldg(k_scales + head));
    Sums sums;
    Ring ring;
    for (int tile = begin; tile < end; ++tile)
      TakeTile(sums, queries, stages, full, empty, ring, length - tile * kKeys);
    FoldTotals(sums);
    StoreShare(sums, queries, parts + head * kGroup * (HEAD_DIM / 4), ends + head * kGroup);
  }
  __syncwarp();
  SyncCluster();
  // Each block puts together an equal part of the results, a thread four columns.
  uint2* const results = out + (long long)sequence * HEADS * (HEAD_DIM / 4);
  for (int at = rank * kThreads + threadIdx.x; at < HEADS * (HEAD_DIM / 4);
       at += SPLITS * kThreads) {
    const int query = at / (HEAD_DIM / 4);
    float4 its[SPLITS], more[SPLITS];
#pragma unroll
    for (int i = 0; i < SPLITS; ++i) its[i] = ReadFrom(ends + query, i);
#pragma unroll
    for (int i = 0; i < SPLITS; ++i) more[i] = ReadFrom(parts + at, i);
    float largest = MinusInfinity(), total = 0;
    float4 sum = {};
#pragma unroll
    for (int i = 0; i < SPLITS; ++i) largest = fmaxf(largest, its[i].x);
#pragma unroll
    for (int i = 0; i < SPLITS; ++i) {
      // A block without a tile has no base.
      const float factor =
          its[i].x == MinusInfinity() ? 0 : PowerOfTwo((its[i].x - largest) * its[i].z);
      total += its[i].y * factor;
      sum.x += more[i].x * factor, sum.y += more[i].y * factor;
      sum.z += more[i].z * factor, sum.w += more[i].w * factor;
    }
    const float factor = length > 0 ? __ldg(v_scales + query / kGroup) / total : 0;
    results[at] = make_uint2(PackTwo(sum.x * factor, sum.y * factor),
                             PackTwo(sum.z * factor, sum.w * factor));
  }
  SyncCluster();  // no block ends while others read its memory
}
