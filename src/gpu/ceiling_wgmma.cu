// What the matrix units of sm_90a reach through wgmma, for `assay doctor`. Compiled by NVRTC.
//
// Theory of operation. Operands are rows of 128 bytes along k, whatever the element. A block holds
// 128 rows of A, 64 for each of its two groups of four warps, and 256 of B in shared memory, in the
// layout that a descriptor calls swizzled by 128 bytes: eight rows are 1024 bytes in a row, and the
// 16 bytes numbered c of row r lie at r * 128 + 16 * (c ^ (r % 8)). An instruction takes 32 bytes
// of k; the next begins 32 bytes on. Each group adds A B^T to its accumulators `rounds` times,
// sixteen instructions in flight; while one group waits for its last, the other's go on. All is
// written, and the doctor compares it with products of its own.

namespace {

constexpr int kRowBytes = 128, kChunks = kRowBytes / 16;
constexpr int kRowsA = 128, kRowsB = 256, kGroupRows = 64;
constexpr int kRounds = 4;  // in flight together

using Sums = float[128];
using Descriptor = unsigned long long;
constexpr Descriptor kStep = 32 / 16;  // along k

#define NAMES                                                                                  \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                    \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "           \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "           \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "           \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "           \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "           \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "     \
  "%111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, " \
  "%126, %127}, "
#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
#define ALL                                                                                 \
  SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), SIXTEEN(64), SIXTEEN(80), SIXTEEN(96), \
      SIXTEEN(112)

// d += A B^T, sixteen instructions: four steps along k, four times. The numbers: add to d; A and B
// as they are; for 16 bits both rows along k. One statement: sixteen take half a minute to compile.
#define STEP(shape, a, b, numbers) \
  "wgmma.mma_async.sync.aligned." shape " " NAMES a ", " b ", " numbers ";\n"
#define ROUND(shape, numbers)                                               \
  STEP(shape, "%128", "%132", numbers)                                      \
  STEP(shape, "%129", "%133", numbers) STEP(shape, "%130", "%134", numbers) \
      STEP(shape, "%131", "%135", numbers)
#define WGMMA(type, shape, numbers)                                                          \
  struct type {                                                                              \
    static __device__ void Multiply(Sums& d, Descriptor a, Descriptor b) {                   \
      asm volatile(ROUND(shape, numbers) ROUND(shape, numbers) ROUND(shape, numbers)         \
                       ROUND(shape, numbers)                                                 \
                   : ALL                                                                     \
                   : "l"(a), "l"(a + kStep), "l"(a + 2 * kStep), "l"(a + 3 * kStep), "l"(b), \
                     "l"(b + kStep), "l"(b + 2 * kStep), "l"(b + 3 * kStep));                \
    }                                                                                        \
  };
WGMMA(Float16, "m64n256k16.f32.f16.f16", "1, 1, 1, 0, 0")
WGMMA(BFloat16, "m64n256k16.f32.bf16.bf16", "1, 1, 1, 0, 0")
WGMMA(Tf32, "m64n256k8.f32.tf32.tf32", "1, 1, 1")
WGMMA(Float8, "m64n256k32.f32.e4m3.e4m3", "1, 1, 1")

// Start in units of 16 bytes; eight rows every 1024 bytes; swizzled by 128 bytes.
__device__ Descriptor DescriptorOf(unsigned shared_address) {
  constexpr Descriptor kLeading = 1, kEightRows = 1024 / 16, kSwizzle128 = 1;
  return (shared_address & 0x3FFFF) >> 4 | kLeading << 16 | kEightRows << 32 | kSwizzle128 << 62;
}

template <typename Type>
__device__ void Products(const uint4* a, const uint4* b, float* out, int rounds) {
  __shared__ __align__(1024) unsigned char tiles[(kRowsA + kRowsB) * kRowBytes];
  for (int i = threadIdx.x; i < (kRowsA + kRowsB) * kChunks; i += blockDim.x) {
    const int row = i / kChunks, chunk = i % kChunks;
    *reinterpret_cast<uint4*>(tiles + row * kRowBytes + 16 * (chunk ^ row % 8)) =
        row < kRowsA ? a[i] : b[i - kRowsA * kChunks];
  }
  // What ordinary stores wrote is shown to the matrix units.
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  const int group = threadIdx.x / 128, warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  const auto base = static_cast<unsigned>(__cvta_generic_to_shared(tiles));
  const Descriptor rows = DescriptorOf(base + group * kGroupRows * kRowBytes);
  const Descriptor columns = DescriptorOf(base + kRowsA * kRowBytes);
  Sums sums;
#pragma unroll
  for (int i = 0; i < 128; ++i) sums[i] = 0;
  for (int round = 0; round < rounds; round += kRounds) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    Type::Multiply(sums, rows, columns);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  float* block = out + static_cast<long long>(blockIdx.x) * kRowsA * kRowsB;
  const int row = group * kGroupRows + 16 * warp + lane / 4, column = 2 * (lane % 4);
#pragma unroll
  for (int i = 0; i < 128; ++i)
    block[(row + 8 * (i / 2 % 2)) * kRowsB + column + 8 * (i / 4) + i % 2] = sums[i];
}

}  // namespace

#define PRODUCTS(name, type)                                         \
  extern "C" __global__ void __launch_bounds__(256, 1)               \
      name(const uint4* a, const uint4* b, float* out, int rounds) { \
    Products<type>(a, b, out, rounds);                               \
  }
PRODUCTS(assay_wgmma_float16, Float16)
PRODUCTS(assay_wgmma_bfloat16, BFloat16)
PRODUCTS(assay_wgmma_tf32, Tf32)
PRODUCTS(assay_wgmma_float8, Float8)
