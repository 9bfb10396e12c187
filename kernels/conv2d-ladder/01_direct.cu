// Convolution by its definition: one thread an element of the result.
//
// Idea: a thread adds up the products of its window. Neighbouring threads take neighbouring pixels.
// Prediction: 15% of the library. A multiply needs two loads and the tests of two borders; the
// loads are found in the caches, most of them: windows of neighbours overlap.
// Measured: 7.21 ms on an H100, 17.5% of the library (22% of compiled), 4.4% of the peak: a little
// better than predicted.
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
//! launch convolve grid=(ceil_div(OUT_HEIGHT * OUT_WIDTH, 256), CHANNELS_OUT, BATCH) block=(256) args=(x, convolution_weight, convolution_bias, out)
extern "C" __global__ void __launch_bounds__(256)
    convolve(const float* __restrict__ x, const float* __restrict__ weight,
             const float* __restrict__ bias, float* __restrict__ out) {
  const int pixel = blockIdx.x * 256 + threadIdx.x, channel = blockIdx.y;
  if (pixel >= OUT_HEIGHT * OUT_WIDTH) return;
  const int top = pixel / OUT_WIDTH * STRIDE - PADDING;
  const int left = pixel % OUT_WIDTH * STRIDE - PADDING;
  float sum = bias[channel];
  for (int c = 0; c < CHANNELS_IN; ++c)
    for (int r = 0; r < KERNEL; ++r)
      for (int s = 0; s < KERNEL; ++s) {
        const int row = top + r, column = left + s;
        if (row < 0 || row >= HEIGHT || column < 0 || column >= WIDTH) continue;
        sum += weight[((channel * CHANNELS_IN + c) * KERNEL + r) * KERNEL + s] *
               x[((size_t(blockIdx.z) * CHANNELS_IN + c) * HEIGHT + row) * WIDTH + column];
      }
  out[(size_t(blockIdx.z) * CHANNELS_OUT + channel) * OUT_HEIGHT * OUT_WIDTH + pixel] = sum;
}
