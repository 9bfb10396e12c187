// A thread a pixel, with neighbouring threads beside each other.
//
// Idea: thread x goes along the row. The 16 threads side by side read 192 neighbouring bytes in
// three instructions and write 64 neighbouring bytes. Nothing else changes.
// Prediction: 400% of the library: one pass of 16 bytes a pixel, at the speed of memory, against
// five passes of 72.
// Measured: 373 us on an H100, 425% of the library, 95% of the speed of a copy. As predicted.
//! constant HEIGHT = image.size(0)
//! constant WIDTH = image.size(1)
//! constant TILE = 16
//! launch grey grid=(ceil_div(WIDTH, TILE), ceil_div(HEIGHT, TILE)) block=(TILE, TILE) args=(image, out)
extern "C" __global__ void __launch_bounds__(TILE * TILE)
    grey(const float* __restrict__ image, float* __restrict__ out) {
  const int row = blockIdx.y * TILE + threadIdx.y;
  const int column = blockIdx.x * TILE + threadIdx.x;
  if (row >= HEIGHT || column >= WIDTH) return;
  const long long pixel = (long long)row * WIDTH + column;
  const float* colours = image + 3 * pixel;
  out[pixel] = 0.299f * colours[0] + 0.587f * colours[1] + 0.114f * colours[2];
}
