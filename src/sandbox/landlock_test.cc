// A death test for each right that Landlock takes away. seccomp and the read-only mounts are out of
// the way here, so that nothing but Landlock refuses; and a sandbox without Landlock shows that it
// is missed.
#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <map>
#include <sstream>

#include "sandbox/sandbox_testing.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int abi = 0;
  int error = 0;
};
using Results = std::map<std::string, Outcome>;

class LandlockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (ProbeSandbox().landlock_abi < 1) GTEST_SKIP() << "this kernel has no Landlock";
    socket_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(name_.begin(), name_.end(), address.sun_path + 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
    ASSERT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(socket_.get(), 8), 0);
  }

  // What each right gives below /tmp, or below a folder of the host's that is mounted writable.
  Results Exercise(bool landlock, bool in_scratch) {
    const TemporaryFolder folder = Fixture();
    const WeakBubblewrap bubblewrap(R"(
    words.remove("--unshare-net")
    for index, word in enumerate(words):
        if word == "--ro-bind" and words[index + 2] == "/data":
            words[index] = "--bind"
)");
    SandboxTools tools = ProbedSandboxTools();
    tools.bubblewrap.path = bubblewrap.path();
    tools.filters = {};
    if (!landlock)
      tools.confine = ReadFile(HelperPath("confine_without_landlock"), 64 << 20).value();
    SandboxRequest request = ProbeRequest({"landlock", in_scratch ? "/tmp" : "/data", name_});
    request.binds.push_back({folder.path(), "/data"});
    request.may_start_processes = true;
    const auto run = RunToolWith(tools, request, "", Deadline::AfterSeconds(30));
    Results results;
    if (!run) {
      ADD_FAILURE() << run.error().message;
      return results;
    }
    std::istringstream text(run->output);
    std::string name;
    for (Outcome result; text >> name >> result.abi >> result.error;) results[name] = result;
    EXPECT_FALSE(results.empty()) << run->output;
    return results;
  }

  bool Has(const Outcome& result) const { return result.abi <= ProbeSandbox().landlock_abi; }

 private:
  // For a user that the sandbox may have of its own.
  static TemporaryFolder Fixture() {
    TemporaryFolder folder = TemporaryFolder::Create().value();
    const fs::path path = folder.path();
    for (const char* name : {"from", "to", "empty"}) fs::create_directory(path / name);
    for (const char* name : {"file", "doomed", "from/file"})
      std::ofstream(path / name) << "content";
    fs::create_symlink("/assay/probe", path / "program");
    fs::permissions(path, fs::perms::all);
    for (const auto& entry : fs::recursive_directory_iterator(path))
      if (!entry.is_symlink()) fs::permissions(entry.path(), fs::perms::all);
    return folder;
  }

  std::string name_ = "assay-landlock-test-" + std::to_string(::getpid());
  UniqueFd socket_;
};

// Those that are left everywhere. Whoever adds a right to the table has to say here what it
// refuses.
bool IsLeftEverywhere(const std::string& name) {
  return name == "execute" || name == "read_file" || name == "read_dir";
}
int RefusalOf(const std::string& name) {
  return name == "abstract_unix_socket" || name == "signal" ? EPERM : EACCES;
}
// What the kernel says where Landlock does not refuse.
int PlainResultOf(const std::string& name) {
  if (name == "make_block") return EPERM;  // needs a capability
  if (name == "ioctl_dev") return ENOTTY;
  if (name == "connect_tcp") return ECONNREFUSED;
  return 0;
}

TEST_F(LandlockTest, RefusesEachRightOutsideOfTheScratchFolder) {
  for (const auto& [name, result] : Exercise(true, false)) {
    const bool refused = Has(result) && !IsLeftEverywhere(name);
    EXPECT_EQ(result.error, refused ? RefusalOf(name) : PlainResultOf(name)) << name;
  }
}

TEST_F(LandlockTest, IsMissedWhereItIsTakenAway) {
  for (const auto& [name, result] : Exercise(false, false))
    EXPECT_EQ(result.error, PlainResultOf(name)) << name;
}

TEST_F(LandlockTest, LeavesTheScratchFolderButForDevices) {
  for (const auto& [name, result] : Exercise(true, true)) {
    const bool nowhere = name.starts_with("make_char") || name == "make_block" ||
                         name == "ioctl_dev" || name.ends_with("_tcp") ||
                         name == "abstract_unix_socket" || name == "signal";
    EXPECT_EQ(result.error, Has(result) && nowhere ? RefusalOf(name) : PlainResultOf(name)) << name;
  }
}

}  // namespace
}  // namespace assay
