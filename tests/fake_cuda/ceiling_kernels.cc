// The kernels that measure a GPU as a 'cubin' of the fake driver; matrix products in their place
// are made here, right ones and wrong ones.
#define ASSAY_EMULATED
#include "gpu/ceiling_kernels.cu"

#include <stdint.h>

ASSAY_FAKE_KERNEL(assay_empty_emulated) { (void)launch; }
ASSAY_FAKE_KERNEL(assay_weyl_emulated, sizeof(void*), sizeof(long long)) {
  EmulateGrid(launch,
              [&] { assay_weyl(launch.parameter<Words*>(0), launch.parameter<long long>(1)); });
}
ASSAY_FAKE_KERNEL(assay_copy_emulated, sizeof(void*), sizeof(void*), sizeof(long long)) {
  EmulateGrid(launch, [&] {
    assay_copy(launch.parameter<const Words*>(0), launch.parameter<Words*>(1),
               launch.parameter<long long>(2));
  });
}
ASSAY_FAKE_KERNEL(assay_read_emulated, sizeof(void*), sizeof(long long), sizeof(int),
                  sizeof(void*)) {
  EmulateGrid(launch, [&] {
    assay_read(launch.parameter<const Words*>(0), launch.parameter<long long>(1),
               launch.parameter<int>(2), launch.parameter<unsigned*>(3));
  });
}
ASSAY_FAKE_KERNEL(assay_float32_emulated, sizeof(void*), sizeof(float), sizeof(float),
                  sizeof(int)) {
  EmulateGrid(launch, [&] {
    assay_float32(launch.parameter<float*>(0), launch.parameter<float>(1),
                  launch.parameter<float>(2), launch.parameter<int>(3));
  });
}
ASSAY_FAKE_KERNEL(assay_float64_emulated, sizeof(void*), sizeof(double), sizeof(double),
                  sizeof(int)) {
  EmulateGrid(launch, [&] {
    assay_float64(launch.parameter<double*>(0), launch.parameter<double>(1),
                  launch.parameter<double>(2), launch.parameter<int>(3));
  });
}
// A kernel that does nothing at all.
ASSAY_FAKE_KERNEL(lazy, sizeof(void*)) { (void)launch; }

namespace {

// bfloat16 operands in rows of 128 bytes; the first block's products, which all blocks have.
void Products(const FakeLaunch& launch, int columns) {
  constexpr int kRows = 128, kDepth = 64;
  const auto* a = launch.parameter<const uint16_t*>(0);
  const auto* b = launch.parameter<const uint16_t*>(1);
  auto* out = launch.parameter<float*>(2);
  const auto rounds = static_cast<float>(launch.parameter<int>(3));
  const auto value = [](uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); };
  const int results = kRows * columns;
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < columns; ++column) {
      float sum = 0;
      for (int k = 0; k < kDepth; ++k)
        sum += value(a[row * kDepth + k]) * value(b[column * kDepth + k]);
      out[row * columns + column] = rounds * sum;
    }
  for (unsigned block = 1; block < launch.config->grid_x; ++block)
    for (int i = 0; i < results; ++i) out[block * static_cast<unsigned>(results) + i] = out[i];
}

}  // namespace

ASSAY_FAKE_KERNEL(products_of_64, sizeof(void*), sizeof(void*), sizeof(void*), sizeof(int)) {
  Products(launch, 64);
}
ASSAY_FAKE_KERNEL(products_of_256, sizeof(void*), sizeof(void*), sizeof(void*), sizeof(int)) {
  Products(launch, 256);
}
// Pairs of halves that turn over an odd number of times: the doctor's sum of them.
ASSAY_FAKE_KERNEL(pairs, sizeof(void*), sizeof(unsigned), sizeof(unsigned), sizeof(int)) {
  auto* out = launch.parameter<unsigned*>(0);
  unsigned sum = 0;
  for (unsigned i = launch.parameter<int>(3) % 2 == 0 ? 0 : 1; i < 16; i += 2)
    sum += launch.parameter<unsigned>(2) * (i + 1);
  for (unsigned i = 0; i < launch.config->grid_x * launch.config->block_x; ++i) out[i] = sum;
}
