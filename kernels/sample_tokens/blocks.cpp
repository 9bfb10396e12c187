// Tokens drawn by the softmax of logits: sums of blocks lead to the place of each number.
//
// Idea: PyTorch writes all probabilities, then their cumulative sum, and searches that. Here a
// row is read twice, once for its maximum and once for its exponentials, which stay in one
// buffer; only the sum of each block of 64 is added to those before. A number is looked for among
// the blocks, and then in its block. Sums have another order than PyTorch's, so some samples get
// the token beside.
// expected: faster at small
#include <assay/kernel.h>

#include <algorithm>
#include <bit>
#include <vector>

namespace {

constexpr int64_t kBlock = 64;
constexpr int kLanes = 16;  // loops over these become vectors

// Returns e to the x, for x up to 0, off by a few units in the last place; below -87 about 1e-38.
inline float Exp(float x) {
  const float scaled = std::max(x * 1.44269504f, -126.0f);
  const float whole = (scaled + 12582912.0f) - 12582912.0f;  // rounded
  const float part = scaled - whole;
  float power = 1.5403530e-4f;
  for (const float term :
       {1.3333558e-3f, 9.6181291e-3f, 5.5504109e-2f, 2.4022651e-1f, 6.9314718e-1f, 1.0f})
    power = power * part + term;
  return std::bit_cast<float>(std::bit_cast<int32_t>(power) + (static_cast<int32_t>(whole) << 23));
}

// The exponentials of a row, and their sums by block.
class Row {
 public:
  // The buffer is filled up to whole blocks by zeros.
  explicit Row(int64_t tokens)
      : tokens_(tokens),
        powers_((tokens + kBlock - 1) / kBlock * kBlock),
        ends_(powers_.size() / kBlock) {}

  void Read(const float* logits) {
    const float most = Most(logits);
    for (int64_t i = 0; i < tokens_; ++i) powers_[i] = Exp(logits[i] - most);
    float sum = 0;
    for (size_t block = 0; block < ends_.size(); ++block)
      ends_[block] = sum += SumOf(powers_.data() + block * kBlock);
  }

  // Returns the token in whose part of (0, 1) the number lies.
  int64_t TokenAt(float number) const {
    const float place = number * ends_.back();
    const auto found = std::upper_bound(ends_.begin(), ends_.end(), place);
    const int64_t block = std::min<int64_t>(found - ends_.begin(), ends_.size() - 1);
    float end = block == 0 ? 0 : ends_[block - 1];
    const int64_t last = std::min((block + 1) * kBlock, tokens_) - 1;
    for (int64_t i = block * kBlock; i < last; ++i) {
      end += powers_[i];
      if (place < end) return i;
    }
    return last;
  }

 private:
  float Most(const float* logits) const {
    float lanes[kLanes];
    std::fill(lanes, lanes + kLanes, logits[0]);
    int64_t i = 0;
    for (; i + kLanes <= tokens_; i += kLanes)
      for (int lane = 0; lane < kLanes; ++lane)
        lanes[lane] = lanes[lane] > logits[i + lane] ? lanes[lane] : logits[i + lane];
    float most = *std::max_element(lanes, lanes + kLanes);
    for (; i < tokens_; ++i) most = std::max(most, logits[i]);
    return most;
  }

  static float SumOf(const float* block) {
    float lanes[kLanes] = {};
    for (int64_t i = 0; i < kBlock; i += kLanes)
      for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += block[i + lane];
    float sum = 0;
    for (const float lane : lanes) sum += lane;
    return sum;
  }

  int64_t tokens_;
  std::vector<float> powers_, ends_;
};

}  // namespace

ASSAY_KERNEL(assay::Tensor<const float, 2> logits, assay::Tensor<const int32_t, 2> bits,
             assay::Tensor<int64_t, 2> out) {
  const int64_t rows = logits.size(0), tokens = logits.size(1), samples = bits.size(1);
  Row row(tokens);
  for (int64_t i = 0; i < rows; ++i) {
    row.Read(logits.data() + i * tokens);
    for (int64_t j = 0; j < samples; ++j)
      out.data()[i * samples + j] =
          row.TokenAt((static_cast<float>(bits.data()[i * samples + j]) + 0.5f) * 0x1p-23f);
  }
}
