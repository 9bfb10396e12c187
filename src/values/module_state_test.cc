#include "values/module_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(ModuleStateTest, ReadsWhatTheReferenceTells) {
  const auto tensors = ParseState(
      R"([{"name": "norm.running_mean", "dtype": 2, "shape": [3, 4], "offset": 64},
          {"name": "norm.num_batches_tracked", "dtype": 5, "shape": [], "offset": 112}])",
      120);
  ASSERT_TRUE(tensors);
  ASSERT_THAT(*tensors, SizeIs(2));
  EXPECT_EQ((*tensors)[0].name, "norm.running_mean");
  EXPECT_THAT((*tensors)[0].shape, ElementsAre(3, 4));
  EXPECT_EQ((*tensors)[0].count, 12);
  EXPECT_EQ((*tensors)[0].end(), 112U);
  EXPECT_EQ((*tensors)[1].dtype, DType::kInt64);
  EXPECT_EQ((*tensors)[1].end(), 120U);
}

TEST(ModuleStateTest, RefusesTensorsOutsideOfTheMemory) {
  for (const char* text :
       {R"([{"name": "x", "dtype": 2, "shape": [3], "offset": 109}])",
        R"([{"name": "x", "dtype": 2, "shape": [-1], "offset": 0}])",
        R"([{"name": "x", "dtype": 2, "shape": [4294967296, 4294967296], "offset": 0}])",
        R"([{"name": "x", "dtype": 99, "shape": [1], "offset": 0}])",
        R"([{"name": "x", "dtype": 2, "shape": [1], "offset": 18446744073709551615}])",
        R"([{"name": "x"}])", "{", "7"})
    EXPECT_FALSE(ParseState(text, 120)) << text;
}

}  // namespace
}  // namespace assay
