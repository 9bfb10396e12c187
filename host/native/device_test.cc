// Tests device images in the native host, over a driver without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "judge_double.h"
#include "wire/launches.h"
#include "wire/write_device_image.h"

namespace assay::native {
namespace {

using ::testing::HasSubstr;
using wire::FrameKind;
using wire::Launch;
using wire::LaunchArgumentKind;
using wire::Region;
using wire::Role;

// y = factor * x + offset, over all elements; and one that fails on the device.
constexpr std::string_view kKernels = R"(
#include "fake_cuda.h"
ASSAY_FAKE_KERNEL(scale, 8, 8, 4, 4, 8) {
  const float* x = launch.parameter<const float*>(0);
  float* y = launch.parameter<float*>(1);
  for (int i = 0; i < launch.parameter<int>(2); ++i)
    y[i] = launch.parameter<float>(3) * x[i] + launch.parameter<float*>(4)[0];
}
ASSAY_FAKE_KERNEL(prepare, 8) { launch.parameter<float*>(0)[0] = 0.5f; }
ASSAY_FAKE_KERNEL(add, 8, 8, 8) {
  for (int i = 0; i < 32; ++i)
    launch.parameter<float*>(1)[i] =
        launch.parameter<const float*>(0)[i] + launch.parameter<float*>(2)[0];
}
ASSAY_FAKE_KERNEL(fails) { launch.result = assay::cuda::kIllegalAddress; }
ASSAY_FAKE_KERNEL(mapped, 128, 8) {
  const auto map = launch.parameter<assay::cuda::TensorMap>(0);
  const auto* x = reinterpret_cast<const float*>(map.opaque[0]);
  float* y = launch.parameter<float*>(1);
  for (uint64_t i = 0; i < map.opaque[2] * map.opaque[3]; ++i) y[i] = -x[i];
}
)";

// An image with these kernels, in this order.
std::string Image(const std::vector<std::string>& kernels) {
  static const std::string library = [] {
    auto folder = TemporaryFolder::Create();
    const std::string source = (folder->path() / "kernels.cc").string();
    const std::string output = (folder->path() / "kernels.so").string();
    EXPECT_TRUE(WriteFileAtomically(source, kKernels));
    const std::string command =
        "g++ -std=c++20 -O1 -fPIC -shared -fvisibility=hidden -I" ASSAY_SOURCE_DIRECTORY
        "/src -I" ASSAY_SOURCE_DIRECTORY "/tests/fake_cuda " +
        source + " -o " + output;
    EXPECT_EQ(std::system(command.c_str()), 0);
    return ReadFile(output, 16 << 20).value_or("");
  }();
  return wire::WriteDeviceImage(kernels, library);
}

wire::LaunchArgument Tensor(uint32_t index) { return {LaunchArgumentKind::kTensor, index, 0}; }

class DeviceHost : public testing::Test {
 protected:
  DeviceHost()
      : launches_memory_(sizeof(wire::Launches)),
        judge_({assay::native::Tensor("x", Role::kInput, wire::DType::kFloat32, {4, 8}),
                Scalar("factor", wire::Kind::kFloat),
                assay::native::Tensor("y", Role::kOutput, wire::DType::kFloat32, {4, 8})},
               3, Where::kFakeDevice) {}

  wire::Launches& launches() { return *reinterpret_cast<wire::Launches*>(launches_memory_.data); }

  Launch& Add(uint32_t kernel, std::vector<wire::LaunchArgument> arguments) {
    Launch& launch = launches().launches[launches().launch_count++];
    launch = Launch{};
    launch.line = 10 + launches().launch_count;
    launch.kernel = kernel;
    for (uint32_t axis = 0; axis < 3; ++axis)
      launch.grid[axis] = launch.block[axis] = launch.cluster[axis] = 1;
    launch.argument_count = static_cast<uint32_t>(arguments.size());
    std::copy(arguments.begin(), arguments.end(), launch.arguments);
    return launch;
  }

  void AddScale() {
    launches().scratch_count = 1;
    launches().scratch_bytes[0] = 64;
    Add(0, {{LaunchArgumentKind::kScratch, 0, 0}});
    Add(1, {Tensor(0),
            Tensor(2),
            {LaunchArgumentKind::kInteger, 0, 32},
            {LaunchArgumentKind::kNumber, 1, 0},
            {LaunchArgumentKind::kScratch, 0, 0}});
  }

  // Starts the host and loads; the answer to kLoad.
  wire::Frame Load(const std::string& image) {
    judge_.Start("/nothing");
    judge_.AttachAll();
    const SharedMemory memory(image.size());
    std::memcpy(memory.data, image.data(), image.size());
    EXPECT_EQ(judge_.Attach(Region::kImage, memory, false).kind, FrameKind::kDone);
    EXPECT_EQ(judge_.Attach(Region::kLaunches, launches_memory_, false).kind, FrameKind::kDone);
    return judge_.Load();
  }

  void Fill() {
    for (uint32_t slot = 0; slot < 3; ++slot) {
      for (int i = 0; i < 32; ++i) {
        judge_.At<float>("x", slot)[i] = static_cast<float>(slot * 100) + static_cast<float>(i);
        judge_.At<float>("y", slot)[i] = -1;
      }
      *judge_.At<double>("factor", slot) = 1 + slot;
    }
  }

  SharedMemory launches_memory_;
  JudgeDouble judge_;
};

TEST_F(DeviceHost, LaunchesRunInOrderOnTheNamedSlots) {
  AddScale();
  ASSERT_EQ(Load(Image({"prepare", "scale"})).kind, FrameKind::kDone) << judge_.message();
  judge_.EnterBlocks();
  Fill();
  ASSERT_TRUE(judge_.RunBlock({2, 0}));
  for (int i = 0; i < 32; ++i) {
    ASSERT_EQ(judge_.At<float>("y", 0)[i], judge_.At<float>("x", 0)[i] + 0.5f);
    ASSERT_EQ(judge_.At<float>("y", 1)[i], -1);
    ASSERT_EQ(judge_.At<float>("y", 2)[i], 3 * judge_.At<float>("x", 2)[i] + 0.5f);
  }
  *judge_.At<double>("factor", 0) = -2;  // numbers are read at each call
  ASSERT_TRUE(judge_.RunBlock({0}));
  EXPECT_EQ(judge_.At<float>("y", 0)[3], -5.5f);
  EXPECT_EQ(judge_.LeaveBlocks().kind, FrameKind::kDone);
}

// A profiler sees the calls of the blocks that it is to see and nothing else of the process, which
// then ends as programs do: what is left for its end gets done.
TEST_F(DeviceHost, AProfilerSeesTheCallsThatItIsToSee) {
  auto folder = TemporaryFolder::Create();
  const std::string seen = folder->path() / "seen";
  judge_.SetVariable("FAKE_CUDA_PROFILER=" + seen);
  AddScale();
  ASSERT_EQ(Load(Image({"prepare", "scale"})).kind, FrameKind::kDone) << judge_.message();
  judge_.EnterBlocks();
  Fill();
  ASSERT_TRUE(judge_.RunBlock({0}));
  EXPECT_EQ(ReadFile(seen, 1000).value_or(""), "launch\nlaunch\n");
  judge_.control().profile = 1;
  ASSERT_TRUE(judge_.RunBlock({1}));
  EXPECT_EQ(ReadFile(seen, 1000).value_or(""), "launch\nlaunch\nstart\nlaunch\nlaunch\nstop\n");
  EXPECT_EQ(judge_.LeaveBlocks().kind, FrameKind::kDone);
  judge_.Quit();
  EXPECT_EQ(judge_.Wait(), 0);
  EXPECT_THAT(ReadFile(seen, 1000).value_or(""), testing::EndsWith("stop\nexit\n"));
}

// What CUPTI sees of a block is added up by kernel, in memory that the judge reads.
class TracedHost : public DeviceHost {
 protected:
  TracedHost() : trace_memory_(sizeof(wire::KernelTrace)) {}
  const wire::KernelTrace& trace() const {
    return *reinterpret_cast<const wire::KernelTrace*>(trace_memory_.data);
  }
  void LoadTraced() {
    AddScale();
    launches().launches[1].grid[0] = 3;
    ASSERT_EQ(Load(Image({"prepare", "scale"})).kind, FrameKind::kDone) << judge_.message();
    ASSERT_EQ(judge_.Attach(Region::kTrace, trace_memory_, true).kind, FrameKind::kDone);
    judge_.EnterBlocks();
    Fill();
  }
  SharedMemory trace_memory_;
};

TEST_F(TracedHost, KernelsAreAddedUpByNameForTheBlocksThatAreTraced) {
  LoadTraced();
  ASSERT_TRUE(judge_.RunBlock({0}));
  EXPECT_EQ(trace().kernel_count, 0u);
  judge_.control().trace = 1;
  ASSERT_TRUE(judge_.RunBlock({0, 2}));
  ASSERT_EQ(trace().kernel_count, 2u);
  EXPECT_EQ(trace().failed, 0u) << trace().message;
  EXPECT_STREQ(trace().kernels[0].name, "prepare");
  EXPECT_EQ(trace().kernels[0].runs, 2u);
  EXPECT_EQ(trace().kernels[0].time_ns, 2000u);
  EXPECT_STREQ(trace().kernels[1].name, "scale");
  EXPECT_EQ(trace().kernels[1].time_ns, 6000u);
  ASSERT_TRUE(judge_.RunBlock({1}));
  EXPECT_EQ(trace().kernels[1].runs, 1u) << "a block's trace is of that block";
  EXPECT_EQ(judge_.At<float>("y", 2)[4], 3 * judge_.At<float>("x", 2)[4] + 0.5f);
  judge_.control().trace = 0;
  ASSERT_TRUE(judge_.RunBlock({1}));
  EXPECT_EQ(trace().kernels[1].runs, 1u);
  EXPECT_EQ(judge_.LeaveBlocks().kind, FrameKind::kDone);
}

TEST_F(TracedHost, ACuptiThatRefusesIsQuotedAndTheBlockRuns) {
  judge_.SetVariable("FAKE_CUPTI_REFUSES=1");
  LoadTraced();
  judge_.control().trace = 1;
  ASSERT_TRUE(judge_.RunBlock({1}));
  EXPECT_EQ(trace().failed, 1u);
  EXPECT_STREQ(trace().message,
               "CUPTI cannot note kernels: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)");
  EXPECT_EQ(trace().kernel_count, 0u);
  EXPECT_EQ(judge_.At<float>("y", 1)[4], 2 * judge_.At<float>("x", 1)[4] + 0.5f);
}

TEST_F(DeviceHost, ATraceIntoMemoryThatIsTooSmallIsNone) {
  AddScale();
  ASSERT_EQ(Load(Image({"prepare", "scale"})).kind, FrameKind::kDone) << judge_.message();
  const SharedMemory small(4096);
  ASSERT_EQ(judge_.Attach(Region::kTrace, small, true).kind, FrameKind::kDone);
  judge_.EnterBlocks();
  Fill();
  judge_.control().trace = 1;
  ASSERT_TRUE(judge_.RunBlock({0}));
  EXPECT_EQ(judge_.At<float>("y", 0)[3], 3.5f);
}

// Launches alone, without a number of forward's.
class ReplayingHost : public DeviceHost {
 protected:
  void EnterDoubled() {
    launches().scratch_count = 1;
    launches().scratch_bytes[0] = 64;
    Add(0, {{LaunchArgumentKind::kScratch, 0, 0}});
    Add(1, {Tensor(0), Tensor(2), {LaunchArgumentKind::kScratch, 0, 0}});
    ASSERT_EQ(Load(Image({"prepare", "add"})).kind, FrameKind::kDone) << judge_.message();
    judge_.EnterBlocks();
    Fill();
    ASSERT_TRUE(judge_.RunBlock({}));
  }
};

TEST_F(ReplayingHost, ABlockIsCapturedBeforeGoAndRunsAfterIt) {
  EnterDoubled();
  ASSERT_TRUE(judge_.RunBlock({2, 0}, true, [this] {
    EXPECT_EQ(judge_.report().replays, judge_.report().ready);
    EXPECT_EQ(judge_.At<float>("y", 2)[5], -1) << "nothing runs before go";
    judge_.At<float>("x", 2)[5] = 7;  // a graph reads what is there when it runs
  }));
  EXPECT_EQ(judge_.At<float>("y", 2)[5], 7.5f);
  EXPECT_EQ(judge_.At<float>("y", 0)[31], 31.5f);
  EXPECT_EQ(judge_.At<float>("y", 1)[0], -1);
  // The next block has a graph of its own; one without the wish for it is run call by call.
  ASSERT_TRUE(judge_.RunBlock({1}, true));
  EXPECT_EQ(judge_.At<float>("y", 1)[0], 100.5f);
  judge_.At<float>("x", 0)[31] = 1;
  ASSERT_TRUE(judge_.RunBlock({0}));
  EXPECT_EQ(judge_.report().replays, 0u);
  EXPECT_EQ(judge_.At<float>("y", 0)[31], 1.5f);
  EXPECT_EQ(judge_.LeaveBlocks().kind, FrameKind::kDone);
}

TEST_F(ReplayingHost, ADriverThatCapturesNothingLeavesTheBlockToItsCalls) {
  judge_.SetVariable("FAKE_CUDA_NO_GRAPHS=1");
  EnterDoubled();
  ASSERT_TRUE(judge_.RunBlock({1, 0}, true));
  EXPECT_EQ(judge_.report().replays, 0u);
  EXPECT_EQ(judge_.At<float>("y", 1)[0], 100.5f);
}

TEST_F(ReplayingHost, NumbersAmongTheInputsAreReadAtTheirCall) {
  AddScale();
  ASSERT_EQ(Load(Image({"prepare", "scale"})).kind, FrameKind::kDone) << judge_.message();
  judge_.EnterBlocks();
  Fill();
  ASSERT_TRUE(judge_.RunBlock({2}, true, [this] { *judge_.At<double>("factor", 2) = -1; }));
  EXPECT_EQ(judge_.report().replays, 0u);
  EXPECT_EQ(judge_.At<float>("y", 2)[1], -200.5f);
}

TEST_F(ReplayingHost, AnErrorWithinAGraphEndsTheProcessWithItsName) {
  Add(0, {});
  ASSERT_EQ(Load(Image({"fails"})).kind, FrameKind::kDone) << judge_.message();
  judge_.EnterBlocks();
  EXPECT_FALSE(judge_.RunBlock({0}, true));
  const int status = judge_.Wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  EXPECT_THAT(judge_.message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
}

TEST_F(DeviceHost, ATensorMapShowsTheSlotsOwnTensor) {
  launches().tensor_map_count = 1;
  launches().tensor_maps[0] = {0, 0, 7, 4, 2, 0, {4, 8}, {2, 8}};
  Add(0, {{LaunchArgumentKind::kTensorMap, 0, 0}, Tensor(2)});
  ASSERT_EQ(Load(Image({"mapped"})).kind, FrameKind::kDone) << judge_.message();
  judge_.EnterBlocks();
  Fill();
  ASSERT_TRUE(judge_.RunBlock({1}));
  EXPECT_EQ(judge_.At<float>("y", 1)[31], -131);
}

TEST_F(DeviceHost, AnErrorOfTheDeviceEndsTheProcessWithItsName) {
  Add(0, {});
  ASSERT_EQ(Load(Image({"fails"})).kind, FrameKind::kDone) << judge_.message();
  judge_.EnterBlocks();
  EXPECT_FALSE(judge_.RunBlock({0}));
  const int status = judge_.Wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  EXPECT_EQ(judge_.report().fault, wire::Fault::kDevice);
  EXPECT_THAT(judge_.message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
}

TEST_F(DeviceHost, LaunchesThatDoNotFitTheirKernelAreRefusedByLine) {
  Add(0, {Tensor(0)});
  EXPECT_EQ(Load(Image({"scale"})).kind, FrameKind::kFailed);
  EXPECT_THAT(judge_.message(),
              HasSubstr("line 11: args= has 1 values, and the kernel takes more"));
}

TEST_F(DeviceHost, ATensorIsNoInteger) {
  Add(0, {Tensor(0), Tensor(2), Tensor(0), Tensor(0), Tensor(0)});
  EXPECT_EQ(Load(Image({"scale"})).kind, FrameKind::kFailed);
  EXPECT_THAT(judge_.message(),
              HasSubstr("line 11: argument 3 is a tensor's address, and the kernel's parameter has "
                        "4 bytes"));
}

TEST_F(DeviceHost, AnIntegerThatIsTooLargeForItsParameterIsRefused) {
  AddScale();
  launches().launches[1].arguments[2].value = int64_t{1} << 33;
  ASSERT_EQ(Load(Image({"prepare", "scale"})).kind, FrameKind::kDone) << judge_.message();
  EXPECT_EQ(judge_.Request(FrameKind::kBlocks).kind, FrameKind::kFailed);
  EXPECT_THAT(judge_.message(), HasSubstr("line 12: argument 3 is 8589934592"));
}

TEST_F(DeviceHost, SharedMemoryBeyondTheDevicesIsRefused) {
  Add(0, {{LaunchArgumentKind::kTensor, 0, 0}}).shared_bytes = 300 * 1024;
  EXPECT_EQ(Load(Image({"prepare"})).kind, FrameKind::kFailed);
  EXPECT_THAT(judge_.message(), HasSubstr("line 11: 307200 bytes of shared memory"));
}

TEST_F(DeviceHost, DamagedImagesAreRefused) {
  Add(0, {Tensor(0)});
  std::string image = Image({"prepare"});
  image.resize(image.size() / 2);
  EXPECT_EQ(Load(image).kind, FrameKind::kFailed);
  EXPECT_THAT(judge_.message(), HasSubstr("image is damaged"));
}

TEST_F(DeviceHost, AKernelThatTheImageDoesNotHoldIsNamed) {
  Add(0, {});
  EXPECT_EQ(Load(Image({"nothing_like_it"})).kind, FrameKind::kFailed);
  EXPECT_THAT(judge_.message(), HasSubstr("line 11: kernel nothing_like_it"));
}

// A shared library over the fake driver, whose device memory its code can read and write itself.
class LibraryOnDevice : public testing::Test {
 protected:
  static std::string Source(const std::string& body, const std::string& stream) {
    return "#include <assay/kernel.h>\ntypedef CUstream_st* cudaStream_t;\n"
           "ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y" +
           stream + ") {\n" + body + "\n}\n";
  }
  JudgeDouble judge_{XToY(), 2, Where::kFakeDevice};
};

TEST_F(LibraryOnDevice, GetsDeviceTensorsAndAStream) {
  const CompiledCandidate candidate(
      Source("for (int i = 0; i < 15; ++i) y.data()[i] = stream != nullptr ? 2 * x.data()[i] : 0;",
             ", cudaStream_t stream"));
  judge_.StartLoaded(candidate.path());
  judge_.EnterBlocks();
  for (uint32_t slot = 0; slot < 2; ++slot)
    for (int i = 0; i < 15; ++i)
      judge_.At<float>("x", slot)[i] = static_cast<float>(10 * slot) + static_cast<float>(i);
  ASSERT_TRUE(judge_.RunBlock({1, 0}));
  for (uint32_t slot = 0; slot < 2; ++slot)
    for (int i = 0; i < 15; ++i)
      ASSERT_EQ(judge_.At<float>("y", slot)[i], 2 * judge_.At<float>("x", slot)[i]);
  EXPECT_EQ(judge_.LeaveBlocks().kind, FrameKind::kDone);
}

TEST_F(LibraryOnDevice, WithoutAStreamIsToldTheDeclaration) {
  const CompiledCandidate candidate(Source("y(0, 0) = x(0, 0);", ""));
  judge_.Start(candidate.path());
  judge_.AttachAll();
  EXPECT_EQ(judge_.Load().kind, FrameKind::kFailed);
  EXPECT_THAT(judge_.message(), HasSubstr("then outputs, then the stream"));
  EXPECT_THAT(judge_.message(), HasSubstr("assay::Tensor<float, 2> y, cudaStream_t stream)"));
}

TEST_F(LibraryOnDevice, AnExceptionEndsTheProcess) {
  const CompiledCandidate candidate(Source(
      "if (stream != nullptr && x.count() + y.count() > 0) throw 1;", ", cudaStream_t stream"));
  judge_.StartLoaded(candidate.path());
  judge_.EnterBlocks();
  EXPECT_FALSE(judge_.RunBlock({0}));
  const int status = judge_.Wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
}

}  // namespace
}  // namespace assay::native
