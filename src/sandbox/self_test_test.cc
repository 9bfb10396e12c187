// The self-test can fail: each wall is taken away, from outside of the code under test, and exactly
// the attempts that it stood against must break out.
#include "sandbox/self_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "sandbox/sandbox_testing.h"
#include "sandbox/seccomp.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A sandbox with a wall less.
struct Weakness {
  const char* name;
  const char* bubblewrap;  // statements for WeakBubblewrap; empty: the real one
  void (*weaken)(SandboxTools& tools, SelfTestSetup& setup);
  std::set<std::string> breaks;
};

void Nothing(SandboxTools&, SelfTestSetup&) {}
void NoLandlock(SandboxTools& tools, SelfTestSetup&) {
  tools.confine = ReadFile(HelperPath("confine_without_landlock"), 64 << 20).value();
}
void NoFilters(SandboxTools& tools, SelfTestSetup&) { tools.filters = {}; }

std::vector<Weakness> Weaknesses() {
  return {
      {"lockdown", "", [](SandboxTools&, SelfTestSetup& setup) {
         setup.tools_lockdown = setup.native_lockdown = "";
       }, {"locked-threads", "locked-sockets", "locked-wakers", "locked-priorities", "locked-processes"}},
      {"killing", "", [](SandboxTools&, SelfTestSetup& setup) {
         setup.native_lockdown = setup.tools_lockdown;
       }, {"locked-processes"}},
      {"seccomp", "", NoFilters, {}},
      {"landlock", "", NoLandlock, {}},
      {"seals", "", [](SandboxTools&, SelfTestSetup& setup) { setup.read_only_seals = setup.size_seals = 0; }, {}},
      {"write_seal", "", [](SandboxTools&, SelfTestSetup& setup) { setup.read_only_seals = kSizeSeals; }, {}},
      {"no_processes", "", [](SandboxTools& tools, SelfTestSetup&) { tools.filters.no_processes = ""; }, {}},
      {"network", "    words.remove('--unshare-net')\n", Nothing, {}},
      {"processes", "    words.remove('--unshare-pid')\n    at = words.index('--proc')\n    words[at:at+2] = ['--bind', '/proc', '/proc']\n", Nothing, {}},
      {"usr", "    words[words.index('/usr') - 1] = '--bind'\n", Nothing, {}},
      {"root", "    at = words.index('/', words.index('--remount-ro') + 2)\n    del words[at - 1 : at + 1]\n", Nothing, {}},
      {"dev", "    at = words.index('--remount-ro')\n    del words[at : at + 2]\n", NoLandlock, {}},
      {"host_files", "    words[:0] = ['--ro-bind', '/etc', '/etc', '--ro-bind', '/var', '/var']\n", Nothing, {}},
      {"below_tmp", "    words += ['--ro-bind', '/usr', '/tmp/usr']\n", Nothing, {}},
      {"old_root", "    words += ['--ro-bind', '/', '/tmp/oldroot']\n", Nothing, {}},
      {"environment", "    words += ['--setenv', 'SECRET', 'swordfish']\n", Nothing, {}},
      {"capabilities", "    at = words.index('--cap-drop')\n    words[at] = '--cap-add'\n", Nothing, {}},
      {"capabilities_alone", "    at = words.index('--cap-drop')\n    words[at] = '--cap-add'\n", NoFilters, {}},
      {"root_inside", "    words[words.index('--uid') + 1] = '0'\n    words[words.index('--gid') + 1] = '0'\n", Nothing, {}},
      {"descriptor", "    os.dup2(1, 40)\n", Nothing, {}},
      {"own_uid", "", [](SandboxTools& tools, SelfTestSetup&) { tools.own_uid = false; }, {}},
      {"everything", R"(    words.remove('--unshare-net')
    words[words.index('--cap-drop')] = '--cap-add'
    words[words.index('/usr') - 1] = '--bind'
    at = words.index('--proc')
    words[at:at+5] = ['--proc', '/proc']
)", [](SandboxTools& tools, SelfTestSetup& setup) { NoFilters(tools, setup); NoLandlock(tools, setup); tools.own_uid = false; }, {}},
  };
}

TEST(SelfTest, Explore) {
  for (auto& w : Weaknesses()) {
    SandboxTools tools = ProbedSandboxTools(); SelfTestSetup setup; w.weaken(tools, setup);
    std::optional<WeakBubblewrap> b; if (*w.bubblewrap) { b.emplace(w.bubblewrap); tools.bubblewrap.path = b->path(); }
    auto r = RunSelfTest(tools, setup);
    std::printf("== %s: %s\n", w.name, r ? DescribeBreaches(*r).c_str() : r.error().message.c_str());
  }
}

}  // namespace
}  // namespace assay
