// The self-test can fail: each wall is taken away, from outside of the code under test, and exactly
// the attempts that it stood against must break out.
#include "sandbox/self_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "sandbox/sandbox_testing.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

// A sandbox with a wall less.
struct Weakness {
  const char* name;
  const char* bubblewrap;  // statements for WeakBubblewrap; empty: the real one
  void (*weaken)(SandboxTools& tools, SelfTestSetup& setup);
  std::set<std::string> breaks;     // on every machine
  std::set<std::string> may_break;  // where the kernel has what is reached then
};
void PrintTo(const Weakness& weakness, std::ostream* stream) { *stream << weakness.name; }

void OnlyBubblewrap(SandboxTools&, SelfTestSetup&) {}
void NoLandlock(SandboxTools& tools, SelfTestSetup&) {
  tools.confine = ReadFile(HelperPath("confine_without_landlock"), 64 << 20).value();
}
void NoSeccomp(SandboxTools& tools, SelfTestSetup&) { tools.filters = {}; }
void NoProcessFilter(SandboxTools& tools, SelfTestSetup&) { tools.filters.no_processes = ""; }
void NoLockdown(SandboxTools&, SelfTestSetup& setup) {
  setup.tools_lockdown = setup.native_lockdown = "";
}
void NoKilling(SandboxTools&, SelfTestSetup& setup) {
  setup.native_lockdown = setup.tools_lockdown;
}
void NoSeals(SandboxTools&, SelfTestSetup& setup) { setup.read_only_seals = setup.size_seals = 0; }
void NoWriteSeal(SandboxTools&, SelfTestSetup& setup) { setup.read_only_seals = kSizeSeals; }
void NoOwnUid(SandboxTools& tools, SelfTestSetup&) { tools.own_uid = false; }
void AlmostNothing(SandboxTools& tools, SelfTestSetup& setup) {
  NoSeccomp(tools, setup);
  NoLandlock(tools, setup);
  NoOwnUid(tools, setup);
}

const std::set<std::string> kBySeccomp = {
    "terminals",  "tracing",     "keys",         "kernel-programs", "mounts",
    "namespaces", "machine",     "scheduling",   "memory-policy",   "memory-files",
    "identity",   "personality", "new-processes"};
const std::set<std::string> kBySeccompPerhaps = {"sockets", "new-calls", "foreign-calls"};

// Called before the tests run: it must not probe.
std::vector<Weakness> Weaknesses() {
  return {
      {"lockdown",
       "",
       NoLockdown,
       {"locked-threads", "locked-sockets", "locked-wakers", "locked-priorities",
        "locked-processes"},
       {}},
      {"killing", "", NoKilling, {"locked-processes"}, {}},
      {"no_process_filter", "", NoProcessFilter, {"new-processes"}, {}},
      {"seccomp", "", NoSeccomp, kBySeccomp, kBySeccompPerhaps},
      {"seals", "", NoSeals, {"sealed-memory", "sized-memory"}, {}},
      {"write_seal", "", NoWriteSeal, {"sealed-memory"}, {}},
      {"network", "    words.remove('--unshare-net')\n", OnlyBubblewrap, {}, {"interfaces"}},
      {"processes",
       "    words.remove('--unshare-pid')\n"
       "    at = words.index('--proc')\n"
       "    words[at : at + 2] = ['--bind', '/proc', '/proc']\n",
       OnlyBubblewrap,
       {"other-processes", "judge-signal"},
       {}},
      {"system_folder",
       "    words[words.index('/usr') - 1] = '--bind'\n",
       OnlyBubblewrap,
       {"writable-mounts"},
       {}},
      {"root_folder",
       "    at = words.index('/', words.index('--remount-ro') + 2)\n"
       "    del words[at - 1 : at + 1]\n",
       OnlyBubblewrap,
       {"writable-mounts"},
       {}},
      {"private_folder",
       "    words[:0] = ['--ro-bind', '/var', '/var']\n",
       OnlyBubblewrap,
       {"private-files"},
       {}},
      {"mount_below_scratch",
       "    words += ['--ro-bind', '/usr', '/tmp/usr']\n",
       OnlyBubblewrap,
       {"writable-mounts"},
       {}},
      {"old_root",
       "    words += ['--ro-bind', '/usr', '/tmp/oldroot']\n",
       OnlyBubblewrap,
       {"writable-mounts", "old-root"},
       {}},
      {"environment",
       "    words += ['--setenv', 'SECRET', 'swordfish']\n",
       OnlyBubblewrap,
       {"environment"},
       {}},
      {"descriptor", "    os.dup2(1, 40)\n", OnlyBubblewrap, {"descriptors"}, {}},
      {"capabilities",
       "    words[words.index('--cap-drop')] = '--cap-add'\n",
       OnlyBubblewrap,
       {"identity", "become-root"},
       {}},
      {"root_inside",
       "    words[words.index('--uid') + 1] = '0'\n",
       OnlyBubblewrap,
       {"identity", "become-root"},
       {}},
      {"limit",
       "    at = given.index('fsize')\n"
       "    del given[at - 1 : at + 2]\n",
       OnlyBubblewrap,
       {"limits"},
       {}},
      {"landlock",
       "",
       NoLandlock,
       {"devices", "process-files", "keeper-memory"},
       {"device-requests", "keeper-signals"}},
      {"own_uid", "", NoOwnUid, {"own-uid"}, {}},
  };
}

// Hardly any wall: shows what the attempts can see. Nothing of the host's is mounted writable but
// the kernel's settings, which are opened and not written.
const char* const kAlmostNothing =
    "    words.remove('--unshare-net')\n"
    "    words[words.index('--cap-drop')] = '--cap-add'\n"
    "    at = words.index('--proc')\n"
    "    del words[at + 2 : at + 5]\n"
    "    while '--remount-ro' in words:\n"
    "        at = words.index('--remount-ro')\n"
    "        del words[at : at + 2]\n";

std::set<std::string> BreachesOf(const Weakness& weakness) {
  SandboxTools tools = ProbedSandboxTools();
  SelfTestSetup setup;
  weakness.weaken(tools, setup);
  std::optional<WeakBubblewrap> bubblewrap;
  if (*weakness.bubblewrap != '\0') {
    bubblewrap.emplace(weakness.bubblewrap);
    tools.bubblewrap.path = bubblewrap->path();
  }
  const auto report = RunSelfTest(tools, setup);
  std::set<std::string> broken;
  if (!report) {
    ADD_FAILURE() << weakness.name << ": " << report.error().message;
    return broken;
  }
  for (const SelfTestReport::Breach& breach : report->breaches) {
    broken.insert(breach.attempt);
    EXPECT_NE(breach.detail, "") << breach.attempt;
  }
  return broken;
}

class WeakSandbox : public ::testing::TestWithParam<Weakness> {};
TEST_P(WeakSandbox, IsSeenForWhatItIs) {
  const Weakness& weakness = GetParam();
  if (weakness.weaken == NoLandlock && ProbeSandbox().landlock_abi < 1)
    GTEST_SKIP() << "this kernel has no Landlock";
  if (weakness.weaken == NoOwnUid && !ProbeSandbox().own_uid)
    GTEST_SKIP() << "only root's sandboxes have another uid";
  std::set<std::string> broken = BreachesOf(weakness);
  for (const std::string& attempt : weakness.may_break) broken.erase(attempt);
  EXPECT_EQ(broken, weakness.breaks);
}
INSTANTIATE_TEST_SUITE_P(Walls, WeakSandbox, ::testing::ValuesIn(Weaknesses()),
                         [](const ::testing::TestParamInfo<Weakness>& weakness) {
                           return std::string(weakness.param.name);
                         });

// The rows of `breakout --list`, by attempt.
std::map<std::string, std::string> ListedRows() {
  auto file = TemporaryFolder::Create();
  const std::string path = file->path() / "breakout";
  std::ofstream(path) << ProbedSandboxTools().breakout;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  std::map<std::string, std::string> rows;
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(write_end.get(), 1);
    ::execl(path.c_str(), "breakout", "--list", nullptr);
    ::_exit(127);
  }
  write_end.Close();
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = ::read(read_end.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(count));
  ::waitpid(pid, nullptr, 0);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    rows[line.substr(3, line.find('`', 3) - 3)] = line;
  return rows;
}

TEST(SelfTest, HoldsHere) {
  const auto report = RunSelfTest(ProbedSandboxTools());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(DescribeBreaches(*report), "");
  EXPECT_GT(report->tried, 80);
  EXPECT_TRUE(RequireSandbox());
}

// Each attempt has broken out of some sandbox: none of them is blind.
TEST(SelfTest, HasNoBlindAttempt) {
  if (!ProbeSandbox().own_uid) GTEST_SKIP() << "only root can take every wall away";
  std::set<std::string> broken =
      BreachesOf({"almost nothing", kAlmostNothing, AlmostNothing, {}, {}});
  for (const Weakness& weakness : Weaknesses())
    broken.insert(weakness.breaks.begin(), weakness.breaks.end());
  // A kernel lets nobody in a user namespace make device files.
  broken.insert("device-nodes");
  for (const auto& [attempt, row] : ListedRows()) {
    const bool skipped = std::ranges::count(ProbeSandbox().self_test.skipped, attempt) > 0;
    if (skipped || kBySeccompPerhaps.contains(attempt)) continue;
    EXPECT_TRUE(broken.contains(attempt)) << attempt;
  }
}

TEST(SelfTest, StandsInTheDocument) {
  const auto document = ReadFile(ASSAY_SOURCE_DIRECTORY "/docs/sandbox.md", 1 << 20);
  if (!document) GTEST_SKIP() << "the source is not readable from here";
  const auto rows = ListedRows();
  EXPECT_GT(rows.size(), 40u);
  for (const auto& [attempt, row] : rows) EXPECT_THAT(*document, HasSubstr(row + "\n"));
}

TEST(SelfTest, CannotBeFinishedWhereItsProgramEndsEarly) {
  SandboxTools tools = ProbedSandboxTools();
  tools.breakout = ReadFile("/bin/true", 16 << 20).value();
  const auto report = RunSelfTest(tools);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("could not be finished"));
}

// The probe runs once a process, so these look from a child.
TEST(SelfTestDeathTest, RefusesForeignWorkUnlessItIsAllowed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto look = [](bool allowed) {
    std::optional<WeakBubblewrap> bubblewrap(std::in_place,
                                             "    words += ['--setenv', 'SECRET', 'swordfish']\n",
                                             "/usr/bin/bwrap");
    ::setenv("ASSAY_BWRAP", bubblewrap->path().c_str(), 1);
    if (allowed) AllowWeakSandbox();
    const auto run = RunToolInSandbox(ProbeRequest({"exit", "0"}), "", Deadline::AfterSeconds(10));
    std::fprintf(stderr, "%s\n%s\n", run ? "it ran" : run.error().message.c_str(),
                 ProbeSandbox().isolation.c_str());
    bubblewrap.reset();
    ::_exit(0);
  };
  EXPECT_EXIT(look(false), ::testing::ExitedWithCode(0),
              "break out by: environment \\(SECRET\\).*--allow-weak-sandbox");
  EXPECT_EXIT(look(true), ::testing::ExitedWithCode(0),
              "it ran\nWEAK: environment \\(SECRET\\); bubblewrap");
}

}  // namespace
}  // namespace assay
