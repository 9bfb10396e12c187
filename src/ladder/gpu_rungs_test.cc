// Every GPU rung in the device form is compiled for sm_90a by NVRTC, where that is there: no GPU is
// needed. The arguments' shapes are those of the rows that were measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "builders/device_build.h"
#include "ladder/ladder.h"
#include "ladder/readme_table.h"
#include "ladder/recorded_shapes.h"
#include "ladder/rows.h"
#include "toolchain/nvrtc.h"
#include "values/slot_layout.h"

namespace assay {
namespace {

class GpuRungs : public testing::Test {
 protected:
  void SetUp() override {
    if (!FindNvrtc()) GTEST_SKIP() << "no NVRTC here";
    auto gpu = Gpu::Open(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1");
    ASSERT_TRUE(gpu) << gpu.error().message;
    ASSERT_EQ(gpu->facts().architecture, "sm_90a");
    gpu_.emplace(std::move(*gpu));
    ASSERT_TRUE(cache_);
    ::setenv("XDG_CACHE_HOME", cache_->path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }

  // How many rungs were built.
  int BuildAll(const Ladder& ladder) const {
    const auto path = ResultsPath(ladder);
    const auto rows = path ? ReadRows(*path, ladder.name) : Result<std::vector<LadderRow>>();
    if (!rows) return 0;
    // Ladders of a folder may be for several problems.
    const auto row = std::find_if(rows->begin(), rows->end(), [&](const LadderRow& each) {
      const auto& problem = each.verdict.problem;
      return problem.name == ladder.problem ||
             std::filesystem::path(problem.path).filename() == ladder.problem;
    });
    if (row == rows->end()) return 0;
    const auto plan = std::make_unique<wire::Plan>(
        LayOutSlots(*DescriptionOf(row->verdict.problem.signature)).value());
    int built_rungs = 0;
    for (const Rung& rung : ladder.rungs) {
      const auto source = ReadCandidate(ladder.folder + "/" + rung.file);
      EXPECT_TRUE(source);
      if (!source || source->form != CandidateForm::kDevice) continue;
      const auto built = BuildDevice(*source, {}, {*gpu_, *plan, true, {}}, {});
      EXPECT_TRUE(built && !built->failure)
          << source->path << ": " << (built ? *built->failure + built->log : built.error().message);
      ++built_rungs;
    }
    return built_rungs;
  }

  std::optional<Gpu> gpu_;
  Result<TemporaryFolder> cache_ = TemporaryFolder::Create();
};

TEST_F(GpuRungs, AreCompiledForHopper) {
  const auto ladders = FindLadders(ASSAY_SOURCE_DIRECTORY "/kernels");
  ASSERT_TRUE(ladders) << ladders.error().message;
  int built = 0;
  for (const Ladder& ladder : *ladders)
    if (ladder.device == "cuda") built += BuildAll(ladder);
  EXPECT_GE(built, 70);
}

}  // namespace
}  // namespace assay
