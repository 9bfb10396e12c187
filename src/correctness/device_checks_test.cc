#include "correctness/device_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace assay {
namespace {

// One NaN makes all of x / norm(x) NaN: there is no scale, and the host looked at 6.4 GB of outputs
// that agree: a verdict took 60 s.
TEST(DenormalsDecide, OnlyWhereOutputsDiffer) {
  JudgeKernels::Measured measured;
  EXPECT_FALSE(DenormalsDecide(measured, DType::kFloat32));
  measured.norm = measured.element = 1e-3;
  EXPECT_TRUE(DenormalsDecide(measured, DType::kFloat32));
  measured.root_mean_square = 1;
  EXPECT_FALSE(DenormalsDecide(measured, DType::kFloat32));
  measured = {};
  measured.kinds_agree = false;
  EXPECT_TRUE(DenormalsDecide(measured, DType::kFloat32));
}

wire::ArgumentSpec Output(std::vector<int64_t> shape) {
  wire::ArgumentSpec output{};
  output.dtype = DType::kFloat32;
  output.rank = static_cast<uint32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), output.shape);
  output.size_bytes = sizeof(float);
  for (const int64_t size : shape) output.size_bytes *= static_cast<uint64_t>(size);
  return output;
}

// A wrong convolution of KernelBench's size was looked at by images of 512 MiB: a verdict took
// 40 s.
TEST(PartsOfOutput, AreSmallWhateverTheFirstDimension) {
  wire::ArgumentSpec output = Output({16, 128, 1024, 1024});
  output.offset = 4096;
  output.oracle_offset = 64;
  const auto parts = PartsOf(output, 2);
  ASSERT_EQ(parts.size(), 16u * 128 / 8);
  uint64_t begin = output.offset;
  for (const WrongRows& part : parts) {
    EXPECT_EQ(part.output, 2u);
    EXPECT_EQ(part.rows.size_bytes, 32u << 20);
    EXPECT_EQ(part.rows.offset, begin);
    EXPECT_EQ(part.rows.oracle_offset - 64, 2 * (begin - output.offset));
    begin += part.rows.size_bytes;
  }
  EXPECT_EQ(begin, output.offset + output.size_bytes);
  const WrongRows& late = parts[17];  // from channel 136 on, in all
  EXPECT_EQ(late.rows.rank, 3u);
  EXPECT_EQ(IndexInOutput(late, output, {3, 5, 7}), (std::vector<int64_t>{1, 11, 5, 7}));
}

TEST(PartsOfOutput, KeepRowsWhole) {
  const wire::ArgumentSpec output = Output({3, 64 << 20});
  const auto parts = PartsOf(output, 0);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(IndexInOutput(parts[2], output, {0, 9}), (std::vector<int64_t>{2, 9}));
  const wire::ArgumentSpec flat = Output({int64_t{20} << 20});
  ASSERT_EQ(PartsOf(flat, 0).size(), 3u);
  EXPECT_EQ(IndexInOutput(PartsOf(flat, 0)[1], flat, {1}),
            (std::vector<int64_t>{(int64_t{8} << 20) + 1}));
}

}  // namespace
}  // namespace assay
