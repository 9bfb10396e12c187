#include "serve/grades.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "archive/sqlite_store.h"
#include "serve/class_testing.h"
#include "serve/serve_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;

class GradesTest : public ServeTest {
 protected:
  void OpenAgain() override {
    ServeTest::OpenAgain();
    store_ = SqliteStore::Open(place() + "/archive.sqlite").value();
    worklogs_.emplace(*database_, *store_, Tars());
    grades_.emplace(*database_, *worklogs_);
    accounts_.emplace(*database_);
  }
  Account Make(const std::string& name, Role role) {
    return accounts_->Make(name, role, of_.id, now_).value();
  }
  WorklogEntry Send(const Account& author, MatchBuilder& builder) {
    const std::vector<TarFile> files = FilesOf(builder);
    return worklogs_->Keep(author, of_, files, ReadUploadedWorklog(files).value(), now_).value();
  }
  static Marks Points(double depth) {
    Marks marks;
    marks.points["depth"] = depth;
    marks.note = "show v2's\nprofile";
    return marks;
  }

  static std::map<int64_t, MemberWork> Work(const Account& member) {
    FinalistRow fast, wrong;
    fast.final.problem = "softmax";
    fast.final.size = "tiny";
    wrong.final.problem = "gelu";
    fast.final.state = wrong.final.state = JobState::kDone;
    fast.final.verdict = wrong.final.verdict = "ab12";
    wrong.final.outcome = "wrong";
    fast.final_speedup = 1.5;
    fast.final_low = 1.4;
    fast.final_high = 1.6;
    return {{member.id, {4, 2, 1, {fast, wrong}}}};
  }

  Class of_{7, "key", {"kernels", 0, 100, 30, ""}, 0, 0, 0};
  std::unique_ptr<SqliteStore> store_;
  std::optional<Worklogs> worklogs_;
  std::optional<Grades> grades_;
  std::optional<Accounts> accounts_;
};

TEST_F(GradesTest, MarksSayWhoGaveThemAndWhen) {
  MatchBuilder builder = LostMatch();
  const Account mentor = Make("M. Entor", Role::kMentor);
  const WorklogEntry entry = Send(Make("ada", Role::kStudent), builder);
  const auto before = grades_->Graded(entry, of_).value();
  EXPECT_EQ(before.kept.revision, 0);
  EXPECT_GT(before.grade.mark, 0);
  const auto given = grades_->Give(entry, of_, Points(25), {0}, mentor, now_);
  ASSERT_TRUE(given) << given.error().why;
  OpenAgain();
  const auto graded = grades_->Graded(entry, of_).value();
  EXPECT_EQ(graded.kept.revision, 1);
  EXPECT_EQ(graded.kept.mentor, "M. Entor");
  EXPECT_EQ(graded.kept.marked_s, now_.utc_s);
  EXPECT_EQ(graded.kept.marks.note, "show v2's profile");
  EXPECT_FALSE(graded.grade.stale);
  for (const GradedBucket& bucket : graded.grade.buckets)
    if (bucket.key == "depth") {
      EXPECT_EQ(bucket.mark, 25);
    }
}

TEST_F(GradesTest, TwoMentorsDoNotOverwriteEachOther) {
  MatchBuilder builder = LostMatch();
  const Account one = Make("one", Role::kMentor), other = Make("other", Role::kMentor);
  const WorklogEntry entry = Send(Make("ada", Role::kStudent), builder);
  ASSERT_TRUE(grades_->Give(entry, of_, Points(25), {0}, one, now_));
  const auto refused = grades_->Give(entry, of_, Points(10), {0}, other, now_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 409);
  EXPECT_THAT(refused.error().why, HasSubstr("one marked this worklog"));
  EXPECT_TRUE(grades_->Give(entry, of_, Points(10), {1}, other, now_));
  const auto all = grades_->All(entry.id).value();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].mentor, "one");
  EXPECT_EQ(all[1].mentor, "other");
}

TEST_F(GradesTest, WhoIsNoMentorGivesNoMarks) {
  MatchBuilder builder = LostMatch();
  const Account ada = Make("ada", Role::kStudent);
  const WorklogEntry entry = Send(ada, builder);
  EXPECT_EQ(grades_->Give(entry, of_, Points(30), {0}, ada, now_).error().status, 403);
  const Account stranger{50, "s", Role::kMentor, 8};
  EXPECT_EQ(grades_->Give(entry, of_, Points(30), {0}, stranger, now_).error().status, 403);
  const Account mentor = Make("m", Role::kMentor);
  EXPECT_EQ(grades_->Give(entry, of_, Points(31), {0}, mentor, now_).error().status, 400);
  EXPECT_EQ(grades_->Last(entry.id)->revision, 0);
}

TEST_F(GradesTest, HonestyIsLiftedForTheUploadThatWasMarked) {
  const Account mentor = Make("m", Role::kMentor), ada = Make("ada", Role::kStudent);
  MatchBuilder whole = LostMatch(), cut = LostMatch();
  whole.Measure(Player::kHand, "v4", "a slow one, at 3 us", SpeedVerdict("aaaaaaaaaaa4", 0.1));
  Send(ada, whole);
  const auto honesty = [&](const WorklogEntry& entry) {
    const GradedWorklog graded = grades_->Graded(entry, of_).value();
    for (const GradedBucket& bucket : graded.grade.buckets)
      if (bucket.key == "honesty") return bucket.mark;
    return -1.0;
  };
  const WorklogEntry entry = Send(ada, cut);
  EXPECT_EQ(honesty(entry), 0);
  Marks marks;
  marks.points["honesty"] = 10;
  marks.lifted = "v4 was my demonstration";
  // A mentor had opened the first upload: marks and lifting counted for one that nobody had seen.
  EXPECT_EQ(grades_->Give(entry, of_, marks, {0, 1}, mentor, now_).error().status, 409);
  ASSERT_TRUE(grades_->Give(entry, of_, marks, {0, 2}, mentor, now_));
  EXPECT_EQ(honesty(entry), 10);
  cut.words().stuck.push_back({Player::kHand, "more"});
  const WorklogEntry later = Send(ada, cut);
  EXPECT_EQ(honesty(later), 0);
  EXPECT_FALSE(grades_->Graded(later, of_)->complete);
}

TEST_F(GradesTest, TheSheetHasALineForEachStudent) {
  MatchBuilder builder = LostMatch();
  const Account ada = Make("=ada", Role::kStudent), bob = Make("bob, \"b\"", Role::kStudent),
                mentor = Make("m", Role::kMentor);
  builder.words().author = "Ada";
  const WorklogEntry entry = Send(ada, builder);
  const auto graded = grades_->Give(entry, of_, Points(25), {0}, mentor, now_).value();
  const std::vector<Account> members = {ada, bob, mentor};
  const std::string csv =
      ClassSheet(std::vector<GradedWorklog>{graded}, members, RubricOf(of_).value(), Work(bob));
  EXPECT_THAT(csv, HasSubstr("student,role,uploads,sent,mentor,marked,folder,worklog,author"));
  EXPECT_THAT(csv, HasSubstr("\n'=ada,student,1,2027-01-15T08:00:00Z,m,2027-01-15T08:00:00Z,"
                             "worklogs/1,0123456789ab,Ada,softmax,"));
  EXPECT_THAT(csv, HasSubstr("\n\"bob, \"\"b\"\"\",student,0,"));
  EXPECT_THAT(csv, HasSubstr(",jobs,problems_correct,problems_faster,finals\n"));
  EXPECT_THAT(csv, HasSubstr(",4,2,1,\"softmax tiny 1.50x [1.40x, 1.60x]; gelu wrong\"\n"));
  std::set<long> columns;
  for (size_t at = 0, end; (end = csv.find('\n', at)) != std::string::npos; at = end + 1) {
    bool quoted = false;
    long count = 1;
    for (const char c : csv.substr(at, end - at)) {
      if (c == '"') quoted = !quoted;
      if (c == ',' && !quoted) ++count;
    }
    columns.insert(count);
  }
  EXPECT_EQ(columns.size(), 1U);
}

}  // namespace
}  // namespace assay
