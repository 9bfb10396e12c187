// The input patch itself in shared memory, not its windows.
//
// Idea: neighbouring windows share 7 of 11 columns and of 11 rows, and rung 03 copies every value
// some 7 times. A block that takes two rows of 56 pixels copies the 15 rows of the input below them
// once a channel; a window's element lies at the pixel's corner plus a distance that all threads
// share. The border is tested when a value is copied, and the tile of pixels is 7 a thread.
// Prediction: 60% of the library. 42 multiplies need 13 loads from shared memory, in which lanes
// four floats apart collide in pairs; copying is small, but nothing hides it.
// Measured: 821 us on an H100, 133% of the library, 144% of compiled, 39% of the peak: 1.10 times as
// fast as rung 03, where 1.33 were predicted.
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
//! dim tiles = ceil_div(OUT_HEIGHT, 2) * ceil_div(OUT_WIDTH, 56)
//! constant SHARED_FLOATS = KERNEL * KERNEL * 97 + (4 + KERNEL) * (220 + KERNEL)
//! launch convolve grid=(tiles, ceil_div(CHANNELS_OUT, 96), BATCH) block=(256) shared=4*SHARED_FLOATS args=(x, convolution_weight, convolution_bias, out)

constexpr int kTileRows = 2, kTileColumns = 56, kBlockChannels = 96;
constexpr int kTilesAcross = (OUT_WIDTH + kTileColumns - 1) / kTileColumns;
constexpr int kPatchRows = (kTileRows - 1) * STRIDE + KERNEL;
constexpr int kPatchColumns = (kTileColumns - 1) * STRIDE + KERNEL;
constexpr int kLanes = 16;  // threads across the pixels, and across the channels
constexpr int kThreadChannels = kBlockChannels / kLanes;
constexpr int kThreadPixels = kTileRows * kTileColumns / kLanes;
constexpr int kWindow = KERNEL * KERNEL;
constexpr int kPitch = kBlockChannels + 1;  // of a k's weights: stores go down a column

extern "C" __global__ void __launch_bounds__(256)
    convolve(const float* __restrict__ x, const float* __restrict__ weight,
             const float* __restrict__ bias, float* __restrict__ out) {
  extern __shared__ __align__(16) float shared[];
  float* const weights = shared;
  float* const patch = shared + kWindow * kPitch;
  const int first_row = blockIdx.x / kTilesAcross * kTileRows;
  const int first_column = blockIdx.x % kTilesAcross * kTileColumns;
  const int first_channel = blockIdx.y * kBlockChannels;
  const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  const int top = first_row * STRIDE - PADDING, left = first_column * STRIDE - PADDING;
  int corner[kThreadPixels];
#pragma unroll
  for (int j = 0; j < kThreadPixels; ++j) {
    const int pixel = lane + kLanes * j;
    corner[j] = (pixel / kTileColumns * kPatchColumns + pixel % kTileColumns) * STRIDE;
  }
  float sum[kThreadChannels][kThreadPixels] = {};
  for (int c = 0; c < CHANNELS_IN; ++c) {
    __syncthreads();
    for (int i = threadIdx.x; i < kWindow * kBlockChannels; i += 256) {
      const int channel = first_channel + i / kWindow, k = i % kWindow;
      weights[k * kPitch + i / kWindow] =
          channel < CHANNELS_OUT ? weight[(channel * CHANNELS_IN + c) * kWindow + k] : 0;
    }
    for (int i = threadIdx.x; i < kPatchRows * kPatchColumns; i += 256) {
      const int row = top + i / kPatchColumns, column = left + i % kPatchColumns;
      const bool inside = unsigned(row) < HEIGHT && unsigned(column) < WIDTH;
      patch[i] =
          inside ? x[((size_t(blockIdx.z) * CHANNELS_IN + c) * HEIGHT + row) * WIDTH + column] : 0;
    }
    __syncthreads();
    for (int r = 0; r < KERNEL; ++r)
#pragma unroll
      for (int s = 0; s < KERNEL; ++s)
#pragma unroll
        for (int j = 0; j < kThreadPixels; ++j) {
          const float value = patch[corner[j] + r * kPatchColumns + s];
#pragma unroll
          for (int i = 0; i < kThreadChannels; ++i)
            sum[i][j] += weights[(r * KERNEL + s) * kPitch + group + kLanes * i] * value;
        }
  }
#pragma unroll
  for (int i = 0; i < kThreadChannels; ++i)
#pragma unroll
    for (int j = 0; j < kThreadPixels; ++j) {
      const int channel = first_channel + group + kLanes * i, pixel = lane + kLanes * j;
      const int row = first_row + pixel / kTileColumns;
      const int column = first_column + pixel % kTileColumns;
      if (channel >= CHANNELS_OUT || row >= OUT_HEIGHT || column >= OUT_WIDTH) continue;
      out[((size_t(blockIdx.z) * CHANNELS_OUT + channel) * OUT_HEIGHT + row) * OUT_WIDTH + column] =
          sum[i][j] + bias[channel];
    }
}
