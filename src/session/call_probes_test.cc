#include "session/call_probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(CallProbes, ASmallerSizeIsReadFromTheOptionsThatMakeIt) {
  EXPECT_THAT(SetOfOptions("--set ROWS=32 --set COLUMNS=64", {{"ROWS", "64"}, {"N", "3"}}),
              ElementsAre(Pair("COLUMNS", "64"), Pair("N", "3"), Pair("ROWS", "32")));
  // A value for a shell, and what is no option.
  EXPECT_THAT(SetOfOptions("--set 'SHAPE=(2, 3)'", {{"ROWS", "64"}}), IsEmpty());
  EXPECT_THAT(SetOfOptions("ROWS", {{"ROWS", "64"}}), IsEmpty());
}

}  // namespace
}  // namespace assay
