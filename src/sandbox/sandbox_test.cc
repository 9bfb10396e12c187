#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <thread>

#include "sandbox/sandbox_testing.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Sandbox, IsAvailableAndSaysWhatItIsMadeOf) {
  const SandboxSupport& support = ProbeSandbox();
  ASSERT_TRUE(support.available) << support.missing;
  EXPECT_THAT(support.isolation, StartsWith("bubblewrap "));
  EXPECT_THAT(support.isolation, HasSubstr("seccomp"));
  EXPECT_EQ(support.own_uid, ::geteuid() == 0);
  RecordProperty("isolation", support.isolation);
}

TEST(Sandbox, ReportsExitStatusAndSignal) {
  EXPECT_EQ(RunProbe({"exit", "7"}).exit.status, 7);
  EXPECT_TRUE(RunProbe({"exit", "7"}).exit.exited);
  const ToolRun killed = RunProbe({"signal", std::to_string(SIGSEGV)});
  EXPECT_FALSE(killed.exit.exited);
  EXPECT_EQ(killed.exit.status, SIGSEGV);
  // A status that a shell would take for a signal is still a status.
  EXPECT_EQ(RunProbe({"exit", "139"}).exit.status, 139);
  EXPECT_TRUE(RunProbe({"exit", "139"}).exit.exited);
}

TEST(Sandbox, SaysWhenTheCommandCannotBeRun) {
  SandboxRequest request;
  request.arguments = {"/no/such/command"};
  auto sandbox = Sandbox::Start(request);
  ASSERT_FALSE(sandbox);
  EXPECT_EQ(sandbox.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(sandbox.error().message,
              HasSubstr("/no/such/command cannot be run in the sandbox: No such file"));
  EXPECT_THAT(GroupsLeft(), IsEmpty());
}

TEST(Sandbox, SeveralStartAtATime) {
  std::vector<Sandbox> begun;
  for (const char* status : {"1", "2", "3"}) {
    auto sandbox = Sandbox::Begin(ProbeRequest({"exit", status}));
    ASSERT_TRUE(sandbox) << sandbox.error().message;
    begun.push_back(std::move(*sandbox));
  }
  for (size_t i = 0; i < begun.size(); ++i) {
    ASSERT_TRUE(begun[i].AwaitStarted());
    const auto exit = begun[i].Wait(Deadline::AfterSeconds(10));
    ASSERT_TRUE(exit) << exit.error().message;
    EXPECT_EQ(exit->status, static_cast<int>(i) + 1);
  }
  SandboxRequest missing;
  missing.arguments = {"/no/such/command"};
  auto sandbox = Sandbox::Begin(missing);
  ASSERT_TRUE(sandbox) << "what keeps it from starting is told when it is awaited";
  const auto started = sandbox->AwaitStarted();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("/no/such/command cannot be run"));
}

TEST(Sandbox, OneThatIsDroppedAsItStartsLeavesNothing) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd ours(pair[0]);
  UniqueFd theirs(pair[1]);
  SandboxRequest request = ProbeRequest({"flood", "10485760"});
  request.descriptors = {{theirs.get(), 3}};
  ASSERT_TRUE(Sandbox::Begin(request));
  theirs.Close();
  char byte;
  EXPECT_EQ(::recv(ours.get(), &byte, 1, MSG_DONTWAIT), 0) << "a process still holds it";
  EXPECT_THAT(GroupsLeft(), IsEmpty());
}

TEST(Sandbox, SaysWhichBindIsMissing) {
  SandboxRequest request = ProbeRequest({"exit", "0"});
  request.binds.push_back({"/no/such/folder", "/data"});
  auto sandbox = Sandbox::Start(request);
  ASSERT_FALSE(sandbox);
  EXPECT_THAT(sandbox.error().message, HasSubstr("/no/such/folder"));
}

TEST(Sandbox, HasACleanEnvironmentAndIdentity) {
  ::setenv("ASSAY_TEST_SECRET", "swordfish", 1);
  SandboxRequest request = ProbeRequest({"environment"});
  request.environment = {{"LANG", "C.UTF-8"}, {"WEIGHT", "a=b c"}};
  const std::string environment = RunRequest(request).output;
  EXPECT_THAT(environment, Not(HasSubstr("swordfish")));
  EXPECT_THAT(environment, HasSubstr("WEIGHT=a=b c\n"));
  EXPECT_LE(std::count(environment.begin(), environment.end(), '\n'), 3);  // PWD is bubblewrap's

  const std::string status = RunProbe({"status"}).output;
  EXPECT_THAT(status, HasSubstr("Uid:\t1000\t1000\t1000\t1000\n"));
  EXPECT_THAT(status, HasSubstr("CapEff:\t0000000000000000\n"));
  EXPECT_THAT(status, HasSubstr("CapBnd:\t0000000000000000\n"));
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1\n"));
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2\n"));
  EXPECT_THAT(status, HasSubstr("Host: assay\nFolder: /tmp\n"));
  // The speculative-store mitigation is not forced on by the filter.
  EXPECT_THAT(status, Not(HasSubstr("force mitigated")));
}

TEST(Sandbox, ShowsNoProcessOfTheHost) {
  const std::string own = "/proc/" + std::to_string(::getpid()) + "/stat";
  const std::string status = RunProbe({"status"}).output;
  int pid = 0;
  ASSERT_EQ(std::sscanf(status.c_str() + status.find("\nPid:"), "\nPid:\t%d", &pid), 1);
  EXPECT_LE(pid, 5);
  if (::getpid() > 10) {
    EXPECT_EQ(ProbeResult(ProbeRequest({"read", own})), ENOENT);
  }
}

TEST(Sandbox, PassesOnTheRequestedDescriptorsAndNoOther) {
  // A descriptor without close-on-exec, as a careless library leaves it.
  const UniqueFd leak(::open("/dev/null", O_RDONLY));
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd ours(pair[0]);
  UniqueFd theirs(pair[1]);
  SandboxRequest request = ProbeRequest({"descriptors"});
  request.descriptors = {{theirs.get(), 3}, {theirs.get(), 17}};
  EXPECT_EQ(RunRequest(request).output, "0 1 2 3 17 ");
  // Numbers that cross: each goes where it was sent.
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  request.arguments = {"/assay/probe", "say", std::to_string(null.get()), "hello"};
  request.descriptors = {{theirs.get(), null.get()}, {null.get(), theirs.get()}};
  EXPECT_EQ(ProbeResult(request), 0);
  char text[16];
  ASSERT_EQ(::recv(ours.get(), text, sizeof text, MSG_DONTWAIT), 5);
  EXPECT_EQ(std::string(text, 5), "hello");
}

TEST(Sandbox, ClosesTheRequestedDescriptorsWithTheCommand) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd ours(pair[0]);
  UniqueFd theirs(pair[1]);
  SandboxRequest request = ProbeRequest({"exit", "0"});
  request.descriptors = {{theirs.get(), 3}};
  auto sandbox = Sandbox::Start(request);
  ASSERT_TRUE(sandbox) << sandbox.error().message;
  theirs.Close();
  char byte;
  EXPECT_EQ(::recv(ours.get(), &byte, 1, 0),
            0);  // blocks for ever if another process still holds it
  EXPECT_TRUE(sandbox->Wait(Deadline::AfterSeconds(10)));
}

TEST(Sandbox, ShowsFilesAndBindsReadOnly) {
  auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  ASSERT_TRUE(WriteFileAtomically(folder->path() / "data", "content"));
  ::chmod(folder->path().c_str(), 0755);
  for (const std::string target : {"/data", "/tmp/data"}) {
    SandboxRequest request = ProbeRequest({"read", target + "/data"});
    request.binds.push_back({folder->path(), target});
    EXPECT_EQ(ProbeResult(request), 0) << target;
    request.arguments[1] = "write";
    EXPECT_NE(ProbeResult(request), 0) << target;
    request.arguments = {"/assay/probe", "create", target + "/new"};
    EXPECT_NE(ProbeResult(request), 0) << target;
  }
  EXPECT_EQ(ProbeResult(ProbeRequest({"read", "/assay/probe"})), 0);
  EXPECT_NE(ProbeResult(ProbeRequest({"write", "/assay/probe"})), 0);
  EXPECT_FALSE(std::filesystem::exists(folder->path() / "new"));
}

TEST(Sandbox, SaysWhyItCannotShowAPrivateFolder) {
  if (!ProbeSandbox().own_uid) GTEST_SKIP() << "only root's sandboxes have another uid";
  auto folder = TemporaryFolder::Create();  // mode 0700
  ASSERT_TRUE(folder);
  std::filesystem::create_directory(folder->path() / "python");
  SandboxRequest request = ProbeRequest({"exit", "0"});
  request.binds.push_back({folder->path() / "python", "/python"});
  auto sandbox = Sandbox::Start(request);
  ASSERT_FALSE(sandbox);
  EXPECT_THAT(sandbox.error().message, HasSubstr("may not look below private folders"));
}

TEST(Sandbox, KeepsTheWholeCapOfAFloodAndNeverBlocksIt) {
  const ToolRun run = RunProbe({"flood", "10485760"});
  EXPECT_TRUE(run.exit.exited);
  EXPECT_EQ(run.exit.status, 0);
  EXPECT_EQ(run.output.size(), 64u * 1024);
}

TEST(Sandbox, TakesAFloodThatNobodyReads) {
  auto sandbox = Sandbox::Start(ProbeRequest({"flood", "10485760"}));
  ASSERT_TRUE(sandbox);
  pollfd ended{sandbox->pidfd(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 20'000), 1);
  EXPECT_EQ(sandbox->Output().size(), 64u * 1024);
  EXPECT_EQ(sandbox->Wait(Deadline::AfterSeconds(10))->status, 0);
}

TEST(Sandbox, CopiesTheProductOfATool) {
  const ToolRun run =
      RunRequest(ProbeRequest({"make_file", "/tmp/product", "300000"}), "/tmp/product");
  EXPECT_EQ(run.exit.status, 0);
  EXPECT_EQ(run.artifact, std::string(300000, 'x'));
  EXPECT_THAT(RunRequest(ProbeRequest({"exit", "0"}), "/tmp/product").artifact, IsEmpty());
}

TEST(Sandbox, RunsTheSystemsCompiler) {
  if (::access("/usr/bin/g++", X_OK) != 0) GTEST_SKIP() << "no /usr/bin/g++";
  SandboxRequest request;
  request.arguments = {"/usr/bin/g++",          "-O2", "-shared",       "-fPIC", "-fopenmp",
                       "/candidate/kernel.cpp", "-o",  "/tmp/kernel.so"};
  request.environment = {{"PATH", "/usr/bin:/bin"}, {"TMPDIR", "/tmp"}};
  request.files = {{"/candidate/kernel.cpp",
                    "#include <vector>\nint f() { return std::vector<int>(3).size(); }\n"}};
  request.may_start_processes = true;
  const ToolRun good = RunRequest(request, "/tmp/kernel.so", 60);
  EXPECT_EQ(good.exit.status, 0) << good.output;
  EXPECT_THAT(good.artifact, StartsWith("\x7f"
                                        "ELF"));
  request.files[0].content = "int f() { return undeclared; }\n";
  const ToolRun bad = RunRequest(request, "/tmp/kernel.so", 60);
  EXPECT_EQ(bad.exit.status, 1);
  EXPECT_THAT(bad.output, HasSubstr("/candidate/kernel.cpp:1:18: error: "));
  EXPECT_THAT(bad.artifact, IsEmpty());
}

TEST(Sandbox, HidesTheProductsDescriptorFromTheTool) {
  EXPECT_EQ(RunRequest(ProbeRequest({"descriptors"}), "/tmp/product").output, "0 1 2 ");
}

TEST(Sandbox, RefusesAProductThatIsNoFileOfItsOwn) {
  const ToolRun link =
      RunRequest(ProbeRequest({"link", "/etc/passwd", "/tmp/product"}), "/tmp/product");
  EXPECT_EQ(link.exit.status, 0);
  EXPECT_THAT(link.artifact, IsEmpty());
  EXPECT_THAT(link.output, HasSubstr("not a regular file"));
}

TEST(Sandbox, EndsAtItsDeadline) {
  const ToolRun run = RunRequest(ProbeRequest({"hang"}), "", 0.2);
  EXPECT_TRUE(run.timed_out);
  EXPECT_FALSE(run.exit.exited);
  EXPECT_EQ(run.exit.status, SIGKILL);
}

TEST(Sandbox, LeavesNoProcessOfADaemonisingTree) {
  const std::string marker = "assay-test-marker-" + std::to_string(::getpid());
  SandboxRequest request = ProbeRequest({"daemonise_and_hang", "12", marker});
  request.may_start_processes = true;
  request.limits.cpu_seconds = 10;
  auto sandbox = Sandbox::Start(request);
  ASSERT_TRUE(sandbox);
  ASSERT_TRUE(AwaitOutput(*sandbox, "all started"));
  ASSERT_GE(ProcessesWith(marker).size(), 13u);
  auto exit = sandbox->Wait(Deadline::AfterSeconds(0));
  ASSERT_TRUE(exit) << exit.error().message;
  EXPECT_TRUE(sandbox->timed_out());
  EXPECT_THAT(ProcessesWith(marker), IsEmpty());
  EXPECT_THAT(GroupsLeft(), IsEmpty());
}

TEST(Sandbox, LeavesNoDaemonOfACommandThatEnded) {
  const std::string marker = "assay-test-marker-" + std::to_string(::getpid());
  SandboxRequest request = ProbeRequest({"daemonise", "3", marker});
  request.may_start_processes = true;
  request.limits.cpu_seconds = 10;
  EXPECT_EQ(ProbeResult(request), 0);
  EXPECT_THAT(ProcessesWith(marker), IsEmpty());
  EXPECT_THAT(GroupsLeft(), IsEmpty());
}

TEST(Sandbox, DiesWithTheJudge) {
  const std::string marker = "assay-test-marker-" + std::to_string(::getpid());
  ProbeSandbox();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t judge = ::fork();
  if (judge == 0) {
    auto sandbox = Sandbox::Start(ProbeRequest({"hang", marker}));
    [[maybe_unused]] const auto written = ::write(write_end.get(), sandbox ? "y" : "n", 1);
    ::pause();
  }
  write_end.Close();
  char started = 'n';
  ASSERT_EQ(::read(read_end.get(), &started, 1), 1);
  ASSERT_EQ(started, 'y');
  ASSERT_THAT(ProcessesWith(marker), Not(IsEmpty()));
  ::kill(judge, SIGKILL);
  ::waitpid(judge, nullptr, 0);
  const Deadline deadline = Deadline::AfterSeconds(10);
  while (!ProcessesWith(marker).empty() && !deadline.Expired()) ::poll(nullptr, 0, 5);
  EXPECT_THAT(ProcessesWith(marker), IsEmpty());
}

TEST(Sandbox, IsKilledOnDestructionAndByKill) {
  const std::string marker = "assay-test-marker-" + std::to_string(::getpid());
  {
    auto sandbox = Sandbox::Start(ProbeRequest({"hang", marker}));
    ASSERT_TRUE(sandbox);
    ASSERT_THAT(ProcessesWith(marker), Not(IsEmpty()));
  }
  EXPECT_THAT(ProcessesWith(marker), IsEmpty());
  auto sandbox = Sandbox::Start(ProbeRequest({"hang", marker}));
  ASSERT_TRUE(sandbox);
  sandbox->Kill();
  sandbox->Kill();
  auto exit = sandbox->Wait(Deadline::AfterSeconds(10));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->status, SIGKILL);
  EXPECT_FALSE(sandbox->timed_out());
  EXPECT_THAT(GroupsLeft(), IsEmpty());
}

TEST(Sandbox, RunsManyAtOnceFromSeveralThreads) {
  ProbeSandbox();
  std::vector<std::thread> threads;
  std::vector<int> statuses(4, -1);
  for (size_t i = 0; i < statuses.size(); ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 3; ++round)
        statuses[i] = ProbeResult(ProbeRequest({"exit", std::to_string(i)}));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(statuses, ::testing::ElementsAre(0, 1, 2, 3));
}

TEST(Sandbox, LeavesNoDescriptorBehind) {
  const auto open_now = [] {
    const std::filesystem::directory_iterator folder("/proc/self/fd");
    return std::distance(begin(folder), end(folder));
  };
  ProbeSandbox();
  RunProbe({"exit", "0"});
  const auto before = open_now();
  for (int i = 0; i < 5; ++i) RunRequest(ProbeRequest({"exit", "0"}), "/tmp/product");
  EXPECT_EQ(open_now(), before);
}

// The probe runs once a process, so each of these looks from a child.
TEST(SandboxDeathTest, SaysThatBubblewrapIsMissingAndHowToMendIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::setenv("ASSAY_BWRAP", "/no/such/bwrap", 1);
        std::fprintf(stderr, "%s", ProbeSandbox().missing.c_str());
        const auto run =
            RunToolInSandbox(ProbeRequest({"exit", "0"}), "", Deadline::AfterSeconds(1));
        ::_exit(run || ProbeSandbox().available ? 1 : 0);
      },
      ::testing::ExitedWithCode(0),
      "was not found; install it \\(Debian: apt-get install bubblewrap\\)");
  EXPECT_EXIT(
      {
        ::setenv("ASSAY_BWRAP", "/bin/false", 1);
        std::fprintf(stderr, "%s", ProbeSandbox().missing.c_str());
        ::_exit(ProbeSandbox().available ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "does not run; reinstall");
}

TEST(SandboxDeathTest, SaysWhereItsHelpersShouldBe) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::setenv("ASSAY_SUPPORT", "/no/such/folder", 1);
        std::fprintf(stderr, "%s", ProbeSandbox().missing.c_str());
        ::_exit(ProbeSandbox().available ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "ASSAY_SUPPORT names /no/such/folder");
}

}  // namespace
}  // namespace assay
