// A thread a pixel, with neighbouring threads below each other.
//
// Idea: blocks of 16x16 threads cover the image; each thread makes 0.299 red + 0.587 green + 0.114
// blue of one pixel. A pixel (100, 200, 50) becomes 29.9 + 117.4 + 5.7 = 153. Thread x goes down
// the image, which looks harmless, yet the 16 pixels side by side in a warp lie a row apart in
// memory.
// Prediction: 100% of the library, by luck: the library makes five passes, about 72 bytes a pixel
// instead of 16, and loses what this rung loses by touching a sector of 32 bytes for each pixel's
// 12.
// Measured: 584 us on an H100, 273% of the library, 61% of the speed of a copy: far above the
// prediction. Likely: the sectors that a warp touches stay in L1 until its neighbours want the rest
// of them.
//! constant HEIGHT = image.size(0)
//! constant WIDTH = image.size(1)
//! constant TILE = 16
//! launch grey grid=(ceil_div(HEIGHT, TILE), ceil_div(WIDTH, TILE)) block=(TILE, TILE) args=(image, out)
extern "C" __global__ void __launch_bounds__(TILE * TILE)
    grey(const float* __restrict__ image, float* __restrict__ out) {
  const int row = blockIdx.x * TILE + threadIdx.x;
  const int column = blockIdx.y * TILE + threadIdx.y;
  if (row >= HEIGHT || column >= WIDTH) return;
  const long long pixel = (long long)row * WIDTH + column;
  const float* colours = image + 3 * pixel;
  out[pixel] = 0.299f * colours[0] + 0.587f * colours[1] + 0.114f * colours[2];
}
