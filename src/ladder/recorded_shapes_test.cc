#include "ladder/recorded_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(RecordedShapes, ASignatureIsReadAsItIsWritten) {
  const std::vector<std::string> signature = {
      "input x float32[512, 4096]", "parameter weight bfloat16[4096]", "output out float32[]"};
  const auto description = DescriptionOf(signature);
  ASSERT_TRUE(description);
  std::vector<std::string> again;
  for (const wire::ArgumentSpec& argument : description->arguments)
    again.push_back(DescribeArgument(argument));
  EXPECT_EQ(again, signature);
  EXPECT_EQ(description->arguments[0].size_bytes, 512u * 4096 * 4);
  EXPECT_EQ(description->arguments[2].size_bytes, 4u);
}

TEST(RecordedShapes, WhatIsNoTensorIsNotGuessed) {
  for (const char* line :
       {"input p float", "input x float33[2]", "wish x float32[2]", "input x float32[2", "",
        "input x float32[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]",
        "input x float32[9223372036854775807, 9223372036854775807]", "input x float32[-1]"})
    EXPECT_FALSE(DescriptionOf({line})) << line;
}

TEST(RecordedShapes, ThoseOfAShippedLadder) {
  const auto ladder =
      ReadLadder(ASSAY_SOURCE_DIRECTORY "/kernels/flash-attention/ladder_cudnn.toml");
  ASSERT_TRUE(ladder) << ladder.error().message;
  const auto description = RecordedDescription(*ladder, ladder->sizes.front());
  ASSERT_TRUE(description);
  EXPECT_EQ(DescribeArgument(description->arguments.front()),
            "input query bfloat16[4, 16, 4096, 128]");
  EXPECT_FALSE(RecordedDescription(*ladder, {{"LENGTH", "3"}}));
}

}  // namespace
}  // namespace assay
