// A matrix times a vector in NVFP4 on a CPU, whole numbers by a shuffle, shared out to threads.
//
// Idea: a table of 16 bytes fits a vector register, and one instruction looks up 16 codes. It holds
// twice the numbers (0 to 12), so that a block's products are whole numbers of 16 bits, at most
// 144, and their sums exact. Scales come in as float, once for eight sums.
// Prediction: 1500% of the library, which has as many threads.
// Measured: 266 us at the size of ladder-cpu.toml with one thread, 8688.2% of the library.
//! flags -fopenmp

#include <assay/kernel.h>

#include <cmath>
#include <cstring>
#include <vector>

using assay::bfloat16;
using assay::Tensor;

namespace {

using Bytes = signed char __attribute__((vector_size(16)));
using Codes = unsigned char __attribute__((vector_size(16)));
using Shorts = short __attribute__((vector_size(32)));
using Floats = float __attribute__((vector_size(64)));

constexpr Bytes kTwice = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

struct Scales {
  float of[256];

  Scales() {
    for (int code = 0; code < 256; ++code) {
      const int exponent = code >> 3 & 15, bits = code & 7;
      const float size = exponent == 0 ? std::ldexp(static_cast<float>(bits), -9)
                                       : std::ldexp(8.0f + bits, exponent - 10);
      of[code] = code & 128 ? -size : size;
    }
  }
};

// Twice the numbers of 16 bytes, those in the bytes' lower halves, and in the upper ones.
struct Pack {
  Shorts low, high;
};

// The entries of a table that 16 codes name.
Bytes LookUp(Bytes table, Codes codes) {
#if defined(__clang__)
  Bytes found;
  for (int i = 0; i < 16; ++i) found[i] = table[codes[i]];
  return found;
#else
  return __builtin_shuffle(table, reinterpret_cast<Bytes>(codes));
#endif
}

Pack Unpack(const uint8_t* bytes) {
  Codes codes;
  std::memcpy(&codes, bytes, sizeof codes);
  const Bytes low = LookUp(kTwice, codes & 15);
  const Bytes high = LookUp(kTwice, codes >> 4);
  return {__builtin_convertvector(low, Shorts), __builtin_convertvector(high, Shorts)};
}

// A block's scale in eight places, and the next one's in the other eight.
Floats Spread(float first, float second) {
  return Floats{first,  first,  first,  first,  first,  first,  first,  first,
                second, second, second, second, second, second, second, second};
}

}  // namespace

ASSAY_KERNEL(Tensor<const uint8_t, 3> packed, Tensor<const uint8_t, 3> scales,
             Tensor<const uint8_t, 2> x_packed, Tensor<const uint8_t, 2> x_scales,
             Tensor<const bfloat16, 1> factor, Tensor<bfloat16, 2> out) {
  static const Scales table;
  const int64_t rows = out.size(1), packs = packed.size(2) / 16;
  std::vector<Pack> x(packs);
  for (int64_t b = 0; b < out.size(0); ++b) {
    const uint8_t* const its = x_scales.data() + b * packs * 2;
    for (int64_t i = 0; i < packs; ++i) x[i] = Unpack(x_packed.data() + (b * packs + i) * 16);
#pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
      const uint8_t* const codes = packed.data() + (b * rows + row) * packs * 16;
      const uint8_t* const row_scales = scales.data() + (b * rows + row) * packs * 2;
      Floats sums = {};
      for (int64_t i = 0; i < packs; ++i) {
        const Pack pack = Unpack(codes + 16 * i);
        const Shorts products = pack.low * x[i].low + pack.high * x[i].high;
        sums += __builtin_convertvector(products, Floats) *
                Spread(table.of[row_scales[2 * i]] * table.of[its[2 * i]],
                       table.of[row_scales[2 * i + 1]] * table.of[its[2 * i + 1]]);
      }
      float sum = 0;
      for (int lane = 0; lane < 16; ++lane) sum += sums[lane];
      out(b, row) = sum * 0.25f * static_cast<float>(factor(b));
    }
  }
}
