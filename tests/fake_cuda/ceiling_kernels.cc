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

// Element types as their own definitions have them.
struct Float8 {
  uint8_t bits;
  explicit operator double() const {
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    const double value =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 7 - 3);
    return (bits & 0x80) != 0 ? -value : value;
  }
};
struct BFloat16 {
  uint16_t bits;
  explicit operator double() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

// Operands in rows of 128 bytes; the first block's products, which all blocks have.
template <typename Element>
void Products(const FakeLaunch& launch, int columns) {
  constexpr int kRows = 128, kDepth = 128 / sizeof(Element);
  const auto* a = launch.parameter<const Element*>(0);
  const auto* b = launch.parameter<const Element*>(1);
  auto* out = launch.parameter<float*>(2);
  const int rounds = launch.parameter<int>(3), results = kRows * columns;
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < columns; ++column) {
      double sum = 0;
      for (int k = 0; k < kDepth; ++k)
        sum +=
            static_cast<double>(a[row * kDepth + k]) * static_cast<double>(b[column * kDepth + k]);
      out[row * columns + column] = static_cast<float>(rounds * sum);
    }
  for (unsigned block = 1; block < launch.config->grid_x; ++block)
    for (int i = 0; i < results; ++i) out[block * static_cast<unsigned>(results) + i] = out[i];
}

}  // namespace

#define PRODUCTS(name, type, columns)                                                 \
  ASSAY_FAKE_KERNEL(name, sizeof(void*), sizeof(void*), sizeof(void*), sizeof(int)) { \
    Products<type>(launch, columns);                                                  \
  }
PRODUCTS(float16_products, _Float16, 256)
PRODUCTS(bfloat16_products, BFloat16, 256)
PRODUCTS(tf32_products, float, 256)
PRODUCTS(float8_products, Float8, 256)
PRODUCTS(float64_narrow_products, double, 64)
PRODUCTS(bfloat16_narrow_products, BFloat16, 64)

// Pairs of halves that turn over an odd number of times: the doctor's sum of them.
ASSAY_FAKE_KERNEL(pairs, sizeof(void*), sizeof(unsigned), sizeof(unsigned), sizeof(int)) {
  auto* out = launch.parameter<unsigned*>(0);
  unsigned sum = 0;
  for (unsigned i = launch.parameter<int>(3) % 2 == 0 ? 0 : 1; i < 16; i += 2)
    sum += launch.parameter<unsigned>(2) * (i + 1);
  for (unsigned i = 0; i < launch.config->grid_x * launch.config->block_x; ++i) out[i] = sum;
}
