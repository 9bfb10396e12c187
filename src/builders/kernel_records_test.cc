#include "builders/kernel_records.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/hash.h"
#include "toolchain/cubin_testing.h"
#include "wire/launches.h"
#include "wire/write_device_image.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

namespace fs = std::filesystem;

constexpr const char* kFake = ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1";

class KernelRecords : public testing::Test {
 protected:
  void SetUp() override {
    auto gpu = Gpu::Open(kFake);
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_.emplace(std::move(*gpu));
    ASSERT_TRUE(cache_);
    ::setenv("XDG_CACHE_HOME", cache_->path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }

  std::optional<Gpu> gpu_;
  Result<TemporaryFolder> cache_ = TemporaryFolder::Create();
};

wire::Launch LaunchOf(uint32_t kernel, uint32_t blocks, uint32_t threads, uint32_t shared_bytes) {
  wire::Launch launch{};
  launch.kernel = kernel;
  launch.grid[0] = blocks;
  launch.grid[1] = launch.grid[2] = 1;
  launch.block[0] = threads;
  launch.block[1] = launch.block[2] = 1;
  launch.shared_bytes = shared_bytes;
  return launch;
}

BuiltCandidate DeviceCandidate(const std::vector<wire::Launch>& of_call) {
  BuiltCandidate built;
  built.source.form = CandidateForm::kDevice;
  const std::string cubin =
      TestCubin{{{"first", 32, 0, 1024}, {"_Z6secondILi2EEvPf", 168, 64, 1024 + 2048}}}.Write();
  built.artifact = wire::WriteDeviceImage({"_Z6secondILi2EEvPf", "first"}, cubin);
  const auto launches = std::make_unique<wire::Launches>();
  memset(static_cast<void*>(launches.get()), 0, sizeof *launches);
  launches->launch_count = static_cast<uint32_t>(of_call.size());
  std::copy(of_call.begin(), of_call.end(), launches->launches);
  built.launches.assign(reinterpret_cast<const char*>(launches.get()), sizeof *launches);
  return built;
}

TEST_F(KernelRecords, TheDeviceFormHasOccupancyAndWaves) {
  BuiltCandidate built = DeviceCandidate(
      {LaunchOf(1, 1056, 256, 0), LaunchOf(0, 264, 128, 20000), LaunchOf(1, 1056, 256, 0)});
  built.instructions["first"] = {{{"float32", 7}}, 16};
  const auto records = KernelRecordsOf(built, gpu_->facts());
  ASSERT_THAT(records, SizeIs(2));
  EXPECT_EQ(records[0].name, "first");
  EXPECT_EQ(records[0].launches, 2);
  EXPECT_EQ(records[0].threads, 256);
  EXPECT_EQ(records[0].blocks, 1056);
  EXPECT_EQ(records[0].occupancy, 1);
  EXPECT_EQ(records[0].limiter, "threads");
  EXPECT_EQ(records[0].waves, 1);
  EXPECT_EQ(records[0].shared_bytes, 0);
  EXPECT_THAT(records[0].instructions, UnorderedElementsAre(Pair("float32", 7)));
  EXPECT_EQ(records[0].widest_load_bytes, 16);
  EXPECT_EQ(records[1].name, "second<2>");
  EXPECT_EQ(records[1].registers, 168);
  EXPECT_EQ(records[1].stack_bytes, 64);
  EXPECT_EQ(records[1].shared_bytes, 2048 + 20000);
  // 12 warps of 168 registers fit, in blocks of 4 warps.
  EXPECT_EQ(records[1].limiter, "registers");
  EXPECT_EQ(records[1].occupancy, 12.0 / 64);
  EXPECT_NEAR(records[1].waves, 264.0 / (3 * 132), 1e-12);
  EXPECT_THAT(records[1].instructions, IsEmpty());
}

TEST_F(KernelRecords, DamagedLaunchesAndImagesHaveNone) {
  BuiltCandidate built = DeviceCandidate({LaunchOf(7, 1, 1, 0)});
  EXPECT_THAT(KernelRecordsOf(built, gpu_->facts()), IsEmpty());
  built = DeviceCandidate({LaunchOf(1, 1, 32, 0)});
  built.launches.pop_back();
  EXPECT_THAT(KernelRecordsOf(built, gpu_->facts()), IsEmpty());
  built = DeviceCandidate({LaunchOf(1, 1, 32, 0)});
  built.artifact.resize(100);
  EXPECT_THAT(KernelRecordsOf(built, gpu_->facts()), IsEmpty());
}

TEST_F(KernelRecords, OtherFormsHaveWhatTheirLibraryHolds) {
  BuiltCandidate built;
  built.source.form = CandidateForm::kNative;
  built.artifact = "\177ELF" + TestCubin{{{"_Z3addPf", 20, 0, 1024}}}.Write() + "end";
  const auto records = KernelRecordsOf(built, gpu_->facts());
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].name, "add");
  EXPECT_EQ(records[0].registers, 20);
  EXPECT_EQ(records[0].launches, 0);
  EXPECT_EQ(records[0].threads, 0);
  built.artifact = "\177ELF without any";
  EXPECT_THAT(KernelRecordsOf(built, gpu_->facts()), IsEmpty());
}

TEST_F(KernelRecords, VariantsOfOneNameHaveNoInstructions) {
  BuiltCandidate built;
  built.source.form = CandidateForm::kPython;
  built.artifact = "." + TestCubin{{{"tuned", 20, 0, 0}, {"alone", 8, 0, 0}}}.Write() +
                   TestCubin{{{"tuned", 200, 64, 0}}}.Write();
  built.instructions["tuned"] = {{{"float32", 7}}, 16};
  built.instructions["alone"] = {{{"float32", 3}}, 4};
  const auto records = KernelRecordsOf(built, gpu_->facts());
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_THAT(records[0].instructions, IsEmpty());
  EXPECT_THAT(records[1].instructions, UnorderedElementsAre(Pair("float32", 3)));
  EXPECT_THAT(records[2].instructions, IsEmpty());
  EXPECT_EQ(records[2].registers, 200);
}

TEST_F(KernelRecords, NamesAreBounded) {
  BuiltCandidate built;
  built.source.form = CandidateForm::kNative;
  built.artifact = "." + TestCubin{{{std::string(3000, 'n'), 20, 0, 0}}}.Write();
  EXPECT_EQ(KernelRecordsOf(built, gpu_->facts()).at(0).name.size(), 103u);
}

// A script in nvdisasm's place, in the real sandbox.
TEST_F(KernelRecords, ListingsAreAskedForOnce) {
  const fs::path toolkit = fs::path("/var/tmp") / fmt::format("assay-fake-nvdisasm-{}", ::getpid());
  fs::create_directories(toolkit / "bin");
  const auto write = [&](std::string_view body) {
    std::ofstream(toolkit / "bin/nvdisasm") << "#!/bin/sh\n" << body << "\n";
    fs::permissions(toolkit / "bin/nvdisasm", fs::perms(0755));
  };
  write(R"([ "$1" = -c ] && [ -s "$2" ] || exit 1
printf '\t.section\t.text.k,"ax"\n        /*0000*/  @P0 LDG.E.64 R0, [R2.64] ;\n')");
  ::setenv("CUDA_HOME", toolkit.c_str(), 1);
  const std::string artifact = "." + TestCubin{{{"k", 20, 0, 0}}}.Write();
  const auto mixes = Disassemble(artifact, {});
  ASSERT_TRUE(mixes) << mixes.error().message;
  ASSERT_EQ(mixes->count("k"), 1u);
  EXPECT_THAT(mixes->at("k").counts, UnorderedElementsAre(Pair("global_load", 1)));
  EXPECT_EQ(mixes->at("k").widest_load_bytes, 8);
  write("exit 1");
  const auto again = Disassemble(artifact, {});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->at("k").counts, mixes->at("k").counts);
  // What fails says nothing, and is no error.
  const auto other = Disassemble("." + TestCubin{{{"other", 20, 0, 0}}}.Write(), {});
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_THAT(*other, IsEmpty());
  EXPECT_THAT(*Disassemble("no code", {}), IsEmpty());
  ::unsetenv("CUDA_HOME");
  fs::remove_all(toolkit);
}

TEST_F(KernelRecords, MachineCodeIsListedOrItIsSaidWhyNot) {
  const fs::path toolkit = fs::path("/var/tmp") / fmt::format("assay-old-nvdisasm-{}", ::getpid());
  fs::create_directories(toolkit / "bin");
  const Nvdisasm nvdisasm{(toolkit / "bin/nvdisasm").string(), toolkit.string()};
  const auto write = [&](std::string_view body) {
    std::ofstream(nvdisasm.path) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(nvdisasm.path, fs::perms(0755));
  };
  const std::string artifact = "." + TestCubin{{{"k", 20, 0, 0}}}.Write();
  write("echo listing");
  EXPECT_EQ(ListMachineCode(artifact, nvdisasm, {}).value_or(""), "listing\n");
  write("echo unknown file >&2; exit 1");
  const auto failed = ListMachineCode(artifact, nvdisasm, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(failed.error().message, HasSubstr("unknown file"));
  EXPECT_THAT(failed.error().message, HasSubstr("install the nvdisasm of the same CUDA version"));
  EXPECT_FALSE(ListMachineCode("no code", nvdisasm, {}));
  fs::remove_all(toolkit);
}

}  // namespace
}  // namespace assay
