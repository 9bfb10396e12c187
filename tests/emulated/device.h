// A device for candidates of the device form on the host: every thread of a cluster is a fiber, so
// that barriers, shuffles, shared memory (other blocks', too) and copies that come late work as the
// kernel expects. Fibers run in an order drawn anew each turn: a barrier that is missing shows.
//
// Theory of operation: a fiber runs until it waits at a barrier of its warp, block or cluster, and
// is resumed once the barrier's generation has passed. cp.async copies when it is waited for, as
// late as it may. Static shared memory is one for all blocks: with clusters use the dynamic one.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <type_traits>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#define __restrict__ __restrict

template <typename A, typename B>
std::common_type_t<A, B> max(A a, B b) {
  const std::common_type_t<A, B> x = a, y = b;
  return x > y ? x : y;
}
template <typename A, typename B>
std::common_type_t<A, B> min(A a, B b) {
  const std::common_type_t<A, B> x = a, y = b;
  return x < y ? x : y;
}

struct uint4 {
  unsigned x, y, z, w;
};
struct int4 {
  int x, y, z, w;
};
struct uint2 {
  unsigned x, y;
};
struct int2 {
  int x, y;
};
struct float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

namespace emulated {

constexpr int kLanes = 32;
constexpr size_t kStackBytes = 64 << 10;

struct Barrier {
  int alive = 0, arrived = 0;
  unsigned generation = 0;

  void PassIfAllAreHere() {
    if (alive > 0 && arrived == alive) arrived = 0, ++generation;
  }
};

// Of a warp: its barrier, and a place for each lane's word, for two operations in turn.
struct Warp {
  Barrier barrier;
  uint64_t words[2][kLanes][8];
};

struct alignas(128) SharedLine {
  unsigned char bytes[128];
};

struct Block {
  Barrier barrier;
  std::vector<Warp> warps;
  std::vector<SharedLine> shared;  // aligned, so that a place has one offset in all blocks
  Index index;
  unsigned rank = 0;
};

struct Copy {
  void* to;
  const void* from;
  bool inside;
};

struct Fiber {
  ucontext_t context;
  std::unique_ptr<unsigned char[]> stack;
  Block* block = nullptr;
  Index thread;
  int number = 0;  // in the block
  bool done = false;
  const Barrier* waits_for = nullptr;
  unsigned generation = 0, operations = 0;
  std::vector<std::vector<Copy>> copies = {{}};  // groups, the last one open

  Warp& warp() const { return block->warps[number / kLanes]; }
};

struct Machine {
  Barrier cluster;
  ucontext_t scheduler;
  Fiber* now = nullptr;
  std::function<void()> body;
  std::mt19937 order{1};
};
inline Machine machine;

inline void Wait(Barrier& barrier) {
  Fiber& fiber = *machine.now;
  fiber.waits_for = &barrier, fiber.generation = barrier.generation;
  ++barrier.arrived;
  barrier.PassIfAllAreHere();
  if (barrier.generation != fiber.generation) return;
  swapcontext(&fiber.context, &machine.scheduler);
}

inline void Run() {
  machine.body();
  Fiber& fiber = *machine.now;
  fiber.done = true;
  for (Barrier* barrier : {&fiber.warp().barrier, &fiber.block->barrier, &machine.cluster}) {
    --barrier->alive;
    barrier->PassIfAllAreHere();
  }
  swapcontext(&fiber.context, &machine.scheduler);
}

// Gives every lane of the warp all lanes' words.
template <typename T>
const uint64_t (*Exchange(const T& mine))[8] {
  static_assert(sizeof(T) <= 64);
  Fiber& fiber = *machine.now;
  auto& words = fiber.warp().words[fiber.operations++ % 2];
  std::memcpy(words[fiber.number % kLanes], &mine, sizeof mine);
  Wait(fiber.warp().barrier);
  return words;
}
template <typename T>
T WordOf(const uint64_t (*words)[8], int lane) {
  T word;
  std::memcpy(&word, words[lane], sizeof word);
  return word;
}
inline int Lane() { return machine.now->number % kLanes; }

}  // namespace emulated

#define threadIdx (emulated::machine.now->thread)
#define blockIdx (emulated::machine.now->block->index)
inline Index gridDim, blockDim;

inline void __syncthreads() { emulated::Wait(emulated::machine.now->block->barrier); }
inline void __syncwarp(unsigned = ~0u) { emulated::Wait(emulated::machine.now->warp().barrier); }
inline void __threadfence() {}

template <typename T>
T __shfl_sync(unsigned, T value, int lane) {
  return emulated::WordOf<T>(emulated::Exchange(value), lane % 32);
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return emulated::WordOf<T>(emulated::Exchange(value), emulated::Lane() ^ mask);
}
template <typename T>
T __shfl_up_sync(unsigned, T value, int by) {
  const int from = emulated::Lane() - by;
  const auto words = emulated::Exchange(value);
  return from < 0 ? value : emulated::WordOf<T>(words, from);
}
inline unsigned __ballot_sync(unsigned, bool value) {
  const auto words = emulated::Exchange(static_cast<int>(value));
  unsigned bits = 0;
  for (int lane = 0; lane < 32; ++lane)
    if (emulated::WordOf<int>(words, lane)) bits |= 1u << lane;
  return bits;
}
inline unsigned __match_any_sync(unsigned, unsigned value) {
  const auto words = emulated::Exchange(value);
  unsigned bits = 0;
  for (int lane = 0; lane < 32; ++lane)
    if (emulated::WordOf<unsigned>(words, lane) == value) bits |= 1u << lane;
  return bits;
}
template <typename T>
T Reduce(T value, T (*join)(T, T)) {
  const auto words = emulated::Exchange(value);
  T all = emulated::WordOf<T>(words, 0);
  for (int lane = 1; lane < 32; ++lane) all = join(all, emulated::WordOf<T>(words, lane));
  return all;
}
template <typename T>
T __reduce_max_sync(unsigned, T value) {
  return Reduce<T>(value, [](T a, T b) { return max(a, b); });
}
template <typename T>
T __reduce_min_sync(unsigned, T value) {
  return Reduce<T>(value, [](T a, T b) { return min(a, b); });
}
template <typename T>
T __reduce_add_sync(unsigned, T value) {
  return Reduce<T>(value, [](T a, T b) { return a + b; });
}
template <typename T>
T atomicAdd(T* at, T value) {
  const T before = *at;
  *at += value;
  return before;
}
template <typename T>
T atomicMin(T* at, T value) {
  const T before = *at;
  *at = min(before, value);
  return before;
}
template <typename T>
T atomicMax(T* at, T value) {
  const T before = *at;
  *at = max(before, value);
  return before;
}
template <typename T>
T __ldg(const T* at) {
  return *at;
}
inline int __popc(unsigned value) { return std::popcount(value); }
inline int __clz(unsigned value) { return std::countl_zero(value); }
inline float __uint_as_float(unsigned value) { return std::bit_cast<float>(value); }
inline float __int_as_float(unsigned value) { return std::bit_cast<float>(value); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 4; ++i)
    sum += static_cast<signed char>(a >> 8 * i) * static_cast<signed char>(b >> 8 * i);
  return sum;
}

// The rungs' own names for single instructions, in the place of their inline assembly.
inline float PowerOfTwo(float value) { return std::exp2(value); }
inline unsigned HalfOf(float value) {
  const unsigned bits = __float_as_uint(value);
  if (std::isnan(value)) return 0x7fff;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
inline unsigned PackTwo(float low, float high) { return HalfOf(low) | HalfOf(high) << 16; }
inline float FloatOf(unsigned half) { return __uint_as_float(half << 16); }

inline void CopyAsync(void* to, const void* from, bool inside) {
  emulated::machine.now->copies.back().push_back({to, from, inside});
}
inline void CommitCopies() { emulated::machine.now->copies.emplace_back(); }
template <int pending>
void WaitCopies() {
  auto& groups = emulated::machine.now->copies;
  while (groups.size() > pending + 1) {
    for (const auto& copy : groups.front()) {
      std::memset(copy.to, 0, 16);
      if (copy.inside) std::memcpy(copy.to, copy.from, 16);
    }
    groups.erase(groups.begin());
  }
}

inline void LoadBlocksOf(unsigned (&blocks)[4], const void* row, bool turned) {
  const auto words = emulated::Exchange(row);
  const int g = emulated::Lane() / 4, t = emulated::Lane() % 4;
  const auto half = [&](int block, int r, int column) {
    const auto* at = emulated::WordOf<const unsigned short*>(words, 8 * block + r);
    return static_cast<unsigned>(at[column]);
  };
  for (int i = 0; i < 4; ++i)
    blocks[i] = turned ? half(i, 2 * t, g) | half(i, 2 * t + 1, g) << 16
                       : half(i, g, 2 * t) | half(i, g, 2 * t + 1) << 16;
}
inline void LoadBlocks(unsigned (&blocks)[4], const void* row) { LoadBlocksOf(blocks, row, false); }
inline void LoadBlocksTurned(unsigned (&blocks)[4], const void* row) {
  LoadBlocksOf(blocks, row, true);
}

// Registers of mma.sync: four of a, two of b. `Word` gives the numbers of a register.
struct Registers {
  unsigned a[4], b[2];
};
template <int kNumbers, typename Sum, typename Number>
void MultiplyOf(Sum (&sum)[4], const unsigned* a, const unsigned* b, Number number) {
  const auto words = emulated::Exchange(Registers{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}});
  const int g = emulated::Lane() / 4, t = emulated::Lane() % 4;
  for (int i = 0; i < 4; ++i) {
    const int row = g + i / 2 * 8, column = 2 * t + i % 2;
    for (int half = 0; half < 2; ++half)
      for (int k = 0; k < 4; ++k)
        for (int n = 0; n < kNumbers; ++n) {
          const auto left = emulated::WordOf<Registers>(words, row % 8 * 4 + k);
          const auto right = emulated::WordOf<Registers>(words, column * 4 + k);
          sum[i] += number(left.a[row / 8 + 2 * half], n) * number(right.b[half], n);
        }
  }
}
inline void Multiply(float (&sum)[4], const unsigned (&a)[4], const unsigned* b) {
  MultiplyOf<2>(sum, a, b, [](unsigned word, int n) { return FloatOf(word >> 16 * n & 0xffff); });
}
inline void MultiplyWhole(int (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const unsigned b[] = {b0, b1};
  MultiplyOf<4>(sum, a, b,
                [](unsigned word, int n) { return int{static_cast<signed char>(word >> 8 * n)}; });
}

// Clusters. `mine` lies in the dynamic shared memory of the thread's block.
namespace emulated {
inline std::vector<Block> blocks;  // of the cluster that runs
template <typename T>
T* There(T* mine, unsigned rank) {
  const auto offset = reinterpret_cast<uintptr_t>(mine) -
                      reinterpret_cast<uintptr_t>(machine.now->block->shared.data());
  if (offset >= machine.now->block->shared.size() * 128) std::abort();
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(blocks[rank].shared.data()) + offset);
}
inline unsigned char* Shared() { return machine.now->block->shared.data()->bytes; }
}  // namespace emulated
inline unsigned ClusterRank() { return emulated::machine.now->block->rank; }
inline void ClusterBarrier() { emulated::Wait(emulated::machine.cluster); }
inline void StoreRemote(int* mine, unsigned rank, int value) {
  *emulated::There(mine, rank) = value;
}
inline float2 LoadRemotePair(const float2* mine, unsigned rank) {
  return *emulated::There(mine, rank);
}
inline int4 LoadRemoteFour(const int4* mine, unsigned rank) {
  return *emulated::There(mine, rank);
}
inline float4 LoadRemoteFour(const float4* mine, unsigned rank) {
  return *emulated::There(mine, rank);
}

namespace emulated {

// Runs one cluster to its end.
inline void RunCluster(std::vector<Fiber>& fibers) {
  size_t left = fibers.size();
  std::vector<size_t> order(fibers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  while (left > 0) {
    std::shuffle(order.begin(), order.end(), machine.order);
    bool any = false;
    for (const size_t i : order) {
      Fiber& fiber = fibers[i];
      if (fiber.done) continue;
      if (fiber.waits_for && fiber.waits_for->generation == fiber.generation) continue;
      machine.now = &fiber, any = true;
      swapcontext(&machine.scheduler, &fiber.context);
      if (fiber.done) --left;
    }
    if (!any) {
      std::fprintf(stderr, "the threads wait for each other\n");
      std::abort();
    }
  }
}

// One launch. Clusters are along x.
inline void Launch(Index grid, Index block, unsigned cluster, size_t shared,
                   std::function<void()> body) {
  machine.body = std::move(body);
  gridDim = grid, blockDim = block;
  const int threads = static_cast<int>(block.x * block.y * block.z);
  std::vector<Fiber> fibers(threads * cluster);
  for (Fiber& fiber : fibers) fiber.stack = std::make_unique<unsigned char[]>(kStackBytes);
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; x += cluster) {
        machine.cluster = {static_cast<int>(fibers.size()), 0, 0};
        blocks.assign(cluster, {});
        for (unsigned rank = 0; rank < cluster; ++rank) {
          Block& each = blocks[rank];
          each.barrier.alive = threads;
          each.warps.resize((threads + kLanes - 1) / kLanes);
          each.shared.resize((shared + 127) / 128);
          std::memset(each.shared.data(), 0x7f, each.shared.size() * 128);
          each.index = {x + rank, y, z}, each.rank = rank;
          for (int i = 0; i < threads; ++i) {
            Fiber& fiber = fibers[rank * threads + i];
            fiber.block = &each, fiber.number = i, fiber.done = false, fiber.waits_for = nullptr;
            fiber.operations = 0, fiber.copies = {{}};
            fiber.thread = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
            ++fiber.warp().barrier.alive;
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.get();
            fiber.context.uc_stack.ss_size = kStackBytes;
            makecontext(&fiber.context, Run, 0);
          }
        }
        RunCluster(fibers);
      }
}

}  // namespace emulated
