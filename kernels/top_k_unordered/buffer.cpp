// The largest elements of each row, in any order: a buffer of those that may be among them.
//
// Idea: PyTorch copies each row with its positions and partitions the copy. Here the first 64
// elements are partitioned, and the smallest of the chosen ones is a bound: of those to come only
// larger ones matter. They are few, and go into a buffer; groups without one are skipped by one
// comparison of vectors. When the buffer is full it is partitioned, and the bound rises. A float's
// bits are turned into a key whose order is that of numbers, and NaN is the largest.
// expected: faster at small
#include <assay/kernel.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace {

constexpr int64_t kGroup = 32, kFirst = 64;

struct Entry {
  uint32_t key;
  int32_t position;
};

bool IsLarger(const Entry& a, const Entry& b) { return a.key > b.key; }

// Returns a key that orders floats as numbers; every NaN has the largest.
uint32_t KeyOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  // -0 equals 0.
  const uint32_t key = bits == magnitude ? 0x80000000u + magnitude : 0x80000000u - magnitude;
  return magnitude > 0x7F800000u ? 0xFFFFFFFFu : key;
}

class Largest {
 public:
  explicit Largest(int64_t count)
      : count_(count),
        first_(std::max(kFirst, 2 * count)),
        positions_(first_ + kGroup),
        entries_(first_ + kGroup) {}

  // Writes the largest elements of a row and their positions.
  void Of(const float* row, int64_t columns, float* values, int64_t* positions) {
    const int64_t begin = std::min(columns, first_);
    std::iota(positions_.begin(), positions_.begin() + begin, 0);
    used_ = begin;
    Keep(row);
    // Behind a NaN as the smallest of the chosen nothing is larger.
    int64_t next = bound_ == bound_ ? begin : columns;
    for (; next + kGroup <= columns && bound_ == bound_; next += kGroup) LookAtGroup(row, next);
    if (bound_ == bound_) Look(row, next, columns);
    Keep(row);
    for (int64_t i = 0; i < count_; ++i) {
      positions[i] = positions_[i];
      values[i] = row[positions_[i]];
    }
  }

 private:
  // An element that equals the bound is not needed: COUNT others are as large. NaN passes.
  bool MayHold(float value) const { return !(value <= bound_); }

  void LookAtGroup(const float* row, int64_t begin) {
    int32_t any = 0;
    for (int64_t i = 0; i < kGroup; ++i) any |= MayHold(row[begin + i]) ? 1 : 0;
    if (any != 0) Look(row, begin, begin + kGroup);
  }

  void Look(const float* row, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      positions_[used_] = static_cast<int32_t>(i);
      used_ += MayHold(row[i]) ? 1 : 0;
    }
    if (used_ >= first_) Keep(row);
  }

  void Keep(const float* row) {
    for (int64_t i = 0; i < used_; ++i) entries_[i] = {KeyOf(row[positions_[i]]), positions_[i]};
    std::nth_element(entries_.begin(), entries_.begin() + (count_ - 1), entries_.begin() + used_,
                     IsLarger);
    used_ = count_;
    for (int64_t i = 0; i < used_; ++i) positions_[i] = entries_[i].position;
    bound_ = row[positions_[count_ - 1]];
  }

  int64_t count_, first_, used_ = 0;
  float bound_ = 0;  // of the elements to come only larger ones are needed
  std::vector<int32_t> positions_;
  std::vector<Entry> entries_;
};

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> out,
             assay::Tensor<int64_t, 2> out1) {
  const int64_t rows = x.size(0), columns = x.size(1), count = out.size(1);
  Largest largest(count);
  for (int64_t row = 0; row < rows; ++row)
    largest.Of(x.data() + row * columns, columns, out.data() + row * count,
               out1.data() + row * count);
}
