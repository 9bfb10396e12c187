// Tests hosts under programs that stand in for tools. Real tools are tested on a GPU.
#include "hosts/host_tool.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "toolchain/compute_sanitizer.h"
#include "toolchain/ncu.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

// Passes by the options that its real counterpart takes, up to the host; --log-file's is $report.
constexpr const char* kHead = R"(#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    --log-file) report=$2; shift 2;;
    /assay/*) break;;
    *) shift;;
  esac
done
)";

class HostUnderTool : public testing::Test {
 protected:
  GpuTool Program(const std::string& script) const {
    const fs::path path = folder_->path() / "tool";
    std::ofstream(path) << kHead << script;
    // For a user that the sandbox may have of its own.
    fs::permissions(folder_->path(), fs::perms(0755));
    fs::permissions(path, fs::perms(0755));
    return {path.string(), folder_->path().string()};
  }
  HostTool Ncu(const std::string& script) const {
    const GpuTool program = Program(script);
    return {
        program,
        [program](const auto& command) { return NcuCommand(program.path, "/tmp/report", command); },
        "/tmp/report"};
  }
  HostTool Sanitizer(const std::string& script) const {
    const GpuTool program = Program(script);
    return {program,
            [program](const auto& command) {
              return SanitizerCommand(program.path, "memcheck", command);
            },
            ""};
  }
  static HostOptions Options(const HostTool& tool) {
    HostOptions options;
    options.sandbox.arguments = {"/assay/native_host"};
    const fs::path host = fs::path(SupportFolder().value()) / "native_host";
    options.sandbox.files = {{"/assay/native_host", ReadFile(host, 64 << 20).value(), true}};
    options.lockdown = "a lockdown that no host under a tool may install";
    PutUnderTool(tool, &options);
    return options;
  }

  Result<TemporaryFolder> folder_ = TemporaryFolder::Create();
};

// It is the host that greets, not the tool; and the report is what the tool
// wrote after the host's end.
TEST_F(HostUnderTool, RunsAndLeavesTheReport) {
  auto host = Host::Start(Options(Ncu(
      R"("$@" && printf '"ID","Kernel Name","dram__bytes.sum"\n"0","sum","1,024"\n' >$report)")));
  ASSERT_TRUE(host) << host.error().message << host.error().output;
  std::string name;
  std::ifstream(fmt::format("/proc/{}/comm", host->pid())) >> name;
  EXPECT_EQ(name, "native_host");
  EXPECT_TRUE(host->Sleep());
  const auto left = host->Quit(60);
  ASSERT_TRUE(left) << left.error().message << left.error().output;
  const auto kernels = ReadNcuReport(left->artifact);
  ASSERT_TRUE(kernels) << kernels.error();
  EXPECT_EQ(kernels->front().name, "sum");
  EXPECT_EQ(kernels->front().dram_bytes, 1024);
}

// Nsight Compute ended with "The application returned an error code (19)" as the host was stopped,
// and with 18 as it was woken.
TEST_F(HostUnderTool, IsNotStoppedUnderAToolThatTakesThatForItsEnd) {
  auto host = Host::Start(Options(Ncu(R"(exec /usr/bin/python3 -c '
import os, sys
host = os.fork()
if host == 0:
    os.execv(sys.argv[2], sys.argv[2:])
_, status = os.waitpid(host, os.WUNTRACED)
if os.WIFSTOPPED(status):
    text = "==ERROR== The application returned an error code (19)."
else:
    text = chr(34) + "ID" + chr(34) + "," + chr(34) + "Kernel Name" + chr(34)
    text += "\n" + chr(34) + "0" + chr(34) + "," + chr(34) + "sum" + chr(34)
open(sys.argv[1], "w").write(text)
' "$report" "$@")")));
  ASSERT_TRUE(host) << host.error().message << host.error().output;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(host->Sleep());
  const auto left = host->Quit(60);
  ASSERT_TRUE(left) << left.error().message << left.error().output;
  const auto kernels = ReadNcuReport(left->artifact);
  ASSERT_TRUE(kernels) << kernels.error();
  EXPECT_EQ(kernels->front().name, "sum");
}

TEST_F(HostUnderTool, WhatTheToolPrintsAfterItsEndIsThere) {
  auto host = Host::Start(Options(Sanitizer(
      R"("$@"; printf '========= Invalid read\n=========\n========= ERROR SUMMARY: 2 errors\n')")));
  ASSERT_TRUE(host) << host.error().message << host.error().output;
  const auto left = host->Quit(60);
  ASSERT_TRUE(left) << left.error().message;
  const SanitizerRecord record = ReadSanitizerOutput("memcheck", left->output);
  EXPECT_EQ(record.errors, 2);
  EXPECT_THAT(record.findings, ElementsAre("Invalid read"));
}

TEST_F(HostUnderTool, AToolThatRefusesSaysWhy) {
  const auto host = Host::Start(Options(Ncu(
      "echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission' >$report; exit 9\n")));
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().kind, HostTrouble::Kind::kDied);
  EXPECT_THAT(NcuTrouble(host.error().output), HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
}

TEST_F(HostUnderTool, AToolThatFailsAfterTheHostIsTold) {
  auto host =
      Host::Start(Options(Ncu("\"$@\"; echo '==ERROR== lost the report' >$report; exit 1\n")));
  ASSERT_TRUE(host) << host.error().message;
  const auto left = host->Quit(60);
  ASSERT_FALSE(left);
  EXPECT_EQ(NcuTrouble(left.error().output), "ncu says: lost the report");
}

TEST_F(HostUnderTool, AToolThatHangsIsEnded) {
  HostOptions options = Options(Ncu("while :; do :; done\n"));
  options.start_timeout_s = 1;
  const auto host = Host::Start(std::move(options));
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().kind, HostTrouble::Kind::kTimedOut);

  auto hung = Host::Start(Options(Ncu("\"$@\"; while :; do :; done\n")));
  ASSERT_TRUE(hung) << hung.error().message;
  EXPECT_EQ(hung->Quit(1).error().kind, HostTrouble::Kind::kTimedOut);
}

TEST_F(HostUnderTool, IsNotWaitedForOnceTheUserAskedToStop) {
  const std::atomic<bool> interrupted = true;
  auto spawned = Host::Spawn(Options(Ncu("while :; do :; done\n")));
  ASSERT_TRUE(spawned);
  spawned->set_stop(StopToken(interrupted));
  EXPECT_EQ(spawned->Greet().error().kind, HostTrouble::Kind::kInterrupted);
}

TEST(PutUnderTool, LoosensWhatAToolNeedsAndNoMore) {
  HostOptions options;
  options.sandbox.arguments = {"/assay/host", "x"};
  options.sandbox.cpus = {0};
  options.sandbox.binds = {{"/data", "/data"}};
  options.lockdown = "program";
  const SandboxRequest before = options.sandbox;
  PutUnderTool({{"/opt/tool/run", "/opt/tool"},
                [](const std::vector<std::string>& command) {
                  std::vector<std::string> under{"/opt/tool/run"};
                  under.insert(under.end(), command.begin(), command.end());
                  return under;
                },
                ""},
               &options);
  const SandboxRequest& request = options.sandbox;
  EXPECT_THAT(request.arguments, ElementsAre("/opt/tool/run", "/assay/host", "x"));
  ASSERT_EQ(request.binds.size(), 2u);
  EXPECT_EQ(request.binds[1].target, "/opt/tool");
  EXPECT_TRUE(request.may_start_processes && request.may_use_loopback);
  EXPECT_EQ(options.lockdown, "");
  EXPECT_TRUE(request.cpus.empty());
  EXPECT_FALSE(options.spin);
  EXPECT_TRUE(options.stays_awake);
  EXPECT_EQ(request.devices, before.devices);
  EXPECT_EQ(request.descriptors, before.descriptors);
  EXPECT_EQ(request.files.size(), before.files.size());
}

}  // namespace
}  // namespace assay
