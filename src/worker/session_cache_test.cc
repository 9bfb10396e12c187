#include "worker/session_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace assay {
namespace {

using testing::ElementsAre;

// Says which of them are open.
struct FakeSession {
  FakeSession(std::string name_in, std::vector<std::string>* open_in)
      : name(std::move(name_in)), open(open_in) {
    open->push_back(name);
  }
  ~FakeSession() { std::erase(*open, name); }
  std::string name;
  std::vector<std::string>* open;
};

class SessionCacheTest : public testing::Test {
 protected:
  SessionCacheTest() : cache_(3, 250, [this] { return 100 * open_.size(); }) {}
  void Use(const std::string& name) {
    const auto session = cache_.Get(name, [&] { return Opened(name); });
    ASSERT_TRUE(session);
    EXPECT_EQ((*session)->name, name);
  }
  Result<std::unique_ptr<FakeSession>> Opened(const std::string& name) {
    return std::make_unique<FakeSession>(name, &open_);
  }
  std::vector<std::string> open_;
  SessionCache<FakeSession> cache_;
};

TEST_F(SessionCacheTest, ASessionThatIsOpenIsUsedAgain) {
  Use("a");
  Use("a");
  EXPECT_THAT(open_, ElementsAre("a"));
}

TEST_F(SessionCacheTest, TheLeastRecentlyUsedOneGivesItsPlace) {
  for (const char* name : {"a", "b", "c", "a", "d"}) Use(name);
  EXPECT_THAT(open_, ElementsAre("a", "c", "d"));
}

TEST_F(SessionCacheTest, TrimEndsTheOldestUntilTheRestFits) {
  for (const char* name : {"a", "b", "c"}) Use(name);
  cache_.Trim();
  EXPECT_THAT(open_, ElementsAre("b", "c"));
}

TEST_F(SessionCacheTest, OneStaysHoweverMuchItTakes) {
  SessionCache<FakeSession> cache(3, 0, [] { return 1000; });
  ASSERT_TRUE(cache.Get("a", [&] { return Opened("a"); }));
  cache.Trim();
  EXPECT_THAT(open_, ElementsAre("a"));
}

// A session that waits for a device's memory must not wait for that of its own process.
TEST_F(SessionCacheTest, OthersEndWhileOneOpens) {
  for (const char* name : {"a", "b"}) Use(name);
  const auto session = cache_.Get("c", [&] {
    cache_.DropIf([](const FakeSession&) { return true; });
    EXPECT_TRUE(open_.empty());
    return Opened("c");
  });
  ASSERT_TRUE(session);
  EXPECT_THAT(open_, ElementsAre("c"));
}

TEST_F(SessionCacheTest, OneThatWasDroppedIsOpenedAnew) {
  Use("a");
  cache_.Drop("a");
  EXPECT_TRUE(open_.empty());
  Use("a");
  EXPECT_EQ(cache_.size(), 1u);
}

TEST_F(SessionCacheTest, OneThatDoesNotOpenIsNotKept) {
  const auto failed = cache_.Get(
      "a", []() -> Result<std::unique_ptr<FakeSession>> { return EnvironmentError("no PyTorch"); });
  EXPECT_FALSE(failed);
  EXPECT_EQ(cache_.size(), 0u);
}

}  // namespace
}  // namespace assay
