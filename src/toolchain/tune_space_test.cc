#include "toolchain/tune_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "toolchain/build.h"
#include "toolchain/device_program.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::string_view kSource =
    "// a kernel\n"
    "//! tune ROWS = 4 1 8\n"
    "//! tune  STEP = 2 4\n"
    "//! require ROWS >= STEP\n"
    "int main() {}\n";

TuneSpace SpaceOf(std::string_view source, std::string_view language = "cpp") {
  auto space = ParseTuneSpace(source, language);
  EXPECT_TRUE(space) << space.error();
  return space.value_or(TuneSpace());
}

std::string ErrorOf(std::string_view source) {
  const auto space = ParseTuneSpace(source, "cpp");
  return space ? "none" : space.error();
}

TEST(TuneSpace, ReadsValuesAndRules) {
  const TuneSpace space = SpaceOf(kSource);
  ASSERT_EQ(space.tunes.size(), 2u);
  EXPECT_EQ(space.tunes[0].values, (std::vector<int64_t>{4, 1, 8}));
  EXPECT_EQ(CountPoints(space), 6u);
  EXPECT_TRUE(Allows(space, {0, 1}));
  EXPECT_FALSE(Allows(space, {1, 0}));
  EXPECT_EQ(DescribePoint(space, {2, 1}), "ROWS=8 STEP=4");
}

TEST(TuneSpace, AVariantHasOneValueALine) {
  const TuneSpace space = SpaceOf(kSource);
  const std::string variant = WriteVariant(kSource, space, {2, 1});
  EXPECT_EQ(variant,
            "// a kernel\n//! tune ROWS = 8\n//! tune  STEP = 4\n//! require ROWS >= STEP\n"
            "int main() {}\n");
  EXPECT_EQ(CountPoints(SpaceOf(variant)), 1u);
  constexpr std::string_view kC = "/*! tune N = 1 2 */ int n;\n/*! tune M = 3 4 */";
  EXPECT_EQ(WriteVariant(kC, SpaceOf(kC, "c"), {1, 1}),
            "/*! tune N = 2 */ int n;\n/*! tune M = 4 */");
}

TEST(TuneSpace, FaultsNameTheirLine) {
  EXPECT_THAT(ErrorOf("\n//! tune ROWS"), HasSubstr("line 2: //! tune: write it as"));
  EXPECT_THAT(ErrorOf("//! tune ROWS = x"), HasSubstr("'x' is no integer"));
  EXPECT_THAT(ErrorOf("//! tune A = 1\n//! tune A = 2"), HasSubstr("line 2: //! tune: a second"));
  EXPECT_THAT(ErrorOf("//! tune 2A = 1"), HasSubstr("is no name"));
  EXPECT_THAT(ErrorOf("//! tune A = 1\n//! require A"), HasSubstr("compares nothing"));
  EXPECT_THAT(ErrorOf("//! tune A = 1\n//! require A == B"), HasSubstr("there is no size 'B'"));
  EXPECT_THAT(ErrorOf("//! tune A = 1 2\n//! require A > 1"), HasSubstr("the first values"));
}

TEST(TuneSpace, ARuleThatCannotBeEvaluatedForbidsThePoint) {
  const TuneSpace space = SpaceOf("//! tune A = 1 0\n//! require 4 % A == 0");
  EXPECT_TRUE(Allows(space, {0}));
  EXPECT_FALSE(Allows(space, {1}));
}

TEST(TuneSpace, ManyPointsSaturate) {
  std::string source;
  for (int i = 0; i < 16; ++i)
    source += fmt::format("//! tune N{} = 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", i);
  EXPECT_EQ(CountPoints(SpaceOf(source)), uint64_t{1} << 62);
}

TEST(TuneSpace, ADeviceProgramTakesTheVariantsValue) {
  constexpr std::string_view kDevice =
      "//! tune BLOCK = 128 256\n//! require BLOCK % 32 == 0\n"
      "//! launch f grid=(4) block=(BLOCK) args=()\n__global__ void f() {}\n";
  const std::string variant = WriteVariant(kDevice, SpaceOf(kDevice, "cuda"), {1});
  const auto program = ParseDeviceProgram(variant);
  ASSERT_TRUE(program) << program.error();
  const auto plan = PlanDeviceProgram(*program, {}, {});
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_EQ(plan->macros.at("BLOCK"), 256);
  EXPECT_EQ(plan->launches[0].block[0], 256u);
}

TEST(TuneSpace, ANativeBuildDefinesTheFirstValues) {
  const auto options = ParseBuildOptions(kSource, "cpp");
  ASSERT_TRUE(options) << options.error();
  EXPECT_THAT(options->flags, Contains("-DROWS=4"));
  EXPECT_THAT(options->flags, Contains("-DSTEP=2"));
  EXPECT_THAT(ParseBuildOptions("//! tune A = 1\n//! require A == 2\nint a;", "cpp").error(),
              HasSubstr("the first values do not fulfil it"));
}

}  // namespace
}  // namespace assay
