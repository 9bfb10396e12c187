#include "rules/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::byte> Bytes(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Two rows of two indices; the reference's are 4 and 1, 3 and 0.
struct Case {
  std::vector<int64_t> candidate{4, 1, 3, 0};
  std::vector<int64_t> reference{4, 1, 3, 0};
  SelectedValues selected;
  std::string hint;

  Case(const std::vector<float>& got, const std::vector<float>& expected,
       const std::vector<double>& truth) {
    selected.candidate = Bytes(got);
    selected.reference = Bytes(expected);
    selected.truth = truth;
    selected.has_truth = !truth.empty();
  }
  OutputComparison Compare(const CompareRule& rule = {PrecisionClass::kExact, std::nullopt}) {
    OutputView view;
    view.name = "out1";
    view.dtype = DType::kInt64;
    view.shape = {2, 2};
    view.count = 4;
    view.candidate = candidate.data();
    view.reference = reference.data();
    return CompareSelected(view, selected, rule, &hint);
  }
};

TEST(Selection, OtherIndicesOfEqualValuesAreRight) {
  Case same({5, 2, 7, 7}, {5, 2, 7, 7}, {5, 2, 7, 7});
  same.candidate = {4, 1, 0, 3};
  EXPECT_TRUE(same.Compare().passed);
  same.selected.exact = true;
  EXPECT_TRUE(same.Compare().passed);
}

TEST(Selection, AnIndexOfAnotherValueIsWrongAndNamed) {
  Case other({5, 2, 7, 6}, {5, 2, 7, 7}, {5, 2, 7, 7});
  other.candidate = {4, 1, 3, 2};
  const OutputComparison result = other.Compare();
  EXPECT_FALSE(result.passed);
  ASSERT_TRUE(result.mismatch.has_value());
  EXPECT_THAT(result.mismatch->index, ElementsAre(1, 1));
  EXPECT_EQ(result.mismatch->got, 2);
  EXPECT_EQ(result.mismatch->expected, 0);
  EXPECT_THAT(other.hint, HasSubstr("index 2 selects 6, where the right one, 0, selects 7"));
}

TEST(Selection, ValuesThatRoundingMovedMayBeSwappedButNotValuesThatWereGiven) {
  const float near = std::nextafter(7.0f, 0.0f);
  Case swapped({5, 2, near, 7}, {5, 2, 7, near}, {5, 2, 7, double{near}});
  EXPECT_TRUE(swapped.Compare().passed);
  swapped.selected.exact = true;
  EXPECT_FALSE(swapped.Compare().passed);
}

TEST(Selection, NanIsEqualToNanAlone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(Case({nan, 2, 7, 7}, {nan, 2, 7, 7}, {nan, 2, 7, 7}).Compare().passed);
  EXPECT_FALSE(Case({5, 2, 7, 7}, {nan, 2, 7, 7}, {nan, 2, 7, 7}).Compare().passed);
}

TEST(Selection, IndicesOutOfRangeAndIndicesThatStandTwiceAreWrong) {
  Case outside({5, 2, 7, 7}, {5, 2, 7, 7}, {5, 2, 7, 7});
  outside.candidate = {4, 99, 3, 0};
  outside.selected.out_of_range = 1;
  outside.selected.first_fault = 1;
  const OutputComparison result = outside.Compare();
  EXPECT_FALSE(result.passed);
  EXPECT_THAT(result.mismatch->index, ElementsAre(0, 1));
  EXPECT_EQ(result.mismatch->got, 99);
  EXPECT_THAT(outside.hint, HasSubstr("1 of the 4 indices are out of range"));
  outside.selected.has_windows = true;
  EXPECT_FALSE(outside.Compare().passed);
  EXPECT_THAT(outside.hint, HasSubstr("1 of the 4 indices lie outside of their window"));
  Case twice({5, 5, 7, 7}, {5, 5, 7, 7}, {5, 5, 7, 7});
  twice.selected.repeated = 2;
  EXPECT_FALSE(twice.Compare().passed);
  EXPECT_THAT(twice.hint, HasSubstr("2 of the 4 indices stand twice along the axis"));
}

TEST(Selection, WithoutFloat64ValuesAreComparedWithTheReferences) {
  EXPECT_TRUE(Case({5, 2, 7, 7}, {5, 2, 7, 7}, {}).Compare().passed);
  EXPECT_FALSE(Case({5, 2, 7, 6}, {5, 2, 7, 7}, {}).Compare().passed);
}

}  // namespace
}  // namespace assay
