// The limits of memory, processes, files and processors.
#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "sandbox/sandbox_testing.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(SandboxLimits, EndsAnAllocatorAsOutOfMemory) {
  SandboxRequest request = ProbeRequest({"allocate", std::to_string(256 * kMiB)});
  request.limits.memory_bytes = 64 * kMiB;
  const ToolRun run = RunRequest(request);
  EXPECT_FALSE(run.exit.exited && run.exit.status == 0);
  if (ProbeSandbox().memory_cgroup.empty()) GTEST_SKIP() << "no memory cgroup here";
  EXPECT_TRUE(run.exit.out_of_memory);
  EXPECT_EQ(run.exit.status, SIGKILL);
  EXPECT_LE(run.exit.peak_memory_bytes, 64 * kMiB);
}

TEST(SandboxLimits, LetsAnAllocatorWithinItsLimitBe) {
  SandboxRequest request = ProbeRequest({"allocate", std::to_string(32 * kMiB)});
  request.limits.memory_bytes = 64 * kMiB;
  const ToolRun run = RunRequest(request);
  EXPECT_TRUE(run.exit.exited);
  EXPECT_EQ(run.exit.status, 0);
  EXPECT_FALSE(run.exit.out_of_memory);
  EXPECT_GE(run.exit.peak_memory_bytes, 32 * kMiB);
}

TEST(SandboxLimits, RefusesAddressSpaceBeyondItsLimit) {
  SandboxRequest request = ProbeRequest({"allocate", std::to_string(512 * kMiB)});
  request.limits.address_space_bytes = 256 * kMiB;
  EXPECT_EQ(ProbeResult(request), ENOMEM);
}

TEST(SandboxLimits, BoundsAForkBomb) {
  SandboxRequest request = ProbeRequest({"children", "500"});
  request.may_start_processes = true;
  request.limits.processes = 10;
  const ToolRun run = RunRequest(request);
  EXPECT_EQ(run.exit.status, 0);
  EXPECT_EQ(run.output, "9");  // and the first one
}

TEST(SandboxLimits, EndsAProductBeyondTheFileSize) {
  SandboxRequest request = ProbeRequest({"make_file", "/tmp/product", std::to_string(4 * kMiB)});
  request.limits.file_bytes = kMiB;
  const ToolRun run = RunRequest(request, "/tmp/product");
  EXPECT_EQ(run.exit.status, SIGXFSZ);
  EXPECT_THAT(run.artifact, IsEmpty());
}

TEST(SandboxLimits, BoundsTheScratchFolder) {
  SandboxRequest request = ProbeRequest({"make_file", "/tmp/file", std::to_string(4 * kMiB)});
  request.limits.scratch_bytes = kMiB;
  EXPECT_EQ(ProbeResult(request), ENOSPC);
}

TEST(SandboxLimits, KeepsToItsProcessors) {
  SandboxRequest request = ProbeRequest({"status"});
  request.cpus = {0};
  EXPECT_THAT(RunRequest(request).output, HasSubstr("Cpus_allowed_list:\t0\n"));
}

TEST(SandboxLimits, EndsASpinnerByItsProcessorTime) {
  SandboxRequest request = ProbeRequest({"daemonise_and_hang", "0"});
  request.arguments = {"/bin/sh", "-c", "while :; do :; done"};
  request.limits.cpu_seconds = 1;
  const ToolRun run = RunRequest(request);
  EXPECT_EQ(run.exit.status, SIGXCPU);
  EXPECT_GE(run.exit.cpu_seconds, 0.8);
}

}  // namespace
}  // namespace assay
