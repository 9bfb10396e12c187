// Copies that arrive while others are multiplied.
//
// Idea: copies are asynchronous (cp.async), and what they bring is cut small: a stage is one row of
// the filters (11 x 96 weights) and, for each row of pixels, the one row of the input under it. The
// ring holds three stages; two are on their way while one is multiplied. A row of the input comes
// some three times instead of once, from the caches. Two rows of pixels may be of two images: the
// rows of all images are counted through, and none is left over.
// Prediction: 70% of the library. The waits for copies are gone, and 18 KB a block leave its number
// on an SM to the registers: two.
// Measured: 816 us on an H100, 133% of the library, 145% of compiled, 39% of the peak. 70% were
// predicted: the library takes 1.09 ms, more than twice what was assumed. It is 0.6% faster than
// rung 04 in another run, where 17% were predicted: likely other blocks hid the waits before.
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
//! constant STAGES = 3
//! constant STAGE_FLOATS = ceil_div(KERNEL * 97, 4) * 4 + 2 * (224 + ceil_div(KERNEL, 4) * 4)
//! launch convolve grid=(ceil_div(BATCH * OUT_HEIGHT, 2) * ceil_div(OUT_WIDTH, 56), ceil_div(CHANNELS_OUT, 96)) block=(256) shared=4*STAGES*STAGE_FLOATS args=(x, convolution_weight, convolution_bias, out)

constexpr int kTileRows = 2, kTileColumns = 56, kBlockChannels = 96;
constexpr int kTilesAcross = (OUT_WIDTH + kTileColumns - 1) / kTileColumns;
constexpr int kLanes = 16;  // threads across the pixels, and across the channels
constexpr int kThreadChannels = kBlockChannels / kLanes;
constexpr int kThreadPixels = kTileRows * kTileColumns / kLanes;
constexpr int kSteps = CHANNELS_IN * KERNEL;  // rows of a filter, of all channels
constexpr int kPitch = kBlockChannels + 1;    // of the weights of one column
constexpr int kRowFloats = 224 + (KERNEL + 3) / 4 * 4;
// A staged row begins four columns before the first pixel's corner plus PADDING: on 16 bytes.
constexpr int kSkip = 4 - PADDING;
constexpr int kRowsAt = (KERNEL * kPitch + 3) / 4 * 4;  // where the rows begin in a stage
static_assert(kRowsAt + kTileRows * kRowFloats <= STAGE_FLOATS, "a stage holds all of it");
static_assert((kTileColumns - 1) * STRIDE + KERNEL + kSkip <= kRowFloats, "and a row its windows");

__device__ unsigned SharedAddress(const void* at) { return __cvta_generic_to_shared(at); }

// Asynchronous copies to shared memory; those that are not `wanted` write zeros.
__device__ void CopyAsync16(float* to, const float* from, bool wanted) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(SharedAddress(to)), "l"(from), "r"(wanted ? 16 : 0) : "memory");
}
__device__ void CopyAsync4(float* to, const float* from, bool wanted) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :: "r"(SharedAddress(to)), "l"(from), "r"(wanted ? 4 : 0) : "memory");
}
__device__ void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kGroupsLeft>
__device__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" :: "n"(kGroupsLeft) : "memory");
}

// Four neighbours of a row of the input, zeros beyond its ends. They are one copy of 16 bytes if
// every row begins on 16 bytes.
__device__ void CopyFour(float* to, const float* x, size_t row_at, int column, bool wanted) {
  if constexpr (WIDTH % 4 == 0) {
    const bool inside = wanted && unsigned(column) < WIDTH;
    CopyAsync16(to, inside ? x + row_at + column : x, inside);
  } else {
    for (int i = 0; i < 4; ++i) {
      const bool inside = wanted && unsigned(column + i) < WIDTH;
      CopyAsync4(to + i, inside ? x + row_at + column + i : x, inside);
    }
  }
}

// Starts the copies of step c * KERNEL + r: row r of the filters for channel c.
__device__ void StartStep(float* stage, const float* x, const float* weight, int step,
                          int first_row, int first_column, int first_channel) {
  for (int i = threadIdx.x; i < KERNEL * kBlockChannels; i += 256) {
    const int channel = first_channel + i / KERNEL, s = i % KERNEL;
    const bool inside = channel < CHANNELS_OUT;
    CopyAsync4(stage + s * kPitch + i / KERNEL,
               inside ? weight + (channel * kSteps + step) * KERNEL + s : weight, inside);
  }
  for (int i = threadIdx.x; i < kTileRows * kRowFloats / 4; i += 256) {
    const int row = first_row + i / (kRowFloats / 4), four = i % (kRowFloats / 4) * 4;
    const int image = row / OUT_HEIGHT, c = step / KERNEL;
    const int input_row = row % OUT_HEIGHT * STRIDE - PADDING + step % KERNEL;
    const bool wanted = image < BATCH && unsigned(input_row) < HEIGHT;
    CopyFour(stage + kRowsAt + i / (kRowFloats / 4) * kRowFloats + four, x,
             ((size_t(image) * CHANNELS_IN + c) * HEIGHT + input_row) * WIDTH,
             first_column * STRIDE - 4 + four, wanted);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    convolve(const float* x, const float* weight, const float* __restrict__ bias,
             float* __restrict__ out) {
  extern __shared__ __align__(16) float stages[];
  const int first_row = blockIdx.x / kTilesAcross * kTileRows;  // of the rows of all images
  const int first_column = blockIdx.x % kTilesAcross * kTileColumns;
  const int first_channel = blockIdx.y * kBlockChannels;
  const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  int corner[kThreadPixels];
#pragma unroll
  for (int j = 0; j < kThreadPixels; ++j) {
    const int pixel = lane + kLanes * j;
    corner[j] = pixel / kTileColumns * kRowFloats + pixel % kTileColumns * STRIDE + kSkip;
  }
  float sum[kThreadChannels][kThreadPixels] = {};
  for (int step = 0; step < STAGES - 1; ++step) {
    if (step < kSteps)
      StartStep(stages + step * STAGE_FLOATS, x, weight, step, first_row, first_column,
                first_channel);
    CommitCopies();
  }
  for (int step = 0; step < kSteps; ++step) {
    WaitForCopies<STAGES - 2>();  // this thread's part of the stage has arrived,
    __syncthreads();              // and so has everybody's; the stage before is not read any more
    const int next = step + STAGES - 1;
    if (next < kSteps)
      StartStep(stages + next % STAGES * STAGE_FLOATS, x, weight, next, first_row, first_column,
                first_channel);
    CommitCopies();
    const float* const weights = stages + step % STAGES * STAGE_FLOATS;
    const float* const rows = weights + kRowsAt;
#pragma unroll
    for (int s = 0; s < KERNEL; ++s)
#pragma unroll
      for (int j = 0; j < kThreadPixels; ++j) {
        const float value = rows[corner[j] + s];
#pragma unroll
        for (int i = 0; i < kThreadChannels; ++i)
          sum[i][j] += weights[s * kPitch + group + kLanes * i] * value;
      }
  }
#pragma unroll
  for (int i = 0; i < kThreadChannels; ++i)
#pragma unroll
    for (int j = 0; j < kThreadPixels; ++j) {
      const int channel = first_channel + group + kLanes * i, pixel = lane + kLanes * j;
      const int row = first_row + pixel / kTileColumns;
      const int column = first_column + pixel % kTileColumns;
      if (channel >= CHANNELS_OUT || row >= BATCH * OUT_HEIGHT || column >= OUT_WIDTH) continue;
      const size_t plane = size_t(row / OUT_HEIGHT) * CHANNELS_OUT + channel;
      out[(plane * OUT_HEIGHT + row % OUT_HEIGHT) * OUT_WIDTH + column] = sum[i][j] + bias[channel];
    }
}
