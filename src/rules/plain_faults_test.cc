#include "rules/plain_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace assay {
namespace {

using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr std::byte kFloatPoison{0xFF}, kIntegerPoison{0xA5};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
OutputView View(DType dtype, const std::vector<T>& candidate, const std::vector<T>& reference) {
  OutputView view;
  view.name = "out";
  view.dtype = dtype;
  view.shape = {2, static_cast<int64_t>(candidate.size()) / 2};
  view.count = static_cast<int64_t>(candidate.size());
  view.candidate = candidate.data();
  view.reference = reference.data();
  return view;
}

int64_t Poisoned() {
  int64_t value;
  std::memset(&value, 0xA5, sizeof(value));
  return value;
}

TEST(PlainFaults, OtherAnswersHaveNone) {
  const std::vector<int64_t> mine{3, 1, 2, 0}, theirs{0, 1, 2, 3};
  EXPECT_FALSE(PlainFault(View(DType::kInt64, mine, theirs), kIntegerPoison));
  const std::vector<float> far{1e9f, 0, 0, 0}, near{1, 2, 3, 4};
  EXPECT_FALSE(PlainFault(View(DType::kFloat32, far, near), kFloatPoison));
}

TEST(PlainFaults, AnUnwrittenElementIsNamed) {
  const std::vector<int64_t> mine{3, 1, 2, Poisoned()}, theirs{0, 1, 2, 3};
  EXPECT_THAT(PlainFault(View(DType::kInt64, mine, theirs), kIntegerPoison),
              Optional(Field(&Hint::text,
                             "1 of the 4 elements of out were never written, the first at "
                             "[1, 1]")));
}

TEST(PlainFaults, NanIsAFaultWhereTheReferenceHasNumbers) {
  const std::vector<float> mine{1, 2, kNan, INFINITY}, theirs{1, 2, 3, 4};
  EXPECT_THAT(
      PlainFault(View(DType::kFloat32, mine, theirs), kFloatPoison),
      Optional(Field(&Hint::text,
                     HasSubstr("2 of the 4 elements of out are NaN or infinite, the first at "
                               "[1, 0]"))));
}

TEST(PlainFaults, NanIsTheChecksBusinessWhereTheReferenceHasSome) {
  const std::vector<float> mine{kNan, 2, 3, 4}, theirs{1, 2, kNan, 4};
  EXPECT_FALSE(PlainFault(View(DType::kFloat32, mine, theirs), kFloatPoison));
}

TEST(PlainFaults, PoisonMayBeAnAnswerOfOneByte) {
  const std::vector<uint8_t> some{0xA5, 1, 2, 3}, all(4, 0xA5), theirs{0, 1, 2, 3};
  EXPECT_FALSE(PlainFault(View(DType::kUInt8, some, theirs), kIntegerPoison));
  EXPECT_THAT(
      PlainFault(View(DType::kUInt8, all, theirs), kIntegerPoison),
      Optional(Field(&Hint::text, HasSubstr("4 of the 4 elements of out were never written"))));
  EXPECT_FALSE(PlainFault(View(DType::kUInt8, all, all), kIntegerPoison));
  EXPECT_THAT(PlainFault(View(DType::kBool, some, theirs), kIntegerPoison),
              Optional(Field(&Hint::text, HasSubstr("1 of the 4"))));
}

TEST(PlainFaults, NothingIsRight) {
  OutputView view;
  EXPECT_FALSE(PlainFault(view, kFloatPoison));
}

}  // namespace
}  // namespace assay
