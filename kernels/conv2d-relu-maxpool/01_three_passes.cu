// Three passes: the convolution, ReLU, the largest of each window.
//
// Idea: the last float32 rung of conv2d-ladder, then two launches that do what their names say.
// Prediction: 110% of the library, which makes the same three passes: its convolution is a little
// slower. ReLU moves 232 MB, 80 us, and the pooling 144 MB, 50 us, to 0.4 ms of convolution.
// Measured: 707 us on an H100, 182% of the library, 176% of compiled, 45% of the peak. 530 us and
// 110% were predicted: the convolution takes 553 us, not 400, and the library 1.29 ms.
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
//! constant CONV_HEIGHT = (HEIGHT + 2 * PADDING - KERNEL) / STRIDE + 1
//! constant CONV_WIDTH = (WIDTH + 2 * PADDING - KERNEL) / STRIDE + 1
//! constant STAGES = 4
//! constant STAGE_FLOATS = KERNEL * 96 + 2 * (220 + ceil_div(KERNEL + 2, 4) * 4)
//! scratch turned float[ceil_div(CHANNELS_OUT, 96) * CHANNELS_IN * KERNEL * KERNEL * 96]
//! scratch values float[BATCH * CHANNELS_OUT * CONV_HEIGHT * CONV_WIDTH]
//! launch turn grid=(CHANNELS_IN * KERNEL * KERNEL, ceil_div(CHANNELS_OUT, 96)) block=(96) args=(convolution_weight, turned)
//! launch convolve grid=(ceil_div(BATCH * CONV_HEIGHT, 2) * ceil_div(CONV_WIDTH, 56), ceil_div(CHANNELS_OUT, 96)) block=(128) shared=4*STAGES*STAGE_FLOATS args=(x, turned, convolution_bias, values)
//! launch relu grid=(ceil_div(BATCH * CHANNELS_OUT * CONV_HEIGHT * CONV_WIDTH, 256)) block=(256) args=(values)
//! launch pool grid=(ceil_div(OUT_HEIGHT * OUT_WIDTH, 256), CHANNELS_OUT, BATCH) block=(256) args=(values, out)

#define DEVICE __device__ __forceinline__

constexpr int kTileRows = 2, kTileColumns = 56, kBlockChannels = 96;
constexpr int kTilesAcross = (CONV_WIDTH + kTileColumns - 1) / kTileColumns;
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
    const int image = row / CONV_HEIGHT;
    copies.column[i] = first_column * STRIDE - 4 + four % Copies::kRowFours * 4;
    copies.input_row[i] = row % CONV_HEIGHT * STRIDE - PADDING;
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
  const int row = first_row + tile_row, columns = min(kTileColumns, CONV_WIDTH - first_column);
  const size_t plane = size_t(row / CONV_HEIGHT) * CHANNELS_OUT + first_channel + warp_channel;
  float* const to =
      out + (plane * CONV_HEIGHT + row % CONV_HEIGHT) * CONV_WIDTH + first_column + lane;
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
    if (row >= BATCH * CONV_HEIGHT) continue;
#pragma unroll
    for (int i = 0; i < 4 * kPassChannels; ++i) {
      const int from = i / kPassChannels * kThreadChannels + pass + i % kPassChannels;
      if (!kWholeBlocks && first_channel + warp_channel + from >= CHANNELS_OUT) continue;
#pragma unroll
      for (int j = 0; j < kTileColumns; j += 32)
        if (lane + j < columns)
          to[from * CONV_HEIGHT * CONV_WIDTH + j] = rows[i * kOutPitch + lane + j];
    }
  }
}

// The larger one, or NaN if one of them is.
DEVICE float MaxOrNaN(float a, float b) {
  float largest;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(largest) : "f"(a), "f"(b));
  return largest;
}

extern "C" __global__ void __launch_bounds__(256) relu(float* values) {
  const long long at = blockIdx.x * 256ll + threadIdx.x;
  if (at < 1ll * BATCH * CHANNELS_OUT * CONV_HEIGHT * CONV_WIDTH)
    values[at] = MaxOrNaN(values[at], 0);
}

// The largest of each window.
extern "C" __global__ void __launch_bounds__(256)
    pool(const float* __restrict__ values, float* __restrict__ out) {
  const int pixel = blockIdx.x * 256 + threadIdx.x;
  if (pixel >= OUT_HEIGHT * OUT_WIDTH) return;
  const size_t plane = size_t(blockIdx.z) * CHANNELS_OUT + blockIdx.y;
  const int row = pixel / OUT_WIDTH * POOL_STRIDE, column = pixel % OUT_WIDTH * POOL_STRIDE;
  const float* const corner = values + (plane * CONV_HEIGHT + row) * CONV_WIDTH + column;
  float largest = corner[0];
#pragma unroll
  for (int i = 1; i < POOL * POOL; ++i)
    largest = MaxOrNaN(largest, corner[i / POOL * CONV_WIDTH + i % POOL]);
  out[plane * OUT_HEIGHT * OUT_WIDTH + pixel] = largest;
}
