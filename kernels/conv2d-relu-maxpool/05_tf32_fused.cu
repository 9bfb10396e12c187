// ReLU and pooling in the epilogue of wgmma; a row is kept from tile to tile.
//
// Idea: a block walks down an image, two rows of pixels a tile, 2 p + 1 and 2 p + 2. With row 2 p,
// pooled along itself and kept in registers from the tile before, they make row p of the result: no
// atomics, and nothing is computed twice but where a walk begins. The tile is exchanged in the
// patch that it was computed from, in two halves of the channels.
// Prediction: 330% of the library (tf32). 23 tiles of 4600 clocks, and 2000 for the exchange of
// each, at 1.8 GHz: 85 us. Memory's bound is 29 us.
// Measured: 248 us on an H100, 428% of the library, 300% of compiled, 18% of the peak: 1.33 times
// as fast as rung 04, where 1.65 were predicted. 85 us were predicted. It writes a quarter of what
// rung 09 of conv2d-ladder writes and takes 9% less time: likely neither the writes nor the
// multiplies are the limit, but how patches are filled and read (README). Beside the best baseline
// (max-autotune, 704 us) 248 us, 284%. Ragged sizes: (5, 2, 229, 241) with 97 filters 48.6 us, 168%
// of the library; (97, 3, 229, 241) with 91 filters 368 us, 358%.
// Sizes: two patches and the weights of 96 channels must fit in shared memory: up to three channels
// of 11 x 11.
//! constant BATCH = x.size(0)
//! constant CHANNELS_IN = x.size(1)
//! constant HEIGHT = x.size(2)
//! constant WIDTH = x.size(3)
//! constant CHANNELS_OUT = convolution_weight.size(0)
//! constant KERNEL = convolution_weight.size(2)
//! constant OUT_HEIGHT = out.size(2)
//! constant OUT_WIDTH = out.size(3)
//! constant STRIDE = 4
//! constant PADDING = 2
//! constant POOL = 3
//! constant POOL_STRIDE = 2
//! constant POOLED_COLUMNS = min(OUT_WIDTH, 27)
//! constant TILE_COLUMNS = (POOLED_COLUMNS - 1) * POOL_STRIDE + POOL
//! constant PITCH = ceil_div((TILE_COLUMNS - 1) * STRIDE + KERNEL + 4 - PADDING, 4) * 4
//! constant PATCH_FLOATS = CHANNELS_IN * (STRIDE + KERNEL) * PITCH
//! constant BUFFER_FLOATS = max(PATCH_FLOATS, 48 * 2 * 58)
//! constant FULL_QUADS = CHANNELS_IN * KERNEL * (KERNEL / 4)
//! constant LEFTOVERS = CHANNELS_IN * KERNEL * (KERNEL % 4)
//! constant STEPS = ceil_div(FULL_QUADS + ceil_div(LEFTOVERS, 4), 2)
//! dim table = 4 * (2 * STEPS - FULL_QUADS)
//! dim parts = ceil_div(CHANNELS_OUT, 96)
//! dim rows = BATCH * OUT_HEIGHT * ceil_div(OUT_WIDTH, POOLED_COLUMNS)
//! constant WEIGHT_FLOATS = ceil_div(STEPS, 4) * 96 * 32
//! scratch ordered float[parts * WEIGHT_FLOATS]
//! launch order grid=(ceil_div(WEIGHT_FLOATS, 256), parts) block=(256) args=(convolution_weight, ordered)
//! launch convolve grid=(min(rows, 132), parts) block=(384) shared=4*(WEIGHT_FLOATS+2*BUFFER_FLOATS+table)+32 args=(x, ordered, convolution_bias, out)
#define DEVICE __device__ __forceinline__

using Address = unsigned;  // in shared memory

// ---- The tile of a block: two rows of up to 55 pixels, and 96 channels.

constexpr int kTileRows = 2, kChannels = 96;
constexpr int kTilesAcross = (OUT_WIDTH + POOLED_COLUMNS - 1) / POOLED_COLUMNS;
constexpr int kAllRows = BATCH * kTilesAcross * OUT_HEIGHT;  // of results
static_assert(POOL == 3 && POOL_STRIDE == kTileRows, "a tile ends the row of results before");
constexpr int kConsumers = 256, kProducers = 128, kThreads = kConsumers + kProducers;

// The patch of the input under it. A row begins four columns before the first pixel's corner plus
// PADDING, on 16 bytes.
constexpr int kSkip = 4 - PADDING;
constexpr int kPatchRows = (kTileRows - 1) * STRIDE + KERNEL;

// ---- The order of k. A step multiplies eight k, in two quads of four. Four columns of a row of
// the filters make a quad: lane t of four finds its value t floats on. The columns left over (8, 9
// and 10 of 11) of all rows come behind, four a quad whatever their rows, from a table.

constexpr int kFull = KERNEL / 4 > 0 ? KERNEL / 4 : 1;  // a row of the filters has as many quads,
constexpr int kRest = KERNEL % 4 > 0 ? KERNEL % 4 : 1;  // and leftovers; 1 where they only divide
constexpr int kInner = CHANNELS_IN * KERNEL * KERNEL;
constexpr int kTableWords = 4 * (2 * STEPS - FULL_QUADS);

// Where a row of the filters begins in the patch, for the pixel in the corner of the tile.
DEVICE constexpr int RowAt(int row) {
  return (row / KERNEL * kPatchRows + row % KERNEL) * PITCH;
}
// Which place of the window k is, as row * KERNEL + column; -1 if none.
DEVICE int WindowPlace(int k) {
  const int quad = k / 4, left = k - 4 * FULL_QUADS;
  if (left < 0) return quad / kFull * KERNEL + quad % kFull * 4 + k % 4;
  return left < LEFTOVERS ? left / kRest * KERNEL + KERNEL / 4 * 4 + left % kRest : -1;
}

DEVICE Address SharedAddress(const void* pointer) {
  return static_cast<Address>(__cvta_generic_to_shared(pointer));
}

// Rounded to the 11 significant bits that the matrix units read, to nearest.
DEVICE unsigned RoundToTf32(float value) {
  unsigned rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
  return rounded;
}

// ---- Copies of weights: they are in order already.

DEVICE void CopyAsync16(float* to, const float* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(SharedAddress(to)), "l"(from)
               : "memory");
}
DEVICE void WaitForCopies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// ---- Barriers in shared memory. A phase ends when all arrivals are there.

DEVICE void InitBarrier(Address barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
DEVICE void Arrive(Address barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
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

// A tile's image, first row (-1 above an image) and first column of pixels.
struct Place {
  int image, row, column;
};

// The tiles of a block: its share of the rows of results, counted through all images. Where an
// image or the share begins, a tile comes first that only brings the row to keep.
struct Walk {
  int row, end;
  bool begins;
  DEVICE bool HasTile() const { return row < end; }
  DEVICE Place Here() const {
    const int strip = row / OUT_HEIGHT;
    return {strip / kTilesAcross, row % OUT_HEIGHT * POOL_STRIDE + (begins ? -1 : 1),
            strip % kTilesAcross * POOLED_COLUMNS * POOL_STRIDE};
  }
  DEVICE void Advance() {
    row += !begins;
    begins = !begins && row % OUT_HEIGHT == 0;
  }
};
DEVICE Walk WalkOf(int block, int blocks) {
  return {int(1ll * kAllRows * block / blocks), int(1ll * kAllRows * (block + 1) / blocks), true};
}

// ---- The producers: they read the input, round it and write it to the patch.

// Four neighbours of a row, zeros beyond its ends.
DEVICE float4 LoadFour(const float* row, int column) {
  if constexpr (WIDTH % 4 == 0) {
    return unsigned(column) < WIDTH ? *reinterpret_cast<const float4*>(row + column) : float4{};
  } else {
    const auto value = [=](int at) { return unsigned(at) < WIDTH ? row[at] : 0.0f; };
    return {value(column), value(column + 1), value(column + 2), value(column + 3)};
  }
}

DEVICE void FillPatch(float* patch, const float* __restrict__ x, Place place, int thread) {
  constexpr int kFours = PATCH_FLOATS / 4, kRowFours = PITCH / 4, kInFlight = 8;
  for (int begin = thread; begin < kFours; begin += kInFlight * kProducers) {
    float4 fours[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const int at = begin + i * kProducers, row = at / kRowFours;
      const int input_row = place.row * STRIDE - PADDING + row % kPatchRows;
      const int column = place.column * STRIDE - 4 + at % kRowFours * 4;
      fours[i] = float4{};
      if (at < kFours && unsigned(input_row) < HEIGHT) {
        const int plane = place.image * CHANNELS_IN + row / kPatchRows;
        fours[i] = LoadFour(x + (size_t(plane) * HEIGHT + input_row) * WIDTH, column);
      }
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i)
      if (begin + i * kProducers < kFours)
        *reinterpret_cast<uint4*>(patch + 4 * (begin + i * kProducers)) = {
            RoundToTf32(fours[i].x), RoundToTf32(fours[i].y), RoundToTf32(fours[i].z),
            RoundToTf32(fours[i].w)};
  }
}

// Writes weights as wgmma reads them: boxes of 32 k; in a box a row of 128 bytes a channel, its
// chunks of 16 bytes swapped as c ^ row % 8.
extern "C" __global__ void __launch_bounds__(256)
    order(const float* __restrict__ weight, float* __restrict__ ordered) {
  const int at = blockIdx.x * 256 + threadIdx.x;
  if (at >= WEIGHT_FLOATS) return;
  const int row = at / 32 % kChannels, chunk = at % 32 / 4 ^ row % 8;
  const int channel = blockIdx.y * kChannels + row;
  const int place = WindowPlace(at / (32 * kChannels) * 32 + chunk * 4 + at % 4);
  float value = 0;
  if (channel < CHANNELS_OUT && place >= 0) value = weight[size_t(channel) * kInner + place];
  ordered[size_t(blockIdx.y) * WEIGHT_FLOATS + at] = __uint_as_float(RoundToTf32(value));
}

// ---- The consumers.

// The value of a pixel for lane t of quad `quad`: `corner` is the pixel's corner in the patch,
// `table` the lane's column of the table of leftovers.
DEVICE unsigned ValueOf(const float* patch, const int* table, int quad, int corner, int t) {
  if (quad < FULL_QUADS)
    return __float_as_uint(patch[RowAt(quad / kFull) + quad % kFull * 4 + corner + t]);
  const int left = 4 * (quad - FULL_QUADS);
  const float value = patch[table[left] + corner];
  return left + t < LEFTOVERS ? __float_as_uint(value) : 0;
}

// ---- The matrix unit.

// A box for wgmma: rows of 128 bytes, eight rows every 1024 bytes, from an address that is a
// multiple of 1024. Fields: address / 16 in bits 0 to 13; 1 (unused here) from bit 16; 1024 / 16
// from bit 32; 1 in bits 62 and 63 for the swapping. Eight k further on are 32 bytes.
using Descriptor = unsigned long long;
constexpr int kBoxBytes = kChannels * 128;
DEVICE Descriptor DescriptorOf(Address weights, int step) {
  const Address at = weights + step / 4 * kBoxBytes + step % 4 * 32;
  return Descriptor{(at & 0x3FFFF) >> 4} | Descriptor{1} << 16 | Descriptor{1024 / 16} << 32 |
         Descriptor{1} << 62;
}

// Shows what ordinary instructions wrote to shared memory to the matrix unit.
DEVICE void FenceForMatrixUnit() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Before multiplications, after their registers were touched by other instructions.
DEVICE void FenceRegisters() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// The multiplications started since the last call make a group.
DEVICE void CommitMultiplies() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most `pending` groups are at work.
template <int pending>
DEVICE void WaitMultiplies() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

#define FOUR(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)

// Starts sum (64 pixels x 96 channels) = a (64 x 8) times weights, added to what sum holds where
// `add`. Of thread 32 w + 4 g + t, a has pixels 16 w + g, + 8, + 0, + 8 at k = t, t, t + 4, t + 4;
// sum[4 j + 2 h + e] is pixel 16 w + g + 8 h, channel 8 j + 2 t + e.
DEVICE void Multiply(float (&sum)[48], const unsigned (&a)[4], Descriptor weights, int add) {
  asm volatile(
      "{\n.reg .pred p;\n"
      "setp.ne.b32 p, %53, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n96k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47}, "
      "{%48, %49, %50, %51}, %52, p, 1, 1;\n}"
      : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(weights), "r"(add));
}

// A batch of steps whose values are in registers together.
constexpr int kBatchSteps = 4, kBatches = (STEPS + kBatchSteps - 1) / kBatchSteps;

DEVICE void ReadValues(unsigned (&a)[kBatchSteps][4], const float* patch, const int* table,
                       int batch, const int (&corner)[2], int t) {
#pragma unroll
  for (int i = 0; i < kBatchSteps; ++i) {
    const int step = batch * kBatchSteps + i;
    if (step >= STEPS) return;
#pragma unroll
    for (int j = 0; j < 4; ++j) a[i][j] = ValueOf(patch, table, 2 * step + j / 2, corner[j % 2], t);
  }
}

// Adds up a tile: 64 pixels of this group's, 96 channels.
DEVICE void MultiplyTile(float (&sum)[48], const float* patch, const int* table, Address weights,
                         const int (&corner)[2], int t) {
  unsigned a[2][kBatchSteps][4];
  ReadValues(a[0], patch, table, 0, corner, t);
#pragma unroll
  for (int batch = 0; batch < kBatches; ++batch) {
    FenceRegisters();
#pragma unroll
    for (int i = 0; i < kBatchSteps; ++i) {
      const int step = batch * kBatchSteps + i;
      if (step < STEPS) Multiply(sum, a[batch % 2][i], DescriptorOf(weights, step), step > 0);
    }
    CommitMultiplies();
    WaitMultiplies<1>();  // the batch before is done: its registers are free
    if (batch + 1 < kBatches) ReadValues(a[(batch + 1) % 2], patch, table, batch + 1, corner, t);
  }
  WaitMultiplies<0>();
}

// The larger one, or NaN if one of them is.
DEVICE float MaxOrNaN(float a, float b) {
  float largest;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(largest) : "f"(a), "f"(b));
  return largest;
}

// ---- Pooling. Half of the channels of a tile at a time lie in shared memory, two rows of pixels
// a channel; 58 floats a row, so that the eight pixels and four channels of a store have 32 banks.

constexpr int kHalf = kChannels / 2, kRowPitch = 58;
constexpr int kHalfResults = kHalf * POOLED_COLUMNS;
constexpr int kThreadResults = (kHalfResults + kConsumers - 1) / kConsumers;
static_assert(TILE_COLUMNS <= kRowPitch, "a row fits");

DEVICE void SyncConsumers() { asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory"); }

DEVICE void WriteHalf(float* values, const float (&sum)[48], int half, int first_pixel, int t) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int pixel = first_pixel + 8 * h;
    if (pixel >= kTileRows * TILE_COLUMNS) continue;
    const int at = pixel / TILE_COLUMNS * kRowPitch + pixel % TILE_COLUMNS;
#pragma unroll
    for (int i = 0; i < 12; ++i)
      values[(i / 2 * 8 + 2 * t + i % 2) * kTileRows * kRowPitch + at] =
          sum[half * 24 + i / 2 * 4 + h * 2 + i % 2];
  }
}

// Of three neighbours, of which the first begins on eight bytes.
DEVICE float LargestOf(const float* three) {
  const float2 two = *reinterpret_cast<const float2*>(three);
  return MaxOrNaN(MaxOrNaN(two.x, two.y), three[2]);
}

// Results of half of the channels, from a row that is kept and the two in shared memory. The second
// of these is kept for the next time.
DEVICE void PoolHalf(const float* values, float (&kept)[kThreadResults],
                     const float* __restrict__ bias, float* __restrict__ out, Place place,
                     int first_channel, bool writes) {
#pragma unroll
  for (int i = 0; i < kThreadResults; ++i) {
    const int result = i * kConsumers + threadIdx.x;
    const int in_half = result / POOLED_COLUMNS, column = result % POOLED_COLUMNS;
    const int channel = first_channel + in_half, out_column = place.column / POOL_STRIDE + column;
    if (result >= kHalfResults || channel >= CHANNELS_OUT || out_column >= OUT_WIDTH) continue;
    const float* const row = values + in_half * kTileRows * kRowPitch + column * POOL_STRIDE;
    const float upper = LargestOf(row), lower = LargestOf(row + kRowPitch);
    if (writes) {
      const float largest = MaxOrNaN(MaxOrNaN(kept[i], upper), lower);
      const size_t plane = size_t(place.image) * CHANNELS_OUT + channel;
      out[(plane * OUT_HEIGHT + place.row / POOL_STRIDE) * OUT_WIDTH + out_column] =
          MaxOrNaN(largest + bias[channel], 0);
    }
    kept[i] = lower;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    convolve(const float* __restrict__ x, const float* ordered, const float* __restrict__ bias,
             float* __restrict__ out) {
  extern __shared__ __align__(1024) float shared[];
  float* const weights = shared;
  float* const patches = weights + WEIGHT_FLOATS;
  int* const table = reinterpret_cast<int*>(patches + 2 * BUFFER_FLOATS);
  const Address full = SharedAddress(table + kTableWords);  // two barriers: of the two patches,
  const Address empty = full + 16;                          // and two more
  ordered += size_t(blockIdx.y) * WEIGHT_FLOATS;
  for (int i = 4 * threadIdx.x; i < WEIGHT_FLOATS; i += 4 * kThreads)
    CopyAsync16(weights + i, ordered + i);
  for (int i = threadIdx.x; i < kTableWords; i += kThreads) {
    const int place = max(WindowPlace(4 * FULL_QUADS + i), 0);
    table[i] = RowAt(place / KERNEL) + place % KERNEL;
  }
  if (threadIdx.x == 0)
    for (int i = 0; i < 2; ++i) {
      InitBarrier(full + 8 * i, kProducers);
      InitBarrier(empty + 8 * i, kConsumers / 32);
    }
  WaitForCopies();
  FenceForMatrixUnit();
  __syncthreads();
  if (threadIdx.x >= kConsumers) {
    int buffer = 0;
    unsigned parity = 0;
    for (Walk walk = WalkOf(blockIdx.x, gridDim.x); walk.HasTile(); walk.Advance()) {
      // Parity 1 of a fresh barrier counts as ended: the first two patches find their places empty.
      Wait(empty + 8 * buffer, parity ^ 1);
      FillPatch(patches + buffer * BUFFER_FLOATS, x, walk.Here(), threadIdx.x - kConsumers);
      Arrive(full + 8 * buffer);
      parity ^= buffer;
      buffer ^= 1;
    }
    return;
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, t = lane % 4;
  const int first_pixel = 16 * warp + lane / 4;  // and the eighth after it
  int corner[2];  // those beyond the tile take the first
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int pixel = first_pixel + 8 * i, inside = pixel < kTileRows * TILE_COLUMNS ? pixel : 0;
    corner[i] = inside / TILE_COLUMNS * STRIDE * PITCH + inside % TILE_COLUMNS * STRIDE + kSkip;
  }
  int buffer = 0;
  unsigned parity = 0;
  float kept[2][kThreadResults];
  for (Walk walk = WalkOf(blockIdx.x, gridDim.x); walk.HasTile(); walk.Advance()) {
    float sum[48];
    Wait(full + 8 * buffer, parity);
    float* const patch = patches + buffer * BUFFER_FLOATS;
    MultiplyTile(sum, patch, table + t, SharedAddress(weights), corner, t);
    const Place place = walk.Here();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      SyncConsumers();  // nobody reads the patch, or the other half, any more
      WriteHalf(patch, sum, half, first_pixel, t);
      SyncConsumers();
      PoolHalf(patch, kept[half], bias, out, place, blockIdx.y * kChannels + half * kHalf,
               !walk.begins);
    }
    __syncwarp();
    if (lane == 0) Arrive(empty + 8 * buffer);
    parity ^= buffer;
    buffer ^= 1;
  }
}
