// NVFP4 on Blackwell, to be read: a pair of blocks, tensor memory and its matrix unit.
//
// Compiled for sm_100a by tests/blackwell_test.py, and never run: no machine of the project has
// such a GPU. It is no rung of the ladder. With one vector the matrix unit has nothing to gain;
// this is the product for 128 vectors or more, c (rows x columns, float) = a (rows x features) b^T
// (columns x features), where the unit unpacks four bits and applies scales by itself.
//
// Theory of operation. Two blocks of a cluster, a pair, share one product of 256 x 128. Each copies
// its own 128 rows of a and half of the columns, 64 rows of b, so b crosses the bus to an SM once.
// One thread of the first block, the leader, starts products for both: an instruction reads a and b
// from both blocks' shared memory, 64 features at a time, and adds to accumulators in both blocks'
// tensor memory, 128 lanes (rows) x 128 columns of 32 bits in each. Registers hold no part of this
// until the end.
//
// Scales, one byte (e4m3) for 16 features, are read from tensor memory, too. For 64 features and
// 128 rows they are 512 bytes in memory, row r at 16 * (r % 32) + 4 * (r / 32), four bytes each;
// copies of shared memory into tensor memory repeat them for the four groups of 32 lanes. Both
// blocks need those of all 128 columns. In memory a stage's scales follow those of the stage
// before; their maps have rows of 128 bytes, without a swizzle.
//
// A stage of the ring has 256 features: a row of 128 bytes, which the copy engine swaps in units of
// 16 (128B swizzle). Barriers: `full[s]` in the leader counts the bytes of both blocks' copies;
// `empty[s]` in both says that products have read stage s.
#define DEVICE __device__ __forceinline__

using Address = unsigned;  // in shared memory
using Descriptor = unsigned long long;

constexpr int kStages = 4;
constexpr int kRows = 128, kColumns = 128;  // of a block's product; a pair has 256 rows
constexpr int kBytes = 128, kSteps = 4;     // of a stage: a row's bytes, products of 64 features
constexpr int kScaleBytes = 512;            // of 128 rows and one step
constexpr int kScaleRows = kSteps * kScaleBytes / kBytes;  // of a stage's scales, in their map
constexpr int kAccumulators = 128;                         // columns of tensor memory
constexpr int kScaleColumns = 4;                           // of tensor memory, for 512 bytes
constexpr int kAllocated = 256;                            // columns: a power of two
constexpr unsigned kLeader = 0xfeffffff;  // of an address: the same place in the first block

struct alignas(64) TensorMap {
  unsigned long long words[16];
};

struct alignas(1024) Stage {
  unsigned char a[kRows * kBytes], b[kColumns / 2 * kBytes];
  unsigned char a_scales[kSteps * kScaleBytes], b_scales[kSteps * kScaleBytes];
};
constexpr int kStageBytes = sizeof(Stage);

struct Shared {
  Stage stages[kStages];
  unsigned long long full[kStages], empty[kStages], done;
  unsigned tensor_memory;
};

DEVICE Address AddressOf(const void* place) {
  return static_cast<Address>(__cvta_generic_to_shared(place));
}

DEVICE unsigned ClusterRank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

DEVICE void ClusterBarrier() {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

DEVICE void InitBarrier(Address barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Waits for the end of phase `parity`.
DEVICE void Wait(Address barrier, int parity) {
  asm volatile(
      "{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; "
      "@!done bra again;}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// One arrival at a barrier of this block that expects `bytes` more.
DEVICE void ExpectBytes(Address barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Copies a box whose corner is (byte `x`, row `y`); the leader's barrier counts its bytes.
DEVICE void CopyBox(Address to, const TensorMap& map, int x, int y, Address barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::"
      "bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(barrier & kLeader)
      : "memory");
}

// Blackwell's descriptor of a tile in shared memory: address and strides in units of 16 bytes, a
// constant 1 at bit 46, and the swizzle at bit 61 (0 none, 2 of 128 bytes). Hopper has other bits.
DEVICE Descriptor DescriptorOf(Address tile, int stride_bytes, unsigned long long swizzle) {
  return static_cast<Descriptor>(tile >> 4 & 0x3fff) |
         static_cast<Descriptor>(stride_bytes >> 4) << 32 | 1ull << 46 | swizzle << 61;
}

// Of the instruction: e2m1 times e2m1 (types 1), scales e4m3 (0 at bit 23), columns / 8 at bit 17,
// rows / 128 at bit 27.
constexpr unsigned kInstruction =
    1u << 7 | 1u << 10 | (kColumns / 8) << 17 | (2 * kRows / 128) << 27;

// 512 bytes of scales to four columns of tensor memory, in both blocks.
DEVICE void CopyScales(unsigned to, Address from) {
  asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(to),
               "l"(DescriptorOf(from, 128, 0))
               : "memory");
}

// Adds 64 features to the product in tensor memory, or begins it.
DEVICE void Multiply(unsigned sums, Descriptor a, Descriptor b, unsigned a_scales,
                     unsigned b_scales, bool begins) {
  asm volatile(
      "{.reg .pred adds; setp.eq.u32 adds, %6, 0; "
      "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%4], "
      "[%5], adds;}" ::"r"(sums),
      "l"(a), "l"(b), "r"(kInstruction), "r"(a_scales), "r"(b_scales),
      "r"(static_cast<unsigned>(begins))
      : "memory");
}

// Arrives at this place's barrier in both blocks once the products before have ended.
DEVICE void Commit(Address barrier) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%0], %1;" ::"r"(barrier),
      "h"(static_cast<unsigned short>(3))
      : "memory");
}

// The copies of one block: its rows of a, its half of the columns of b, and scales.
DEVICE void Copy(Shared& shared, const TensorMap& a, const TensorMap& b, const TensorMap& a_scales,
                 const TensorMap& b_scales, int stages, int row_block, int column_block) {
  const unsigned rank = ClusterRank();
  for (int i = 0; i < stages; ++i) {
    const int s = i % kStages;
    Stage& stage = shared.stages[s];
    const Address full = AddressOf(&shared.full[s]);
    Wait(AddressOf(&shared.empty[s]), i / kStages % 2 ^ 1);  // a fresh barrier is past parity 1
    if (rank == 0) ExpectBytes(full, 2 * kStageBytes);
    CopyBox(AddressOf(stage.a), a, i * kBytes, row_block * kRows, full);
    CopyBox(AddressOf(stage.b), b, i * kBytes, (2 * column_block + rank) * (kColumns / 2), full);
    CopyBox(AddressOf(stage.a_scales), a_scales, 0, (row_block * stages + i) * kScaleRows, full);
    CopyBox(AddressOf(stage.b_scales), b_scales, 0, (column_block * stages + i) * kScaleRows, full);
  }
}

// The leader's one thread that starts products.
DEVICE void MultiplyStages(Shared& shared, int stages) {
  const unsigned sums = shared.tensor_memory, a_scales = sums + kAccumulators;
  const unsigned b_scales = a_scales + kSteps * kScaleColumns;
  for (int i = 0; i < stages; ++i) {
    const int s = i % kStages;
    const Stage& stage = shared.stages[s];
    Wait(AddressOf(&shared.full[s]), i / kStages % 2);
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      // Copies and products of one thread run in this order: scales are there in time.
      CopyScales(a_scales + step * kScaleColumns, AddressOf(stage.a_scales) + step * kScaleBytes);
      CopyScales(b_scales + step * kScaleColumns, AddressOf(stage.b_scales) + step * kScaleBytes);
      // Eight rows of 128 bytes are 1024 bytes apart; 64 features along a row are 32 bytes.
      Multiply(sums, DescriptorOf(AddressOf(stage.a) + 32 * step, 1024, 2),
               DescriptorOf(AddressOf(stage.b) + 32 * step, 1024, 2),
               a_scales + step * kScaleColumns, b_scales + step * kScaleColumns, i + step == 0);
    }
    Commit(AddressOf(&shared.empty[s]));
  }
  Commit(AddressOf(&shared.done));
}

// A warp's 32 rows of the block's sums: 32 columns at a time from tensor memory to memory.
DEVICE void StoreSums(unsigned sums, float* c, int columns) {
  const int warp = threadIdx.x / 32;
#pragma unroll
  for (int first = 0; first < kColumns; first += 8) {
    float sum[8];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3]), "=f"(sum[4]),
                   "=f"(sum[5]), "=f"(sum[6]), "=f"(sum[7])
                 : "r"(sums + (static_cast<unsigned>(32 * warp) << 16) + first));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    float4* const to = reinterpret_cast<float4*>(c + (long long)threadIdx.x * columns + first);
    to[0] = make_float4(sum[0], sum[1], sum[2], sum[3]);
    to[1] = make_float4(sum[4], sum[5], sum[6], sum[7]);
  }
}

// Grid: (2 * pairs of rows, columns / 128), clusters of 2, 192 threads: four warps that store, one
// that copies, one that multiplies.
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(192)
    multiply_pair(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                  const __grid_constant__ TensorMap a_scales,
                  const __grid_constant__ TensorMap b_scales, float* c, int features, int columns) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const int warp = threadIdx.x / 32, stages = features / (2 * kBytes);
  const unsigned rank = ClusterRank();
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      InitBarrier(AddressOf(&shared.full[s]), 1);
      InitBarrier(AddressOf(&shared.empty[s]), 1);
    }
    InitBarrier(AddressOf(&shared.done), 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (warp == 4)  // one warp of each block, together with its peer
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                     AddressOf(&shared.tensor_memory)),
                 "r"(kAllocated)
                 : "memory");
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  ClusterBarrier();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");

  if (threadIdx.x == 4 * 32) Copy(shared, a, b, a_scales, b_scales, stages, blockIdx.x, blockIdx.y);
  if (threadIdx.x == 5 * 32 && rank == 0) MultiplyStages(shared, stages);
  if (warp < 4) {
    Wait(AddressOf(&shared.done), 0);
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    StoreSums(shared.tensor_memory,
              c + (long long)blockIdx.x * kRows * columns + blockIdx.y * kColumns, columns);
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  ClusterBarrier();  // the peer may still read this block's shared memory
  if (warp == 4) {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
    asm volatile(
        "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(shared.tensor_memory),
        "r"(kAllocated));
  }
}
