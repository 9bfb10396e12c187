// What the judge and its kernels on the device hand each other. Plain structs, the same for the
// host's compiler and the device's.
#pragma once

namespace assay::gpu {

// A warp reads so many elements of a row at a time.
inline constexpr long long kUnitElements = 2048;

// Floating-point types are compared by their errors, the others by their bytes.
enum class ElementType : int { kFloat64 = 1, kFloat32, kFloat16, kBFloat16, kBytes, kBool };

struct Range {
  unsigned long long* begin;
  unsigned long long words;  // of 8 bytes
  unsigned long long pattern;
};

// Of one row of one output of one call. Zero before.
struct Row {
  double difference2, reference2;     // sums of squares
  unsigned long long difference_max;  // bits of a double
  double scale;                       // root mean square of the expected values
  int again;                          // to be read by row_ratio
  int reserved;
};

// Of one output of one call. Zero before.
struct Totals {
  double difference2, reference2;
  unsigned long long difference_max, element;  // bits of doubles
  int beyond;  // a NaN, an infinity, or an element beyond the limit: the host looks
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

}  // namespace assay::gpu
