// The data that the judge and its kernels on the device exchange: plain structs, the same for the
// host's compiler and the device's.
#pragma once

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
  const double* truth;
  long long elements;  // a multiple of row_elements
  long long row_elements;
  double row_scale_floor;  // a row's scale is at least this share of the whole output's
  ElementType type;        // floating-point, and not kFloat64
  TruthRow* rows;          // elements / row_elements
  TruthTotals* totals;
};

}  // namespace assay::gpu
