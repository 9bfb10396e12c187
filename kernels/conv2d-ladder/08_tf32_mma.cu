// The matrix units, at the precision of tf32.
//
// Idea: mma.sync multiplies 16 pixels x 8 k x 8 channels an instruction; its 19-bit operands are
// rounded to nearest first (cvt.rna), once, when the patch is written. A lane of a fragment wants
// pixel g and column t of a window, so it reads the patch at 4 g + t: 32 lanes, 32 banks, and no
// window is ever copied out. k goes in that order, the columns left over last; what fills up the
// last step is zero on both sides, for a NaN times a weight of zero would be NaN. The weights, in
// the order of fragments, stay in shared memory while a block walks over its tiles; four warps fill
// the next patch while eight multiply. A warp takes 32 pixels x 48 channels.
// Prediction: 150% of the library (tf32). Shared memory binds: 21 turns for 12 multiplications, 8
// warps, 46 steps are 7700 clocks a tile; 21.2 tiles an SM at 1.8 GHz are 91 us.
// Measured: 254 us on an H100, 346% of the library, 275% of compiled, 23% of a copy's speed: the
// best of this class. 91 us were predicted, 150% of a faster library; it takes 875 us. The cause is
// open. Rung 09 multiplies otherwise and is no faster, and the fused kernel (conv2d-relu-maxpool,
// 05) writes a quarter and takes 2% less: what all three share is how patches are filled and read.
// Beside the best baseline (max-autotune, 645 us) 256 us, 253%. Ragged sizes: (5, 2, 229, 241) with
// 97 filters 41.5 us, 169% of the library; (97, 3, 225, 233) with 91 filters 425 us, 254%.
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
//! constant TILE_COLUMNS = min(OUT_WIDTH, 55)
//! constant PITCH = ceil_div((TILE_COLUMNS - 1) * STRIDE + KERNEL + 4 - PADDING, 4) * 4
//! constant PATCH_FLOATS = CHANNELS_IN * (STRIDE + KERNEL) * PITCH
//! constant FULL_QUADS = CHANNELS_IN * KERNEL * (KERNEL / 4)
//! constant LEFTOVERS = CHANNELS_IN * KERNEL * (KERNEL % 4)
//! constant STEPS = ceil_div(FULL_QUADS + ceil_div(LEFTOVERS, 4), 2)
//! dim table = 4 * (2 * STEPS - FULL_QUADS)
//! dim parts = ceil_div(CHANNELS_OUT, 96)
//! dim tiles = BATCH * ceil_div(OUT_HEIGHT, 2) * ceil_div(OUT_WIDTH, TILE_COLUMNS)
//! constant WEIGHT_FLOATS = STEPS * 6 * 128
//! scratch ordered float[parts * WEIGHT_FLOATS]
//! launch order grid=(ceil_div(WEIGHT_FLOATS, 256), parts) block=(256) args=(convolution_weight, ordered)
//! launch convolve grid=(min(tiles, 132), parts) block=(384) shared=4*(WEIGHT_FLOATS+2*PATCH_FLOATS+table)+32 args=(x, ordered, convolution_bias, out)
#define DEVICE __device__ __forceinline__

using Address = unsigned;  // in shared memory

// ---- The tile of a block: two rows of up to 55 pixels, and 96 channels.

constexpr int kTileRows = 2, kChannels = 96;
constexpr int kTilesAcross = (OUT_WIDTH + TILE_COLUMNS - 1) / TILE_COLUMNS;
constexpr int kTilesDown = (OUT_HEIGHT + kTileRows - 1) / kTileRows;
constexpr int kTiles = BATCH * kTilesDown * kTilesAcross;
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

// A tile's image, first row and first column of pixels.
struct Place {
  int image, row, column;
};
DEVICE Place PlaceOf(int tile) {
  const int in_image = tile % (kTilesDown * kTilesAcross);
  return {tile / (kTilesDown * kTilesAcross), in_image / kTilesAcross * kTileRows,
          in_image % kTilesAcross * TILE_COLUMNS};
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

constexpr int kPairs = kChannels / 16;  // of fragments of eight channels
static_assert(WEIGHT_FLOATS == STEPS * kPairs * 128, "a lane has four of a pair");

// Writes weights as fragments: of a step and sixteen channels, lane 4 g + t has channels g and
// 8 + g at k = t and t + 4.
extern "C" __global__ void __launch_bounds__(256)
    order(const float* __restrict__ weight, float* __restrict__ ordered) {
  const int at = blockIdx.x * 256 + threadIdx.x;
  if (at >= WEIGHT_FLOATS) return;
  const int i = at % 4, lane = at / 4 % 32, pair = at / 128 % kPairs, step = at / 128 / kPairs;
  const int channel = blockIdx.y * kChannels + 16 * pair + i / 2 * 8 + lane / 4;
  const int place = WindowPlace(8 * step + i % 2 * 4 + lane % 4);
  float value = 0;
  if (channel < CHANNELS_OUT && place >= 0)
    value = weight[size_t(channel) * kInner + place];
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

// Adds a (16 pixels x 8) times b (8 x 8 channels). Lane 4 g + t: a has pixels g, g + 8, g, g + 8 at
// k = t, t, t + 4, t + 4; sum[2 h + e] is pixel g + 8 h, channel 2 t + e.
DEVICE void Multiply(float (&sum)[4], const unsigned (&a)[4], float b0, float b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(__float_as_uint(b0)),
        "r"(__float_as_uint(b1)));
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    convolve(const float* __restrict__ x, const float* ordered, const float* __restrict__ bias,
             float* __restrict__ out) {
  extern __shared__ __align__(1024) float shared[];
  float* const weights = shared;
  float* const patches = weights + WEIGHT_FLOATS;
  int* const table = reinterpret_cast<int*>(patches + 2 * PATCH_FLOATS);
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
  __syncthreads();
  if (threadIdx.x >= kConsumers) {
    int buffer = 0;
    unsigned parity = 0;
    for (int tile = blockIdx.x; tile < kTiles; tile += gridDim.x) {
      // Parity 1 of a fresh barrier counts as ended: the first two patches find their places empty.
      Wait(empty + 8 * buffer, parity ^ 1);
      FillPatch(patches + buffer * PATCH_FLOATS, x, PlaceOf(tile), threadIdx.x - kConsumers);
      Arrive(full + 8 * buffer);
      parity ^= buffer;
      buffer ^= 1;
    }
    return;
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int first_pixel = warp % 4 * 32, first_pair = warp / 4 * kPairs / 2;
  int corner[4];  // of pixels first_pixel + g + 8 i; those beyond the tile take the first
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int pixel = first_pixel + g + 8 * i;
    const int inside = pixel < kTileRows * TILE_COLUMNS ? pixel : 0;
    corner[i] = inside / TILE_COLUMNS * STRIDE * PITCH + inside % TILE_COLUMNS * STRIDE + kSkip;
  }
  int buffer = 0;
  unsigned parity = 0;
  for (int tile = blockIdx.x; tile < kTiles; tile += gridDim.x) {
    float sum[2][kPairs][4] = {};  // two sixteens of pixels; half of the pairs, two fragments each
    Wait(full + 8 * buffer, parity);
    const float* const patch = patches + buffer * PATCH_FLOATS;
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
      unsigned a[2][4];
#pragma unroll
      for (int i = 0; i < 8; ++i)
        a[i / 4][i % 4] =
            ValueOf(patch, table + t, 2 * step + i % 4 / 2, corner[i / 4 * 2 + i % 2], t);
#pragma unroll
      for (int pair = 0; pair < kPairs / 2; ++pair) {
        const float4 b = *reinterpret_cast<const float4*>(
            weights + ((step * kPairs + first_pair + pair) * 32 + lane) * 4);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          Multiply(sum[i][2 * pair], a[i], b.x, b.y);
          Multiply(sum[i][2 * pair + 1], a[i], b.z, b.w);
        }
      }
    }
    __syncwarp();
    if (lane == 0) Arrive(empty + 8 * buffer);
    parity ^= buffer;
    buffer ^= 1;
    const Place place = PlaceOf(tile);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int pixel = first_pixel + g + 8 * i;
      const int row = place.row + pixel / TILE_COLUMNS;
      const int column = place.column + pixel % TILE_COLUMNS;
      if (pixel >= kTileRows * TILE_COLUMNS || row >= OUT_HEIGHT || column >= OUT_WIDTH) continue;
#pragma unroll
      for (int j = 0; j < 2 * kPairs; ++j) {
        const int channel = blockIdx.y * kChannels + first_pair * 16 + j / 2 * 8 + 2 * t + j % 2;
        if (channel >= CHANNELS_OUT) continue;
        const size_t plane = size_t(place.image) * CHANNELS_OUT + channel;
        out[(plane * OUT_HEIGHT + row) * OUT_WIDTH + column] =
            sum[i / 2][j / 2][i % 2 * 2 + j % 2] + bias[channel];
      }
    }
  }
}
