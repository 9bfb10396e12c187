// One address a matrix, which walks.
//
// Idea: a step of rung 06 is 1086 instructions, of which 924 multiply and half of the rest find the
// image, row and column of a thread's four copies anew. Here a thread has one address in the
// weights and one in the input. From step to step the first goes on by a row of filters, the second
// by a row of the input, or to the next channel. The results have one address, too, and the bias is
// what the sums begin with: outside of the loop 650 instructions are left of 1980.
// Prediction: 128% of the library: 1041 instructions a step.
// Measured: 553 us on an H100, 197% of the library, 214% of compiled, 58% of the peak: 10% faster
// than rung 06, where 7% were predicted. Multiplies are 89% of a step's instructions, and the peak
// is at 58%: likely three blocks of four warps on an SM do not hide all waits. 128% were predicted
// of a library that takes 1.09 ms. Beside the best baseline, which is eager, 548 us, 196%. At (97,
// 3, 225, 233) with 91 filters 1.26 ms, 95% of the library: rows of 57 pixels take two blocks of
// 56, and copies are of 4 bytes.
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
constexpr bool kWholeBlocks = CHANNELS_OUT % kBlockChannels == 0;
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

// The copies of a thread, step by step.
struct Copies {
  static constexpr int kWeightFours = KERNEL * kBlockChannels / 4, kRowFours = kRowFloats / 4;
  static constexpr int kRowCopies = (kTileRows * kRowFours + kThreads - 1) / kThreads;
  const float* weights;           // the first of this thread's fours of the next step
  const float* rows[kRowCopies];  // the next values of the input, and
  int input_row[kRowCopies];      // their row of the image, and
  int column[kRowCopies];         // column; WIDTH beyond the last image
  int r;  // the next step's row of the filters

  __device__ void Start(float* stage, const float* x) {
#pragma unroll
    for (int begin = 0; begin < kWeightFours; begin += kThreads)
      if (begin + threadIdx.x < kWeightFours)
        CopyAsync16(stage + 4 * (begin + threadIdx.x), weights + 4 * begin, true);
#pragma unroll
    for (int i = 0; i < kRowCopies; ++i)
      if (i * kThreads + threadIdx.x < kTileRows * kRowFours)
        CopyRow(stage + kRowsAt + 4 * (i * kThreads + threadIdx.x), x, i);
    weights += 4 * kWeightFours;
    const bool next_channel = ++r == KERNEL;
    if (next_channel) r = 0;
#pragma unroll
    for (int i = 0; i < kRowCopies; ++i) {
      rows[i] += next_channel ? (HEIGHT - KERNEL + 1) * WIDTH : WIDTH;
      input_row[i] += next_channel ? 1 - KERNEL : 1;
    }
  }

  // Four neighbours of a row of the input, zeros beyond its ends. They are one copy of 16 bytes if
  // every row begins on 16 bytes.
  __device__ void CopyRow(float* to, const float* x, int i) {
    const bool wanted = unsigned(input_row[i]) < HEIGHT;
    if constexpr (WIDTH % 4 == 0) {
      const bool inside = wanted && unsigned(column[i]) < WIDTH;
      CopyAsync16(to, inside ? rows[i] : x, inside);
    } else {
      for (int j = 0; j < 4; ++j) {
        const bool inside = wanted && unsigned(column[i] + j) < WIDTH;
        CopyAsync4(to + j, inside ? rows[i] + j : x, inside);
      }
    }
  }
};

__device__ Copies CopiesOf(const float* x, const float* turned, int first_row, int first_column) {
  Copies copies;
  copies.weights = turned + 4 * threadIdx.x;
  copies.r = 0;
#pragma unroll
  for (int i = 0; i < Copies::kRowCopies; ++i) {
    const int four = i * kThreads + threadIdx.x, row = first_row + four / Copies::kRowFours;
    const int image = row / OUT_HEIGHT;
    copies.column[i] = first_column * STRIDE - 4 + four % Copies::kRowFours * 4;
    copies.input_row[i] = row % OUT_HEIGHT * STRIDE - PADDING;
    copies.rows[i] = x + (long long)image * CHANNELS_IN * HEIGHT * WIDTH +
                     copies.input_row[i] * WIDTH + copies.column[i];
    if (image >= BATCH) copies.column[i] = WIDTH;
  }
  return copies;
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
  float sum[kThreadChannels][kThreadPixels];
#pragma unroll
  for (int i = 0; i < kThreadChannels; ++i) {
    const int from = first_channel + channel + i;
    const float begin = from < CHANNELS_OUT ? bias[from] : 0;
#pragma unroll
    for (int j = 0; j < kThreadPixels; ++j) sum[i][j] = begin;
  }
  Copies copies = CopiesOf(x, turned, first_row, first_column);
  for (int step = 0; step < STAGES - 1; ++step) {
    if (step < kSteps) copies.Start(stages + step * STAGE_FLOATS, x);
    CommitCopies();
  }
  int stage = 0, next_stage = STAGES - 1;
  for (int step = 0; step < kSteps; ++step) {
    WaitForCopies<STAGES - 2>();  // this thread's part of the stage has arrived,
    __syncthreads();              // and so has everybody's; the stage before is not read any more
    if (step + STAGES - 1 < kSteps) copies.Start(stages + next_stage * STAGE_FLOATS, x);
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
  const int row = first_row + tile_row, columns = min(kTileColumns, OUT_WIDTH - first_column);
  const size_t plane = size_t(row / OUT_HEIGHT) * CHANNELS_OUT + first_channel + warp_channel;
  float* const to =
      out + (plane * OUT_HEIGHT + row % OUT_HEIGHT) * OUT_WIDTH + first_column + lane;
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
      const int from = i / kPassChannels * kThreadChannels + pass + i % kPassChannels;
      if (!kWholeBlocks && first_channel + warp_channel + from >= CHANNELS_OUT) continue;
#pragma unroll
      for (int j = 0; j < kTileColumns; j += 32)
        if (lane + j < columns)
          to[from * OUT_HEIGHT * OUT_WIDTH + j] = rows[i * kOutPitch + lane + j];
    }
  }
}
