#include "builders/constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr std::string_view kHeader = "#define ASSAY_KERNEL(...)\n#define ASSAY_TENSOR(...)\n";

TEST(Constants, AreReadUpToTheirEndAndNumbersAlone) {
  const std::string json =
      R"({"ASSAY_GROUPS": "4", "ASSAY_EPS": "1e-05", "ASSAY_LOW": "-3", "GROUPS": "4",)"
      R"( "ASSAY_": "4", "ASSAY_x": "4", "ASSAY_A B": "4", "ASSAY_BAD": "4;", "ASSAY_N": 4})";
  EXPECT_THAT(
      ReadConstants(json + std::string(1, '\0') + "rest"),
      ElementsAre(Pair("ASSAY_EPS", "1e-05"), Pair("ASSAY_GROUPS", "4"), Pair("ASSAY_LOW", "-3")));
  EXPECT_THAT(ReadConstants(""), IsEmpty());
  EXPECT_THAT(ReadConstants(std::string(1 << 20, ' ')), IsEmpty());
}

TEST(Constants, AreGivenToASourceThatNamesThem) {
  const Constants constants = {
      {"ASSAY_GROUPS", "4"}, {"ASSAY_KERNEL", "3"}, {"ASSAY_LOW", "-3"}, {"ASSAY_N", "8"}};
  const std::string source =
      "ASSAY_KERNEL(ASSAY_TENSOR(x)) { f(ASSAY_GROUPS, ASSAY_LOW, MY_ASSAY_N, ASSAY_Nx); }";
  EXPECT_THAT(ConstantFlags(source, kHeader, constants),
              ElementsAre("-DASSAY_GROUPS=4", "-DASSAY_LOW=(-3)"));
  EXPECT_THAT(MacrosNamed(source + " ASSAY_OTHER", kHeader),
              ElementsAre("ASSAY_GROUPS", "ASSAY_LOW", "ASSAY_OTHER"));
  EXPECT_THAT(ConstantFlags("ASSAY_KERNEL() {}", kHeader, constants), IsEmpty());
}

}  // namespace
}  // namespace assay
