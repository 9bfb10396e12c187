// The largest elements of each row, in any order: a buffer of those that may be among them.
//
// Idea: PyTorch copies each row with its positions and partitions the copy. Here a row is read
// once. A bound is kept below which nothing can be chosen any more; few elements pass it, and
// they go into a buffer of twice COUNT, in groups of which most are skipped by one comparison.
// When the buffer is full its larger half stays, and gives the next bound. A float's bits are
// turned into a key whose order is that of numbers, and NaN is the largest.
// expected: faster at small
#include <assay/kernel.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t kGroup = 32;

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
  explicit Largest(int64_t count) : count_(count), entries_(2 * count + kGroup) {}

  // Writes the largest elements of a row and their positions.
  void Of(const float* row, int64_t columns, float* values, int64_t* positions) {
    used_ = 0;
    bound_ = 0;
    for (int64_t begin = 0; begin < columns; begin += kGroup)
      Look(row, begin, std::min(begin + kGroup, columns));
    Keep();
    for (int64_t i = 0; i < count_; ++i) {
      positions[i] = entries_[i].position;
      values[i] = row[entries_[i].position];
    }
  }

 private:
  void Look(const float* row, int64_t begin, int64_t end) {
    uint32_t keys[kGroup];
    uint32_t best = 0;
    for (int64_t i = begin; i < end; ++i) {
      keys[i - begin] = KeyOf(row[i]);
      best = std::max(best, keys[i - begin]);
    }
    // An element that equals the bound is not needed: COUNT others are as large.
    if (best <= bound_ && bound_ > 0) return;
    for (int64_t i = begin; i < end; ++i)
      if (keys[i - begin] > bound_ || bound_ == 0)
        entries_[used_++] = {keys[i - begin], static_cast<int32_t>(i)};
    if (used_ >= 2 * count_) Keep();
  }

  void Keep() {
    if (used_ <= count_) return;
    std::nth_element(entries_.begin(), entries_.begin() + (count_ - 1), entries_.begin() + used_,
                     IsLarger);
    used_ = count_;
    bound_ = entries_[count_ - 1].key;
  }

  int64_t count_, used_ = 0;
  uint32_t bound_ = 0;  // of the elements to come those up to it are not needed; 0: all are
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
