#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "toolchain/build.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Optional;

class CacheTest : public testing::Test {
 protected:
  std::string Folder() const { return (folder_->path() / "cache").string(); }

  static std::string KeyOf(const std::string& name) { return ArtifactCache::Key({name}); }

  fs::path EntryOf(const std::string& key) const {
    return fs::path(Folder()) / key.substr(0, 2) / key;
  }

  void SetAge(const std::string& key, int hours) const {
    fs::last_write_time(EntryOf(key), fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }

  Result<TemporaryFolder> folder_ = TemporaryFolder::Create();
};

TEST_F(CacheTest, GivesBackWhatWasPut) {
  ArtifactCache cache(Folder());
  const std::string artifact("\0binary\n\xff", 9);
  EXPECT_EQ(cache.Get(KeyOf("a")), std::nullopt);
  ASSERT_TRUE(cache.Put(KeyOf("a"), artifact));
  EXPECT_THAT(cache.Get(KeyOf("a")), Optional(artifact));
  EXPECT_THAT(ArtifactCache(Folder()).Get(KeyOf("a")), Optional(artifact));
  EXPECT_EQ(cache.Get(KeyOf("b")), std::nullopt);
}

TEST_F(CacheTest, EmptyArtifactIsAnArtifact) {
  ArtifactCache cache(Folder());
  ASSERT_TRUE(cache.Put(KeyOf("a"), ""));
  EXPECT_THAT(cache.Get(KeyOf("a")), Optional(std::string()));
}

TEST_F(CacheTest, KeysDependOnEveryPartAndItsBorders) {
  EXPECT_NE(ArtifactCache::Key({"ab", "c"}), ArtifactCache::Key({"a", "bc"}));
  EXPECT_NE(ArtifactCache::Key({"a"}), ArtifactCache::Key({"a", ""}));
  EXPECT_NE(ArtifactCache::Key({"1:a"}), ArtifactCache::Key({"", "a"}));
  EXPECT_EQ(ArtifactCache::Key({"a", "b"}), ArtifactCache::Key({"a", "b"}));
}

TEST_F(CacheTest, DamagedEntriesCountAsAbsentAndCanBeReplaced) {
  ArtifactCache cache(Folder());
  const std::string key = KeyOf("a");
  ASSERT_TRUE(cache.Put(key, "artifact"));
  const std::string whole = *ReadFile(EntryOf(key), 1000);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    std::ofstream(EntryOf(key), std::ios::binary) << damaged;
    EXPECT_EQ(cache.Get(key), std::nullopt) << "byte " << i;
    std::ofstream(EntryOf(key), std::ios::binary) << whole.substr(0, i);
    EXPECT_EQ(cache.Get(key), std::nullopt) << "cut at " << i;
  }
  ASSERT_TRUE(cache.Put(key, "artifact"));
  EXPECT_THAT(cache.Get(key), Optional(std::string("artifact")));
}

TEST_F(CacheTest, OldestEntriesLeaveFirst) {
  ArtifactCache cache(Folder(), 1000);
  for (const char* name : {"a", "b", "c"})
    ASSERT_TRUE(cache.Put(KeyOf(name), std::string(200, 'x')));
  SetAge(KeyOf("a"), 1);
  SetAge(KeyOf("b"), 3);
  SetAge(KeyOf("c"), 2);
  ASSERT_TRUE(cache.Put(KeyOf("d"), std::string(200, 'x')));
  EXPECT_TRUE(cache.Get(KeyOf("a")));
  EXPECT_FALSE(cache.Get(KeyOf("b")));
  EXPECT_TRUE(cache.Get(KeyOf("c")));
  EXPECT_TRUE(cache.Get(KeyOf("d")));
}

TEST_F(CacheTest, UseKeepsAnEntryYoung) {
  ArtifactCache cache(Folder(), 1000);
  for (const char* name : {"a", "b", "c"})
    ASSERT_TRUE(cache.Put(KeyOf(name), std::string(200, 'x')));
  SetAge(KeyOf("a"), 3);
  SetAge(KeyOf("b"), 2);
  SetAge(KeyOf("c"), 1);
  EXPECT_TRUE(cache.Get(KeyOf("a")));
  ASSERT_TRUE(cache.Put(KeyOf("d"), std::string(200, 'x')));
  EXPECT_TRUE(cache.Get(KeyOf("a")));
  EXPECT_FALSE(cache.Get(KeyOf("b")));
}

// What a killed process left half written is evicted like any entry.
TEST_F(CacheTest, LeftoversCountAndLeave) {
  ArtifactCache cache(Folder(), 1000);
  ASSERT_TRUE(cache.Put(KeyOf("a"), "x"));
  const fs::path leftover = EntryOf(KeyOf("a")).parent_path() / ".assay-AbCdEf";
  std::ofstream(leftover) << std::string(900, 'x');
  fs::last_write_time(leftover, fs::file_time_type::clock::now() - std::chrono::hours(1));
  ASSERT_TRUE(cache.Put(KeyOf("b"), std::string(200, 'x')));
  EXPECT_FALSE(fs::exists(leftover));
  EXPECT_TRUE(cache.Get(KeyOf("a")));
}

TEST_F(CacheTest, ArtifactBeyondTheBoundIsNotKept) {
  ArtifactCache cache(Folder(), 1000);
  ASSERT_TRUE(cache.Put(KeyOf("small"), "x"));
  ASSERT_TRUE(cache.Put(KeyOf("big"), std::string(1000, 'x')));
  EXPECT_FALSE(cache.Get(KeyOf("big")));
  EXPECT_TRUE(cache.Get(KeyOf("small")));
}

TEST_F(CacheTest, FolderThatCannotBeWrittenIsAnErrorWithAMessage) {
  const std::string file = (folder_->path() / "file").string();
  std::ofstream(file) << "in the way";
  ArtifactCache cache(file + "/cache");
  const auto put = cache.Put(KeyOf("a"), "x");
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(put.error().message, HasSubstr(file));
  EXPECT_EQ(cache.Get(KeyOf("a")), std::nullopt);
}

TEST(ProcessorIdentity, IsStableAndNamesTheProcessor) {
  const std::string identity = ProcessorIdentity();
  EXPECT_EQ(identity, ProcessorIdentity());
  EXPECT_NE(identity, "unknown processor");
  EXPECT_GT(identity.size(), size_t{17});  // a name, then 16 digits
}

}  // namespace
}  // namespace assay
