#include "runner/kept_results.h"

#include <gtest/gtest.h>

#include "base/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

TEST(KeptResults, OutliveTheRunner) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  {
    KeptResults results(folder.path() / "runner");
    ASSERT_TRUE(results.Keep("17", "lease", R"({"lease":"lease","verdict":{}})"));
    ASSERT_TRUE(results.Keep("18", "lease", R"({"lease":"lease","verdict":{}})"));
  }
  KeptResults results(folder.path() / "runner");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results.oldest().job, "17");
  EXPECT_EQ(results.oldest().body, R"({"lease":"lease","verdict":{}})");
  results.DropOldest();
  EXPECT_EQ(KeptResults(folder.path() / "runner").size(), 1u);
}

TEST(KeptResults, LeaveOtherFilesAlone) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  for (const auto& [name, text] :
       {std::pair("a.json", "{}"), std::pair("b.json", "rubbish"), std::pair("c.txt", "text")})
    ASSERT_TRUE(WriteFileAtomically(folder.path() / name, text));
  EXPECT_TRUE(KeptResults(folder.path()).empty());
  EXPECT_TRUE(fs::exists(folder.path() / "a.json"));
}

TEST(KeptResults, StayInMemoryWhereTheDiskRefuses) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  ASSERT_TRUE(WriteFileAtomically(folder.path() / "runner", "a file, no folder"));
  KeptResults results(folder.path() / "runner");
  EXPECT_FALSE(results.Keep("17", "lease", "{}"));
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results.oldest().body, "{}");
  results.DropOldest();
  EXPECT_TRUE(results.empty());
}

}  // namespace
}  // namespace assay
