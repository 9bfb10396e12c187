#include "mine/mine_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "mine/mine_testing.h"
#include "run/plan.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

class MineFolderTest : public testing::Test {
 protected:
  MineFolderTest() : temporary_(TemporaryFolder::Create().value()) {}
  std::string Path(const std::string& name = "") const {
    return (temporary_.path() / "out" / name).string();
  }
  std::string Text(const std::string& name) const { return ReadFile(Path(name), 1 << 20).value(); }

  TemporaryFolder temporary_;
};

TEST_F(MineFolderTest, WorkGoesOnWhereItEnded) {
  {
    auto folder = MineFolder::Open(Path());
    ASSERT_TRUE(folder) << folder.error().message;
    ASSERT_TRUE(folder->Keep(TestMined("a", "default", "one")));
    EXPECT_THAT(MineFolder::Open(Path()).error().message, HasSubstr("another assay mine"));
  }
  std::ofstream(Path(kMinedName), std::ios::app) << R"({"schema":"assay.mined/1","key)";
  auto folder = MineFolder::Open(Path());
  ASSERT_TRUE(folder) << folder.error().message;
  ASSERT_NE(folder->Find("a"), nullptr);
  EXPECT_EQ(folder->Find("a")->name, "softmax_default");
  EXPECT_EQ(folder->Find("b"), nullptr);
  // Mined again: the newest line counts.
  ASSERT_TRUE(folder->Keep(TestMined("a", "default", "two")));
  EXPECT_EQ(folder->all().size(), 1u);
  EXPECT_EQ(folder->Find("a")->code.triton_code, "two");
}

TEST_F(MineFolderTest, AManifestHasWhatWasAskedForAndMined) {
  auto folder = MineFolder::Open(Path());
  ASSERT_TRUE(folder) << folder.error().message;
  Mined refused = TestMined("c", "default", "");
  refused.refusal = "it has 2 graphs";
  ASSERT_TRUE(folder->Keep(TestMined("a", "default", "one")));
  ASSERT_TRUE(folder->Keep(TestMined("b", "max-autotune-no-cudagraphs", "two")));
  ASSERT_TRUE(folder->Keep(std::move(refused)));
  const auto manifest = folder->WriteManifest({"b", "c"});
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(Text("manifest.jsonl"),
            R"({"candidate":"candidates/softmax_max_autotune_no_cudagraphs.py",)"
            R"("problem":"/suite/softmax.py","sample":1,"size":"small","set":{"ROWS":"64"}})"
            "\n");
  EXPECT_EQ(Text("candidates/softmax_max_autotune_no_cudagraphs.py"), "two");
  EXPECT_FALSE(ReadFile(Path("candidates/softmax_default.py"), 100));
}

TEST_F(MineFolderTest, CodeThatAnotherModeBroughtIsRefused) {
  auto folder = MineFolder::Open(Path());
  ASSERT_TRUE(folder) << folder.error().message;
  ASSERT_TRUE(folder->Keep(TestMined("a", "default", "one")));
  ASSERT_TRUE(folder->Keep(TestMined("b", "max-autotune-no-cudagraphs", "one")));
  EXPECT_EQ(folder->Find("b")->refusal, "its code is that of mode default");
}

TEST_F(MineFolderTest, NamesAreFree) {
  auto folder = MineFolder::Open(Path());
  ASSERT_TRUE(folder) << folder.error().message;
  Mined larger = TestMined("b", "default", "two");
  larger.size = "large";
  ASSERT_TRUE(folder->Keep(TestMined("a", "default", "one")));
  ASSERT_TRUE(folder->Keep(std::move(larger)));
  EXPECT_EQ(folder->Find("b")->name, "softmax_default_2");
}

}  // namespace
}  // namespace assay
