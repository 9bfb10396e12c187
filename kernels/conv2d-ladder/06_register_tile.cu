// A window of the input in registers, from which every column of a filter is served.
//
// Idea: a thread takes seven neighbouring pixels and twelve channels. Windows of seven pixels, four
// columns apart, are 35 values of a row: ten reads of 16 bytes serve 11 x 84 multiplies, since the
// columns of a filter find their values in the same registers. Eight such windows begin 28 floats
// apart, in eight different groups of banks. Weights are turned by a launch before, so that twelve
// channels are three reads of 16 bytes. Results leave through shared memory, in whole rows.
// Prediction: 120% of the library. Of a step's 1000 instructions 924 are multiplies; 55 of 56
// pixels count, and 20.8 tiles an SM of 21: 85% of the peak, less what the register banks cost.
// Measured: 606 us on an H100, 180% of the library, 196% of compiled, 53% of the peak: 1.35 times
// as fast as rung 05, where 1.7 were predicted. 85% of the peak were, too: likely the other 162 of
// a step's 1086 instructions (rung 07) and register banks.
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
//! constant STAGES = 4
//! constant STAGE_FLOATS = KERNEL * 96 + 2 * (220 + ceil_div(KERNEL + 2, 4) * 4)
//! scratch turned float[ceil_div(CHANNELS_OUT, 96) * CHANNELS_IN * KERNEL * KERNEL * 96]
//! launch turn grid=(CHANNELS_IN * KERNEL * KERNEL, ceil_div(CHANNELS_OUT, 96)) block=(96) args=(convolution_weight, turned)
//! launch convolve grid=(ceil_div(BATCH * OUT_HEIGHT, 2) * ceil_div(OUT_WIDTH, 56), ceil_div(CHANNELS_OUT, 96)) block=(128) shared=4*STAGES*STAGE_FLOATS args=(x, turned, convolution_bias, out)

constexpr int kTileRows = 2, kTileColumns = 56, kBlockChannels = 96;
constexpr int kTilesAcross = (OUT_WIDTH + kTileColumns - 1) / kTileColumns;
constexpr int kThreadPixels = 7, kThreadChannels = 12;
constexpr int kThreads = 128;
constexpr int kSteps = CHANNELS_IN * KERNEL;  // rows of a filter, of all channels
// A staged row begins four columns before the first pixel's corner plus PADDING: on 16 bytes.
constexpr int kSkip = 4 - PADDING;
constexpr int kWindow = ((kThreadPixels - 1) * STRIDE + KERNEL + kSkip + 3) / 4 * 4;
constexpr int kRowFloats = (kTileColumns - kThreadPixels) * STRIDE + kWindow;
constexpr int kRowsAt = KERNEL * kBlockChannels;  // where the rows begin in a stage
static_assert(kRowsAt + kTileRows * kRowFloats == STAGE_FLOATS, "a stage holds all of it");
// Results are written by warps: some channels of a row of pixels at a time.
constexpr int kPassChannels = 3, kOutPitch = 65;  // of a thread; floats of a channel
static_assert(kThreads / 32 * 4 * kPassChannels * kOutPitch <= STAGES * STAGE_FLOATS, "they fit");

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

__device__ void ReadFour(float* to, const float* from) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
}

// Weights of 96 channels side by side, zeros where the channels end.
extern "C" __global__ void __launch_bounds__(kBlockChannels)
    turn(const float* __restrict__ weight, float* __restrict__ turned) {
  constexpr int kInner = kSteps * KERNEL;
  const int channel = blockIdx.y * kBlockChannels + threadIdx.x;
  turned[(size_t(blockIdx.y) * kInner + blockIdx.x) * kBlockChannels + threadIdx.x] =
      channel < CHANNELS_OUT ? weight[size_t(channel) * kInner + blockIdx.x] : 0;
}

// Starts the copies of step c * KERNEL + r: row r of the filters for channel c.
__device__ void StartStep(float* stage, const float* x, const float* turned, int step,
                          int first_row, int first_column) {
  constexpr int kWeightFours = KERNEL * kBlockChannels / 4, kRowFours = kRowFloats / 4;
#pragma unroll
  for (int begin = 0; begin < kWeightFours; begin += kThreads) {
    const int i = begin + threadIdx.x;
    if (i < kWeightFours)
      CopyAsync16(stage + 4 * i, turned + (size_t(step) * kWeightFours + i) * 4, true);
  }
#pragma unroll
  for (int begin = 0; begin < kTileRows * kRowFours; begin += kThreads) {
    const int i = begin + threadIdx.x, row = first_row + i / kRowFours, four = i % kRowFours * 4;
    const int image = row / OUT_HEIGHT, c = step / KERNEL;
    const int input_row = row % OUT_HEIGHT * STRIDE - PADDING + step % KERNEL;
    const bool wanted = image < BATCH && unsigned(input_row) < HEIGHT;
    if (i < kTileRows * kRowFours)
      CopyFour(stage + kRowsAt + 4 * i, x,
               ((size_t(image) * CHANNELS_IN + c) * HEIGHT + input_row) * WIDTH,
               first_column * STRIDE - 4 + four, wanted);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, 3)
    convolve(const float* x, const float* turned, const float* __restrict__ bias,
             float* __restrict__ out) {
  extern __shared__ __align__(16) float stages[];
  const int first_row = blockIdx.x / kTilesAcross * kTileRows;  // of the rows of all images
  const int first_column = blockIdx.x % kTilesAcross * kTileColumns;
  const int first_channel = blockIdx.y * kBlockChannels;
  turned += size_t(blockIdx.y) * kSteps * KERNEL * kBlockChannels;
  // Two warps a row of pixels; a warp is eight groups of pixels by four groups of channels.
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int tile_row = warp / 2, warp_channel = warp % 2 * 4 * kThreadChannels;
  const int channel = warp_channel + lane / 8 * kThreadChannels;
  const int row_at = kRowsAt + tile_row * kRowFloats + lane % 8 * kThreadPixels * STRIDE;
  float sum[kThreadChannels][kThreadPixels] = {};
  for (int step = 0; step < STAGES - 1; ++step) {
    if (step < kSteps)
      StartStep(stages + step * STAGE_FLOATS, x, turned, step, first_row, first_column);
    CommitCopies();
  }
  int stage = 0, next_stage = STAGES - 1;
  for (int step = 0; step < kSteps; ++step) {
    WaitForCopies<STAGES - 2>();  // this thread's part of the stage has arrived,
    __syncthreads();              // and so has everybody's; the stage before is not read any more
    if (step + STAGES - 1 < kSteps)
      StartStep(stages + next_stage * STAGE_FLOATS, x, turned, step + STAGES - 1, first_row,
                first_column);
    CommitCopies();
    const float* const here = stages + stage * STAGE_FLOATS;
    float window[kWindow];
#pragma unroll
    for (int i = 0; i < kWindow; i += 4) ReadFour(&window[i], here + row_at + i);
#pragma unroll
    for (int s = 0; s < KERNEL; ++s) {
      float weights[kThreadChannels];
#pragma unroll
      for (int i = 0; i < kThreadChannels; i += 4)
        ReadFour(&weights[i], here + s * kBlockChannels + channel + i);
#pragma unroll
      for (int i = 0; i < kThreadChannels; ++i)
#pragma unroll
        for (int j = 0; j < kThreadPixels; ++j)
          sum[i][j] += weights[i] * window[j * STRIDE + s + kSkip];
    }
    stage = stage == STAGES - 1 ? 0 : stage + 1;
    next_stage = next_stage == STAGES - 1 ? 0 : next_stage + 1;
  }
  __syncthreads();  // the stages are free
  const int row = first_row + tile_row;
  float* const rows = stages + warp * 4 * kPassChannels * kOutPitch;
#pragma unroll
  for (int pass = 0; pass < kThreadChannels; pass += kPassChannels) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kPassChannels; ++i)
#pragma unroll
      for (int j = 0; j < kThreadPixels; ++j)
        rows[(lane / 8 * kPassChannels + i) * kOutPitch + lane % 8 * kThreadPixels + j] =
            sum[pass + i][j];
    __syncwarp();
    if (row >= BATCH * OUT_HEIGHT) continue;
#pragma unroll
    for (int i = 0; i < 4 * kPassChannels; ++i) {
      const int from = first_channel + warp_channel + i / kPassChannels * kThreadChannels + pass +
                       i % kPassChannels;
      if (from >= CHANNELS_OUT) continue;
      const size_t plane = size_t(row / OUT_HEIGHT) * CHANNELS_OUT + from;
      float* const to = out + (plane * OUT_HEIGHT + row % OUT_HEIGHT) * OUT_WIDTH + first_column;
#pragma unroll
      for (int j = lane; j < kTileColumns; j += 32)
        if (first_column + j < OUT_WIDTH) to[j] = rows[i * kOutPitch + j] + bias[from];
    }
  }
}
