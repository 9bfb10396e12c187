#include "hosts/nursery.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/clock.h"
#include "base/files.h"
#include "hosts/host.h"
#include "hosts/python_runtime.h"
#include "sandbox/self_test.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// Processes whose command line holds this text.
std::vector<pid_t> ProcessesWith(const std::string& text) {
  std::vector<pid_t> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator("/proc", code)) {
    const auto line = ReadFile(entry.path() / "cmdline", 1 << 16);
    if (line && line->contains(text)) found.push_back(std::atoi(entry.path().filename().c_str()));
  }
  return found;
}

std::string ParentOf(const std::string& pid) {
  const auto status = ReadFile(fs::path("/proc") / pid / "status", 1 << 16);
  if (!status) return "gone";
  const size_t at = status->find("PPid:\t") + 6;
  return status->substr(at, status->find('\n', at) - at);
}
std::string ParentOf(pid_t pid) { return ParentOf(std::to_string(pid)); }

class NurseryTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto python = FindPython("");
    if (!python) GTEST_SKIP() << python.error().message;
    python_ = *python;
    static const bool forks = IsForked(Own("probe"));
    if (!forks) GTEST_SKIP() << "nothing can be forked into a sandbox here: hosts are executed";
  }
  // Its program was then executed outside of the sandbox.
  bool IsForked(const Nursery& nursery) const {
    auto host = Host::Start(Options(nursery));
    if (!host) return false;
    const auto line = ReadFile(fmt::format("/proc/{}/cmdline", host->pid()), 1 << 16);
    return line && line->contains("nursery.py");
  }
  Nursery Own(const std::string& name) const {
    return {fmt::format("{} of {}", name, ::getpid()), python_.executable, python_.bytecode};
  }
  HostOptions Options(const Nursery& nursery) const {
    HostOptions options;
    PythonHostFiles files;
    files.settings = "{}";
    options.sandbox = PythonSandbox(python_, PythonRole::kCandidate, 1, files).value();
    options.nursery = nursery;
    return options;
  }

  PythonRuntime python_;
};

TEST_F(NurseryTest, ForksHostsThatAreInTheirSandbox) {
  const Nursery nursery = Own("first");
  for (int i = 0; i < 2; ++i) {
    auto host = Host::Start(Options(nursery));
    ASSERT_TRUE(host) << host.error().message;
    std::error_code code;
    for (const char* name : {"user", "mnt", "pid", "net", "ipc", "uts"}) {
      const auto own = fs::read_symlink(fmt::format("/proc/self/ns/{}", name), code);
      EXPECT_NE(fs::read_symlink(fmt::format("/proc/{}/ns/{}", host->pid(), name), code), own)
          << name;
    }
    const auto status = ReadFile(fmt::format("/proc/{}/status", host->pid()), 1 << 16).value();
    for (const char* words : {"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000",
                              "NoNewPrivs:\t1", "Seccomp:\t2", "Threads:\t1"})
      EXPECT_THAT(status, testing::HasSubstr(words));
    EXPECT_TRUE(host->Quit(10));
  }
}

TEST_F(NurseryTest, AHostComesFromTheNurseryThatWasStartedAhead) {
  Nursery nursery = Own("ahead");
  HostOptions options = Options(nursery);
  nursery.only_ahead = true;
  auto executed = Host::Start(Options(nursery));
  ASSERT_TRUE(executed) << executed.error().message;
  const auto line = ReadFile(fmt::format("/proc/{}/cmdline", executed->pid()), 1 << 16);
  EXPECT_FALSE(line && line->contains("nursery.py"));
  EXPECT_TRUE(executed->Quit(10));
  StartNurseryAhead(nursery, options.sandbox);
  StartNurseryAhead(nursery, options.sandbox);
  const std::string words = std::string("ahead\0", 6) + std::to_string(::getpid());
  // The kernel shows its words a little after it began.
  std::vector<pid_t> started;
  const Deadline deadline = Deadline::AfterSeconds(10);
  while (started.empty() && !deadline.Expired()) {
    started = ProcessesWith(words);
    ::poll(nullptr, 0, 5);
  }
  ASSERT_EQ(started.size(), 1u);
  // A nursery serves hosts of any device.
  options.sandbox.environment["CUDA_VISIBLE_DEVICES"] = "";
  auto host = Host::Start(std::move(options));
  ASSERT_TRUE(host) << host.error().message;
  EXPECT_EQ(ParentOf(ParentOf(host->pid())), std::to_string(started[0]));
  EXPECT_TRUE(host->Quit(10));
}

// One layout of memory serves few verdicts.
TEST_F(NurseryTest, AnotherNurseryComesAfterSixteenHosts) {
  const Nursery nursery = Own("renewed");
  std::set<std::string> parents;
  for (int i = 0; i < 17; ++i) {
    auto host = Host::Start(Options(nursery));
    ASSERT_TRUE(host) << host.error().message;
    // The middle process is the nursery's child.
    const auto middle = ParentOf(host->pid());
    parents.insert(ParentOf(middle));
    EXPECT_TRUE(host->Quit(10));
  }
  EXPECT_EQ(parents.size(), 2u);
}

// The attempts of the sandbox's own self-test, from a process that a nursery has forked.
TEST_F(NurseryTest, NothingBreaksOutOfAForkedProcess) {
  std::vector<UniqueFd> kept;
  SelfTestSetup setup;
  setup.change = [&](SandboxRequest* request) {
    ForkFromNursery(Own("breakout"), request, &kept);
    ASSERT_EQ(request->arguments[0], "/assay/graft");
  };
  const auto report = RunSelfTest(ProbedSandboxTools(), setup);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(DescribeBreaches(*report), "");
  EXPECT_GT(report->tried, 20);
}

TEST_F(NurseryTest, AHostIsExecutedWhereTheNurseryIsGone) {
  const Nursery nursery = Own("killed");
  auto first = Host::Start(Options(nursery));
  ASSERT_TRUE(first) << first.error().message;
  for (const pid_t pid : ProcessesWith("nursery.py")) {
    const auto status = ReadFile(fmt::format("/proc/{}/status", pid), 1 << 16);
    if (status && status->contains(fmt::format("PPid:\t{}\n", ::getpid()))) ::kill(pid, SIGKILL);
  }
  // Its middle process lives on, and so does the first host.
  auto second = Host::Start(Options(nursery));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_TRUE(second->Quit(10));
  EXPECT_TRUE(first->Quit(10));
}

// The judge must learn of a forked host what it learns of an executed one.
TEST_F(NurseryTest, TheEndOfAForkedHostIsTold) {
  auto host = Host::Start(Options(Own("end")));
  ASSERT_TRUE(host) << host.error().message;
  ::kill(host->pid(), SIGSEGV);
  const auto answer = host->Request(wire::FrameKind::kBlocks, {}, 10);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, HostTrouble::Kind::kDied);
  EXPECT_THAT(answer.error().message, testing::HasSubstr("SIGSEGV"));
}

}  // namespace
}  // namespace assay
