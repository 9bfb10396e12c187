#include "sandbox/cgroup.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace assay {
namespace {

class ControlGroupsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folders_ = FindGroupFolders();
    if (folders_.memory.empty()) GTEST_SKIP() << "no control groups can be made here";
  }
  // Names of existing groups made by the process.
  int GroupsOf(pid_t pid) const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folders_.memory))
      count += entry.path().filename().string().find(fmt::format("-{}-", pid)) != std::string::npos
                   ? 1
                   : 0;
    return count;
  }
  GroupFolders folders_;
};

TEST_F(ControlGroupsTest, AreRemovedWithTheObject) {
  {
    auto groups = ControlGroups::Create(folders_, 64 << 20, 8);
    ASSERT_TRUE(groups) << groups.error().message;
    EXPECT_EQ(GroupsOf(::getpid()), 1);
    ControlGroups moved = std::move(*groups);
    EXPECT_EQ(GroupsOf(::getpid()), 1);
  }
  EXPECT_EQ(GroupsOf(::getpid()), 0);
}

TEST_F(ControlGroupsTest, KillWhatIsLeftInThem) {
  auto groups = ControlGroups::Create(folders_, 64 << 20, 8);
  ASSERT_TRUE(groups);
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const int entry : groups->entries())
      if (::write(entry, "0", 1) != 1) ::_exit(1);
    ::pause();
  }
  while (groups->LiveCpuSeconds() == 0) {
    ASSERT_EQ(::waitpid(pid, nullptr, WNOHANG), 0);
  }
  EXPECT_TRUE(groups->Remove());
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_F(ControlGroupsTest, OfADeadJudgeAreRemovedByTheNext) {
  const pid_t judge = ::fork();
  if (judge == 0) {
    auto groups = ControlGroups::Create(folders_, 64 << 20, 8);
    ::_exit(groups ? 0 : 1);  // without destroying them
  }
  int status = 0;
  ::waitpid(judge, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_EQ(GroupsOf(judge), 1);
  auto own = ControlGroups::Create(folders_, 64 << 20, 8);
  FindGroupFolders();
  EXPECT_EQ(GroupsOf(judge), 0);
  EXPECT_EQ(GroupsOf(::getpid()), 1);  // a living judge's stays
}

// The first process of a container may ask for the dead late, or never.
TEST_F(ControlGroupsTest, OfADeadJudgeThatNobodyAskedForAreRemoved) {
  const pid_t judge = ::fork();
  if (judge == 0) {
    auto groups = ControlGroups::Create(folders_, 64 << 20, 8);
    ::_exit(groups ? 0 : 1);
  }
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(judge), &ended, WEXITED | WNOWAIT), 0);
  ASSERT_EQ(GroupsOf(judge), 1);
  FindGroupFolders();
  EXPECT_EQ(GroupsOf(judge), 0);
  ::waitpid(judge, nullptr, 0);
}

}  // namespace
}  // namespace assay
