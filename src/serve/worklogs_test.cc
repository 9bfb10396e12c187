#include "serve/worklogs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "archive/sqlite_store.h"
#include "serve/class_testing.h"
#include "serve/classes.h"
#include "serve/serve_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;

class WorklogsTest : public ServeTest {
 protected:
  void OpenAgain() override {
    ServeTest::OpenAgain();
    store_ = SqliteStore::Open(place() + "/archive.sqlite").value();
    worklogs_.emplace(*database_, *store_, Tars());
    accounts_.emplace(*database_);
  }
  Account Student(const std::string& name) {
    return accounts_->Make(name, Role::kStudent, of_.id, now_).value();
  }
  Granted<WorklogEntry> Send(const Account& author, MatchBuilder& builder) {
    const std::vector<TarFile> files = FilesOf(builder);
    return worklogs_->Keep(author, of_, files, ReadUploadedWorklog(files).value(), now_);
  }

  Class of_{7, "key", {"kernels", 1'800'000'000 + 10 * kDay_s, 100, 3, ""}, 0, 0, 0};
  std::unique_ptr<SqliteStore> store_;
  std::optional<Worklogs> worklogs_;
  std::optional<Accounts> accounts_;
};

TEST_F(WorklogsTest, AnUploadIsKeptAndCheckedAgain) {
  MatchBuilder builder = LostMatch();
  const auto kept = Send(Student("ada"), builder);
  ASSERT_TRUE(kept) << kept.error().why;
  EXPECT_EQ(kept->uploads, 1);
  EXPECT_EQ(kept->problem, "softmax");
  OpenAgain();
  const auto entry = worklogs_->Find(kept->id).value();
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->author.name, "ada");
  const auto checked = worklogs_->Check(*entry);
  ASSERT_TRUE(checked) << checked.error().message;
  EXPECT_EQ(checked->uploaded.worklog.match.versions.size(), 4U);
  EXPECT_FALSE(Any(checked->findings, FindingKind::kSuspicious));
  EXPECT_EQ(worklogs_->OfClass(7)->size(), 1U);
  EXPECT_EQ(worklogs_->OfClass(8)->size(), 0U);
}

TEST_F(WorklogsTest, TheSameFilesAreOneUpload) {
  MatchBuilder builder = LostMatch();
  const Account ada = Student("ada");
  EXPECT_EQ(Send(ada, builder)->uploads, 1);
  EXPECT_EQ(Send(ada, builder)->uploads, 1);
  builder.Measure(Player::kHand, "v4", "v3 was 20% off", SpeedVerdict("aaaaaaaaaaa4", 1.1));
  Pass(60);
  const auto second = Send(ada, builder);
  EXPECT_EQ(second->uploads, 2);
  EXPECT_EQ(second->sent_s - second->first_s, 60);
}

TEST_F(WorklogsTest, FactsThatCameOnceAreMissed) {
  const Account ada = Student("ada");
  MatchBuilder whole = LostMatch();
  whole.Measure(Player::kHand, "v4", "a slow one, at 3 us", SpeedVerdict("aaaaaaaaaaa4", 0.1));
  ASSERT_TRUE(Send(ada, whole));
  MatchBuilder cut = LostMatch();
  const auto kept = Send(ada, cut);
  ASSERT_TRUE(kept) << kept.error().why;
  EXPECT_TRUE(Any(worklogs_->Check(*kept)->findings, FindingKind::kSuspicious));
  // It stays so, though another upload follows.
  cut.words().stuck.push_back({Player::kHand, "One more word."});
  EXPECT_TRUE(Any(worklogs_->Check(*Send(ada, cut))->findings, FindingKind::kSuspicious));
}

TEST_F(WorklogsTest, ACopyShowsOnBothSides) {
  MatchBuilder builder = LostMatch();
  const auto one = Send(Student("ada"), builder), other = Send(Student("bob"), builder);
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->id, other->id);
  for (const auto& each : {*one, *other})
    EXPECT_TRUE(Any(worklogs_->Check(each)->findings, FindingKind::kSuspicious));
}

TEST_F(WorklogsTest, QuotaAndDeadlineCountWhenItIsThere) {
  const Account ada = Student("ada");
  MatchBuilder builder = LostMatch();
  for (int i = 0; i < 3; ++i) {
    builder.words().stuck.push_back({Player::kHand, "word"});
    ASSERT_TRUE(Send(ada, builder));
  }
  builder.words().stuck.push_back({Player::kHand, "word"});
  EXPECT_EQ(Send(ada, builder).error().status, 429);
  EXPECT_TRUE(Send(Student("bob"), builder));
  Pass(kDay_s);
  EXPECT_TRUE(Send(ada, builder));
  Pass(9 * kDay_s);
  EXPECT_EQ(Send(ada, builder).error().status, 403);
  // The clock is set back after the server saw the deadline.
  of_.closed_s = now_.utc_s;
  now_.utc_s -= 5 * kDay_s;
  EXPECT_EQ(Send(ada, builder).error().status, 403);
}

TEST_F(WorklogsTest, OthersSeeItAfterTheDeadline) {
  MatchBuilder builder = LostMatch();
  const Account ada = Student("ada"), bob = Student("bob");
  const Account stranger{99, "s", Role::kStudent, 8};
  const WorklogEntry entry = Send(ada, builder).value();
  EXPECT_TRUE(MaySeeWorklog(ada, entry, of_, now_.utc_s));
  EXPECT_FALSE(MaySeeWorklog(bob, entry, of_, now_.utc_s));
  EXPECT_TRUE(MaySeeWorklog({9, "m", Role::kMentor, 0}, entry, of_, now_.utc_s));
  EXPECT_TRUE(MaySeeWorklog(bob, entry, of_, of_.terms.deadline_s));
  EXPECT_FALSE(MaySeeWorklog(stranger, entry, of_, of_.terms.deadline_s));
}

}  // namespace
}  // namespace assay
