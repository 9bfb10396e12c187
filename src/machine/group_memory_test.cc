#include "machine/group_memory.h"

#include <gtest/gtest.h>

#include <fstream>

namespace assay {
namespace {

namespace fs = std::filesystem;

class GroupMemory : public testing::Test {
 protected:
  GroupMemory()
      : root_(fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
  }
  ~GroupMemory() override { fs::remove_all(root_); }

  void Write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  fs::path root_;
};

TEST_F(GroupMemory, NoLimitIsNone) {
  EXPECT_FALSE(MemoryLeftByGroups("0::/a/b\n", root_));
  Write("a/memory.max", "max\n");
  Write("a/memory.current", "5\n");
  EXPECT_FALSE(MemoryLeftByGroups("0::/a/b\n", root_));
  EXPECT_FALSE(MemoryLeftByGroups("nonsense", root_));
}

TEST_F(GroupMemory, TheTightestGroupAboveDecides) {
  Write("a/b/memory.max", "1000\n");
  Write("a/b/memory.current", "100\n");
  Write("a/memory.max", "2000\n");
  Write("a/memory.current", "1500\n");
  EXPECT_EQ(MemoryLeftByGroups("0::/a/b\n", root_), 500);
}

TEST_F(GroupMemory, PagesOfFilesThatNobodyUsesAreFree) {
  Write("memory.max", "1000\n");
  Write("memory.current", "900\n");
  Write("memory.stat", "anon 300\ninactive_file 400\n");
  EXPECT_EQ(MemoryLeftByGroups("0::/\n", root_), 500);
}

TEST_F(GroupMemory, TheFirstVersionHasAFolderOfItsOwn) {
  Write("memory/x/memory.limit_in_bytes", "1000\n");
  Write("memory/x/memory.usage_in_bytes", "1200\n");
  Write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("memory/memory.usage_in_bytes", "7\n");
  EXPECT_EQ(MemoryLeftByGroups("5:cpu:/x\n4:memory:/x\n0::/\n", root_), 0);
}

}  // namespace
}  // namespace assay
