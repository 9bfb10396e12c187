// The data that the judge and its kernels on the device exchange, and the arithmetic that both do:
// the same for the host's compiler and the device's.
#pragma once

#ifdef __CUDACC__
#define ASSAY_BOTH __host__ __device__
#else
#define ASSAY_BOTH
#endif

namespace assay::gpu {

// The number of a row's elements that a warp reads at a time.
inline constexpr long long kUnitElements = 2048;

// Floating-point types are compared by their errors, the others by their bytes.
enum class ElementType : int { kFloat64 = 1, kFloat32, kFloat16, kBFloat16, kBytes, kBool };

struct Range {
  unsigned long long* begin;
  unsigned long long words;  // of 8 bytes
  unsigned long long pattern;
};

// A line of memory to copy.
struct Line {
  const unsigned long long* from;
  unsigned long long* to;
};

// How the elements of a floating-point tensor change (values/varied_weights.h).
enum class Change : int {
  kDrawn,    // the mantissa is drawn anew, the exponent changes by at most one; by `signs` the sign
  kLowBits,  // the mantissa is drawn anew, all but its two highest bits
  kScaled,   // halved, doubled or left
};

struct Variation {
  unsigned long long seed;
  unsigned mantissa_bits, exponent_bits;
  Change change;
  bool signs;
};

// A tensor of the weights in one copy. `words` of 8 bytes, the last one maybe in part.
struct VariedTensor {
  const unsigned long long* constructed;
  unsigned long long* copy;
  unsigned long long words;
  Variation variation;
};

// Returns 64 random bits for a number (the finaliser of SplitMix64).
ASSAY_BOTH inline unsigned long long RandomBits(unsigned long long number) {
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9ull;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EBull;
  return number ^ (number >> 31);
}

// Returns the change of an exponent under kDrawn for three random bits: one less for five of eight,
// one more for one. The mean square of a tensor then stays about what it was.
ASSAY_BOTH inline int ExponentChange(unsigned random) {
  return random < 5 ? -1 : random < 7 ? 0 : 1;
}

// Returns word number `index` of a tensor, varied. Zeros, denormals, infinities and NaN stay, as do
// exponents whose change would make one of them.
ASSAY_BOTH inline unsigned long long VariedWord(unsigned long long word, unsigned long long index,
                                                const Variation& how) {
  const unsigned long long random = RandomBits(how.seed + index * 0x9E3779B97F4A7C15ull);
  const unsigned bits = 1 + how.exponent_bits + how.mantissa_bits;
  const unsigned long long unit = 1ull << how.mantissa_bits;
  const unsigned long long exponent_max = (1ull << how.exponent_bits) - 1;
  for (unsigned at = 0; at < 64; at += bits) {
    const unsigned long long exponent = word >> (at + how.mantissa_bits) & exponent_max;
    if (exponent == 0 || exponent == exponent_max) continue;
    const unsigned long long drawn = random >> at;
    int scale = 0;
    if (how.change == Change::kDrawn) {
      word ^= (drawn & (unit - 1)) << at;
      const auto rest = static_cast<unsigned>(drawn >> how.mantissa_bits);
      scale = ExponentChange(rest & 7);
      if (how.signs) word ^= static_cast<unsigned long long>(rest >> 3 & 1) << (at + bits - 1);
    } else if (how.change == Change::kLowBits) {
      word ^= (drawn & ((unit >> 2) - 1)) << at;
    } else {
      scale = (drawn & 3) == 0 ? 1 : (drawn & 3) == 1 ? -1 : 0;
    }
    if (scale > 0 && exponent + 1 < exponent_max)
      word += unit << at;
    else if (scale < 0 && exponent > 1)
      word -= unit << at;
  }
  return word;
}

// Sums of one row of one output of one call. All zero before.
struct Row {
  double difference2, reference2;     // sums of squares
  unsigned long long difference_max;  // bits of a double
  double scale;                       // root mean square of the expected values
  int again;                          // 1: row_ratio must read it
  int reserved;
};

// Sums of one output of one call. All zero before.
struct Totals {
  double difference2, reference2;
  unsigned long long difference_max, element;  // bits of doubles
  int beyond;  // a NaN, an infinity, or an element beyond the limit: the host compares it
  int again;
};

struct Comparison {
  const void* candidate;
  const void* expected;
  long long elements;  // a multiple of row_elements; kBytes and kBool: bytes
  long long row_elements;
  double element_limit;  // of |y - r| / (scale + |r|)
  ElementType type;
  Row* rows;  // elements / row_elements
  Totals* totals;
};

// Sums of one row of one output, against its float64 truth. All zero before.
struct TruthRow {
  double truth2;              // sum of squares of the finite elements
  unsigned long long finite;  // number of these
};

// Sums of one output of one call, against its float64 truth. All zero before.
struct TruthTotals {
  double truth2, candidate2, reference2;  // sums of squares: of the truth, of the differences to it
  unsigned long long finite;              // number of elements whose truth is finite
  unsigned long long candidate_element, reference_element, candidate_max;  // bits of doubles
  // Set if an element is NaN or infinite and the truth is not the same.
  int candidate_differs, reference_differs;
};

// An output of the candidate and one of the reference, against float64.
struct TruthComparison {
  const void* candidate;
  const void* reference;
  const double* truth;  // null: the reference's output is the truth
  long long elements;   // a multiple of row_elements
  long long row_elements;
  double row_scale_floor;  // a row's scale is at least this share of the whole output's
  ElementType type;        // floating-point, and not kFloat64
  TruthRow* rows;          // elements / row_elements
  TruthTotals* totals;
};

}  // namespace assay::gpu
