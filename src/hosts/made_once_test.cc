#include "hosts/made_once.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>

#include "base/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

class Made : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create();
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(*folder));
  }
  fs::path all() const { return folder_->path() / "kind" / "all"; }

  std::optional<TemporaryFolder> folder_;
};

TEST_F(Made, CallsSideBySideMakeItOnce) {
  std::atomic<int> calls = 0;
  const auto make = [&](const fs::path& making) {
    ++calls;
    EXPECT_TRUE(fs::is_empty(making));
    return WriteFileAtomically(making / "file", "content").has_value();
  };
  auto beside = std::async(std::launch::async, [&] { return MadeOnce(all(), "key", make); });
  const std::string made = MadeOnce(all(), "key", make);
  EXPECT_EQ(beside.get(), made);
  EXPECT_EQ(made, (all() / "key").string());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(*ReadFile(all() / "key" / "file", 100), "content");
}

TEST_F(Made, AFailureLeavesNothingAndIsTriedAgain) {
  EXPECT_EQ(MadeOnce(all(), "key", [](const fs::path&) { return false; }), "");
  EXPECT_TRUE(fs::is_empty(all()));
  EXPECT_NE(MadeOnce(all(), "key", [](const fs::path&) { return true; }), "");
}

TEST_F(Made, TheYoungestAreKept) {
  const auto now = fs::file_time_type::clock::now();
  for (int hours = 0; hours < 4; ++hours) {
    const fs::path folder = all() / std::to_string(hours);
    fs::create_directories(folder);
    fs::last_write_time(folder, now - std::chrono::hours(hours));
  }
  KeepYoungest(all(), 2);
  EXPECT_TRUE(fs::exists(all() / "0") && fs::exists(all() / "1"));
  EXPECT_FALSE(fs::exists(all() / "2") || fs::exists(all() / "3"));
}

TEST_F(Made, AProgramsExitStatusDecides) {
  EXPECT_TRUE(RunOutside({"/bin/sh", "-c", "exit 0"}));
  EXPECT_FALSE(RunOutside({"/bin/sh", "-c", "exit 1"}));
  EXPECT_FALSE(RunOutside({"/nonexistent"}));
}

}  // namespace
}  // namespace assay
