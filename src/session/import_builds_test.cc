// Tests which builds begin ahead, and what becomes of them.
#include "session/import_builds.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace assay {
namespace {

std::vector<CandidateSource> Sources(int count) {
  std::vector<CandidateSource> sources;
  for (int i = 0; i < count; ++i)
    sources.push_back({std::to_string(i) + ".py", "import torch.utils.cpp_extension", "",
                       CandidateForm::kPython, "python"});
  return sources;
}

// Counts what is compiled; each waits until it is let go, or stopped.
struct FakeCompiler {
  ImportBuilds::Compile Compile() {
    return [this](const CandidateSource&, StopToken stop) {
      ++begun;
      while (!go && !stop.stopped()) std::this_thread::yield();
      if (!stop.stopped()) ++compiled;
    };
  }
  void AwaitTwo() const {
    while (begun < 2) std::this_thread::yield();
  }
  std::atomic<int> begun = 0;
  std::atomic<bool> go = false;
  std::atomic<int> compiled = 0;
};

TEST(ImportBuildsTest, SettlingWaitsForThoseUnderWayAndBeginsNoMore) {
  const std::atomic<bool> stop = false;
  FakeCompiler compiler;
  ImportBuilds builds(Sources(5), stop, compiler.Compile());
  compiler.AwaitTwo();
  std::jthread opener([&] { compiler.go = true; });
  builds.Settle();
  EXPECT_GE(compiler.compiled, 2);
  EXPECT_LE(compiler.compiled, 5);
}

TEST(ImportBuildsTest, ThoseThatNobodyWaitsForAreStopped) {
  const std::atomic<bool> stop = false;
  FakeCompiler compiler;
  {
    const ImportBuilds builds(Sources(5), stop, compiler.Compile());
    compiler.AwaitTwo();
  }
  EXPECT_EQ(compiler.compiled, 0);
}

TEST(ImportBuildsTest, TheWorkersEndStopsThem) {
  std::atomic<bool> stop = false;
  FakeCompiler compiler;
  ImportBuilds builds(Sources(2), stop, compiler.Compile());
  compiler.AwaitTwo();
  stop = true;
  builds.Settle();
  EXPECT_EQ(compiler.compiled, 0);
}

TEST(ImportBuildsTest, BeginForExtensionsOnADeviceAlone) {
  const std::atomic<bool> stop = false;
  SessionTerms terms;
  terms.problem.device = "cpu";
  EXPECT_EQ(BeginImportBuilds(terms, Sources(1), stop), nullptr);
  terms.problem.device = "cuda";
  std::vector<CandidateSource> triton = Sources(1);
  triton[0].content += "\nimport triton";
  EXPECT_EQ(BeginImportBuilds(terms, triton, stop), nullptr);
}

}  // namespace
}  // namespace assay
