#include "rules/constant_outputs.h"

#include <gtest/gtest.h>

#include <limits>

namespace assay {
namespace {

OutputView View(const std::string& name, const std::vector<float>& values) {
  OutputView view;
  view.name = name;
  view.dtype = DType::kFloat32;
  view.count = static_cast<int64_t>(values.size());
  view.shape = {view.count};
  view.reference = values.data();
  return view;
}

TEST(ConstantOutputs, OneValueInAllElementsOfAllDrawsIsNamed) {
  const std::vector<float> varied{1, 2, 3}, zeros(5000, 0), ones(3, 1);
  ConstantOutputs outputs;
  EXPECT_EQ(outputs.Note(), "");
  EXPECT_FALSE(outputs.none_left());
  for (const std::vector<float>& third : {ones, ones})
    outputs.Add(std::vector{View("out", varied), View("out1", zeros), View("out2", third)});
  EXPECT_FALSE(outputs.none_left());
  EXPECT_EQ(outputs.Note(),
            "output out1 is 0 in all elements of all draws: it was compared as a constant alone; "
            "output out2 is 1 in all elements of all draws: it was compared as a constant alone");
}

TEST(ConstantOutputs, OneOtherElementOrAnotherDrawsValueIsEnough) {
  std::vector<float> last(5000, 0);
  last.back() = 1;
  const std::vector<float> twos(4, 2), threes(4, 3), none;
  ConstantOutputs outputs;
  outputs.Add(std::vector{View("a", last), View("b", twos), View("c", none)});
  EXPECT_FALSE(outputs.none_left());
  outputs.Add(std::vector{View("a", last), View("b", threes), View("c", none)});
  EXPECT_TRUE(outputs.none_left());
  EXPECT_EQ(outputs.Note(), "");
}

TEST(ConstantOutputs, NanIsAValueLikeAnother) {
  const std::vector<float> nan(3, std::numeric_limits<float>::quiet_NaN());
  ConstantOutputs outputs;
  outputs.Add(std::vector{View("out", nan)});
  EXPECT_NE(outputs.Note().find("output out is nan"), std::string::npos);
}

}  // namespace
}  // namespace assay
