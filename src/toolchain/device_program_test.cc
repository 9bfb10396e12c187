#include "toolchain/device_program.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const DeviceTensor kTensors[] = {
    {"x", {1000, 4096}, 4, false}, {"eps", {}, 8, true}, {"out", {1000, 4096}, 2, false}};

std::string ParseError(std::string_view source) {
  const auto program = ParseDeviceProgram(source);
  EXPECT_FALSE(program) << source;
  return program ? "" : program.error();
}

DeviceProgram Parsed(std::string_view source) {
  auto program = ParseDeviceProgram(source);
  EXPECT_TRUE(program) << source << ": " << program.error();
  return program.value_or(DeviceProgram());
}

DevicePlan Planned(std::string_view source, const std::map<std::string, int64_t>& tuned = {}) {
  auto plan = PlanDeviceProgram(Parsed(source), kTensors, tuned);
  EXPECT_TRUE(plan) << source << ": " << plan.error();
  return plan.value_or(DevicePlan());
}

std::string PlanError(std::string_view source, const std::map<std::string, int64_t>& tuned = {}) {
  const auto plan = PlanDeviceProgram(Parsed(source), kTensors, tuned);
  EXPECT_FALSE(plan) << source;
  return plan ? "" : plan.error();
}

constexpr std::string_view kTwoLaunches = R"(
//! dim       rows = x.size(0)
//! constant  COLS = x.size(1)
//! tune      BLOCK = 128 256 512
//! scratch   p float[rows * 32]
//! tensormap t = x box=(64, 32) swizzle=128
//! launch row_max grid=(rows, ceil_div(COLS, BLOCK)) block=BLOCK shared=4*BLOCK args=(x, p, COLS)
//! launch fin<BLOCK, 4> grid=(rows) block=(32, 8) cluster=(5) args=(t, p, out, eps, rows+1)
__global__ void row_max() {}
)";

TEST(DeviceProgram, SizesAndTunedValuesArePutIn) {
  const DevicePlan plan = Planned(kTwoLaunches, {{"BLOCK", 256}});
  EXPECT_THAT(plan.macros, ElementsAre(std::pair("BLOCK", 256), std::pair("COLS", 4096)));
  EXPECT_THAT(plan.scratch_bytes, ElementsAre(1000 * 32 * 4));
  ASSERT_EQ(plan.tensor_maps.size(), 1u);
  EXPECT_THAT(plan.tensor_maps[0].shape, ElementsAre(1000, 4096));
  EXPECT_THAT(plan.tensor_maps[0].box, ElementsAre(64, 32));
  EXPECT_EQ(plan.tensor_maps[0].swizzle_bytes, 128);
  EXPECT_EQ(plan.tensor_maps[0].element_bytes, 4u);
  ASSERT_EQ(plan.launches.size(), 2u);
  const PlannedLaunch& first = plan.launches[0];
  EXPECT_EQ(first.line, 7);
  EXPECT_EQ(first.kernel, "row_max");
  EXPECT_THAT(first.grid, ElementsAre(1000, 16, 1));
  EXPECT_THAT(first.block, ElementsAre(256, 1, 1));
  EXPECT_THAT(first.cluster, ElementsAre(1, 1, 1));
  EXPECT_EQ(first.shared_bytes, 1024u);
  using Kind = PlannedArgument::Kind;
  ASSERT_EQ(first.arguments.size(), 3u);
  EXPECT_EQ(first.arguments[0].kind, Kind::kTensor);
  EXPECT_EQ(first.arguments[0].index, 0u);
  EXPECT_EQ(first.arguments[1].kind, Kind::kScratch);
  EXPECT_EQ(first.arguments[2].kind, Kind::kInteger);
  EXPECT_EQ(first.arguments[2].value, 4096);
  const PlannedLaunch& second = plan.launches[1];
  EXPECT_EQ(second.kernel, "fin<BLOCK, 4>");
  EXPECT_THAT(second.block, ElementsAre(32, 8, 1));
  EXPECT_THAT(second.cluster, ElementsAre(5, 1, 1));
  ASSERT_EQ(second.arguments.size(), 5u);
  EXPECT_EQ(second.arguments[0].kind, Kind::kTensorMap);
  EXPECT_EQ(second.arguments[3].kind, Kind::kNumber);
  EXPECT_EQ(second.arguments[3].index, 1u);
  EXPECT_EQ(second.arguments[4].value, 1001);
}

TEST(DeviceProgram, TheFirstTunedValueStandsWhereNoneIsChosen) {
  EXPECT_EQ(Planned(kTwoLaunches).macros.at("BLOCK"), 128);
  EXPECT_THAT(PlanError(kTwoLaunches, {{"BLOCK", 64}}), HasSubstr("none of its values"));
  EXPECT_THAT(PlanError(kTwoLaunches, {{"TILE", 64}}), HasSubstr("no '//! tune TILE'"));
}

TEST(DeviceProgram, ArgumentsMayBeNone) {
  EXPECT_THAT(Planned("//! launch f grid=1 block=(32) args=()").launches[0].arguments, IsEmpty());
  EXPECT_THAT(Planned("//! launch f grid=1 block=32").launches[0].arguments, IsEmpty());
}

TEST(DeviceProgram, OnlyALaunchMakesADeviceProgram) {
  EXPECT_TRUE(IsDeviceProgram(kTwoLaunches));
  EXPECT_FALSE(IsDeviceProgram("// launch f\n//! flags -O3\n"));
  EXPECT_THAT(ParseError("//! dim rows = 3\n"), HasSubstr("launches nothing"));
}

TEST(DeviceProgram, ErrorsNameTheLineAndTheForm) {
  EXPECT_THAT(ParseError("\n//! launch grid=(1) block=(1)"),
              HasSubstr("line 2: //! launch: a kernel's name is missing"));
  EXPECT_THAT(ParseError("//! launch f block=(1)"), HasSubstr("grid= is missing"));
  EXPECT_THAT(ParseError("//! launch f grid=(1)"), HasSubstr("block= is missing"));
  EXPECT_THAT(ParseError("//! launch f grid=(1) block=(1,2,3,4)"), HasSubstr("more than 3"));
  EXPECT_THAT(ParseError("//! launch f grid=(1,) block=(1)"), HasSubstr("a value is missing"));
  EXPECT_THAT(ParseError("//! launch f grid=(1 block=(1)"), HasSubstr("not closed"));
  EXPECT_THAT(ParseError("//! launch f grid=(1)) block=(1)"), HasSubstr("closes nothing"));
  EXPECT_THAT(ParseError("//! launch f grid=1 grid=2 block=1"), HasSubstr("a second grid="));
  EXPECT_THAT(ParseError("//! launch f grid=1 blocks=1"), HasSubstr("there is no blocks="));
  EXPECT_THAT(ParseError("//! launch f grid=1 block"), HasSubstr("'block' is no setting"));
  EXPECT_THAT(ParseError("//! launch f;g grid=1 block=1"), HasSubstr("kernel's name"));
  EXPECT_THAT(ParseError("//! dim rows"), HasSubstr("write it as '//! dim NAME"));
  EXPECT_THAT(ParseError("//! dim 2rows = 3"), HasSubstr("'2rows' is no name"));
  EXPECT_THAT(ParseError("//! dim a = 1\n//! tune a = 1"),
              HasSubstr("line 2: //! tune: a second 'a'"));
  EXPECT_THAT(ParseError("//! tune a = 1 b"), HasSubstr("'b' is no integer"));
  EXPECT_THAT(ParseError("//! scratch p floats[3]"), HasSubstr("'floats' is no type"));
  EXPECT_THAT(ParseError("//! scratch p float"), HasSubstr("write it as"));
  EXPECT_THAT(ParseError("//! tensormap m = x swizzle=128"), HasSubstr("box= is missing"));
  EXPECT_THAT(ParseError("//! tensormap m = x box=(8) swizzle=16"), HasSubstr("0, 32, 64 or 128"));
}

TEST(DeviceProgram, SizesThatNoLaunchCanHaveAreRefused) {
  const auto launch = [](std::string_view settings) {
    return PlanError("//! dim rows = x.size(0)\n//! launch f " + std::string(settings));
  };
  EXPECT_THAT(launch("grid=0 block=1"), HasSubstr("line 2: grid.x is 0"));
  EXPECT_THAT(launch("grid=(1, 65536) block=1"), HasSubstr("grid.y is 65536"));
  EXPECT_THAT(launch("grid=1 block=1025"), HasSubstr("block.x is 1025"));
  EXPECT_THAT(launch("grid=1 block=(32, 64)"), HasSubstr("a block of 2048 threads"));
  EXPECT_THAT(launch("grid=rows block=1 cluster=3"), HasSubstr("no multiple of the cluster's 3"));
  EXPECT_THAT(launch("grid=64 block=1 cluster=32"), HasSubstr("cluster.x is 32"));
  EXPECT_THAT(launch("grid=1 block=1 shared=-4"), HasSubstr("shared is -4"));
  EXPECT_THAT(launch("grid=row block=1"), HasSubstr("no size 'row'"));
  EXPECT_THAT(launch("grid=1 block=1 args=(y)"), HasSubstr("no size 'y'"));
  EXPECT_THAT(launch("grid=1 block=1 args=(eps * 2)"), HasSubstr("no size 'eps'"));
}

TEST(DeviceProgram, NamesOfTheProblemsAreNotHidden) {
  const std::string end = "\n//! launch f grid=1 block=1";
  EXPECT_THAT(PlanError("//! dim x = 3" + end), HasSubstr("'x' is a name of the problem's"));
  EXPECT_THAT(PlanError("//! tune eps = 3" + end), HasSubstr("'eps' is a name of the problem's"));
  EXPECT_THAT(PlanError("//! scratch out float[3]" + end), HasSubstr("'out' is a name"));
}

TEST(DeviceProgram, TensorMapsFitWhatTheyShow) {
  const std::string end = "\n//! launch f grid=1 block=1 args=(m)";
  EXPECT_THAT(Planned("//! tensormap m = x shape=(1000, 64, 64) box=(1, 64, 64)" + end)
                  .tensor_maps[0]
                  .shape,
              ElementsAre(1000, 64, 64));
  EXPECT_THAT(PlanError("//! tensormap m = y box=(1)" + end), HasSubstr("no tensor"));
  EXPECT_THAT(PlanError("//! tensormap m = eps box=(1)" + end), HasSubstr("eps is a number"));
  EXPECT_THAT(PlanError("//! tensormap m = x box=(8)" + end), HasSubstr("box= has 1 axes"));
  EXPECT_THAT(PlanError("//! tensormap m = x box=(8, 512)" + end), HasSubstr("axis of the box is"));
  EXPECT_THAT(PlanError("//! tensormap m = x shape=(1001, 4096) box=(8, 8)" + end),
              HasSubstr("the shape has 4100096 elements"));
  EXPECT_THAT(PlanError("//! scratch s half[64]\n//! tensormap m = s box=(8)" + end),
              HasSubstr("has no shape"));
}

}  // namespace
}  // namespace assay
