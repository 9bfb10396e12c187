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
#include <cmath>
#include <vector>

namespace {

constexpr int64_t kBlock = 64;

// The exponentials of a row, and their sums by block.
class Row {
 public:
  explicit Row(int64_t tokens)
      : tokens_(tokens), powers_(tokens), ends_((tokens + kBlock - 1) / kBlock) {}

  void Read(const float* logits) {
    float most = logits[0];
    for (int64_t i = 1; i < tokens_; ++i) most = std::max(most, logits[i]);
    for (int64_t i = 0; i < tokens_; ++i) powers_[i] = std::exp(logits[i] - most);
    float sum = 0;
    for (size_t block = 0; block < ends_.size(); ++block) {
      const int64_t begin = static_cast<int64_t>(block) * kBlock;
      float of_block = 0;
      for (int64_t i = begin; i < std::min(begin + kBlock, tokens_); ++i) of_block += powers_[i];
      ends_[block] = sum += of_block;
    }
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
