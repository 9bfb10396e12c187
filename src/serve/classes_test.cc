#include "serve/classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/jobs.h"
#include "serve/leases.h"
#include "serve/serve_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;

class ClassesTest : public ServeTest {
 protected:
  void OpenAgain() override {
    ServeTest::OpenAgain();
    accounts_.emplace(*database_);
    classes_.emplace(*database_, *accounts_);
  }
  Class Made(int64_t lasts_s = 7 * kDay_s) {
    return classes_->Make({"kernels", now_.utc_s + lasts_s, 3, 2, ""}, now_).value();
  }

  std::optional<Accounts> accounts_;
  std::optional<Classes> classes_;
};

TEST_F(ClassesTest, AClassIsFoundAgain) {
  const Class made = Made();
  OpenAgain();
  const auto found = classes_->Find(made.id).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->terms.name, "kernels");
  EXPECT_EQ(found->terms.jobs_a_day, 3);
  EXPECT_EQ(found->key, made.key);
  EXPECT_EQ(classes_->FindByKey(made.key).value()->id, made.id);
  EXPECT_FALSE(classes_->Find(made.id + 1).value());
}

TEST_F(ClassesTest, AnInvitationMakesAsManyAccountsAsItSays) {
  const Class made = Made();
  const auto invited = classes_->Invite(made, {Role::kStudent, 2, kDay_s, ""}, now_).value();
  EXPECT_EQ(invited.code.size(), 32U);
  const auto ada = classes_->Join(invited.code, "ada", now_);
  ASSERT_TRUE(ada) << ada.error().why;
  EXPECT_EQ(ada->account.class_id, made.id);
  EXPECT_EQ(accounts_->OfAccess(ada->token, now_).value()->name, "ada");
  // A name that is taken uses nothing up.
  EXPECT_EQ(classes_->Join(invited.code, "Ada", now_).error().status, 409);
  EXPECT_EQ(classes_->Join(invited.code, "", now_).error().status, 400);
  EXPECT_TRUE(classes_->Join(invited.code, "bob", now_));
  EXPECT_EQ(classes_->Join(invited.code, "eve", now_).error().status, 410);
  EXPECT_FALSE(accounts_->FindByName("eve").value());
  EXPECT_EQ(classes_->Members(made.id)->size(), 2U);
}

TEST_F(ClassesTest, TheDatabaseHasNoCode) {
  const auto invited = classes_->Invite(Made(), {}, now_).value();
  const auto text = ReadFile(place() + "/serve.sqlite-wal", 64 << 20).value() +
                    ReadFile(place() + "/serve.sqlite", 64 << 20).value();
  EXPECT_EQ(text.find(invited.code), std::string::npos);
}

TEST_F(ClassesTest, InvitationsEndByTimeAndByHand) {
  const Class made = Made();
  const auto invited = classes_->Invite(made, {Role::kStudent, 9, kDay_s, ""}, now_).value();
  EXPECT_TRUE(classes_->OfCode(invited.code, now_));
  EXPECT_EQ(classes_->OfCode("0" + invited.code.substr(1), now_).has_value(),
            invited.code[0] == '0');
  EXPECT_EQ(classes_->OfCode("", now_).error().status, 404);
  EXPECT_TRUE(classes_->Revoke(made, invited.invitation.id));
  EXPECT_THAT(classes_->Join(invited.code, "ada", now_).error().why, HasSubstr("taken back"));
  const auto later = classes_->Invite(made, {Role::kStudent, 9, kDay_s, ""}, now_).value();
  Pass(kDay_s);
  EXPECT_THAT(classes_->Join(later.code, "ada", now_).error().why, HasSubstr("is over"));
  EXPECT_EQ(classes_->Revoke(made, 999).error().status, 404);
  EXPECT_FALSE(classes_->Invite(made, {Role::kStudent, 0, kDay_s, ""}, now_));
  EXPECT_FALSE(classes_->Invite(made, {Role::kStudent, 1, 1, ""}, now_));
}

TEST_F(ClassesTest, AMemberWhoLostTheTokenGetsAnother) {
  const Class made = Made();
  const auto first = classes_->Invite(made, {}, now_).value();
  const auto ada = classes_->Join(first.code, "ada", now_).value();
  const auto again = classes_->Invite(made, {Role::kStudent, 5, kDay_s, "ada"}, now_).value();
  const auto back = classes_->Join(again.code, "", now_);
  ASSERT_TRUE(back) << back.error().why;
  EXPECT_EQ(back->account.id, ada.account.id);
  EXPECT_FALSE(accounts_->OfAccess(ada.token, now_).value());
  EXPECT_TRUE(accounts_->OfAccess(back->token, now_).value());
  EXPECT_FALSE(classes_->Join(again.code, "", now_));
  Somebody("stranger");
  EXPECT_EQ(classes_->Invite(made, {Role::kStudent, 1, kDay_s, "stranger"}, now_).error().status,
            404);
}

// A mentor of the class took a member over, and with it a runner that had been promoted.
TEST_F(ClassesTest, ANewTokenEndsPromotions) {
  const Class made = Made();
  const auto invited = classes_->Invite(made, {Role::kStudent, 1, kDay_s, ""}, now_).value();
  const Account cyd = classes_->Join(invited.code, "cyd", now_)->account;
  Leases leases(*database_, {});
  Jobs jobs(*database_, {});
  KnownRunner facts;
  facts.name = "desk";
  facts.device = "cpu";
  const KnownRunner desk = leases.Meet(cyd, facts, false, now_).value();
  ASSERT_TRUE(leases.Promote(desk.id, true, now_).value());
  NewJob asked;
  asked.author = Somebody("ann");
  asked.problem = "softmax";
  asked.name = "a.cpp";
  asked.source_hash = "source";
  const int64_t job = jobs.Submit(asked, now_)->job.id;
  ASSERT_TRUE(leases.Take(desk, now_).value());
  const auto again = classes_->Invite(made, {Role::kStudent, 1, kDay_s, "cyd"}, now_).value();
  ASSERT_TRUE(classes_->Join(again.code, "", now_));
  EXPECT_FALSE(leases.Runners(now_)->front().promoted);
  EXPECT_EQ(jobs.Find(job).value()->state, JobState::kQueued);
  EXPECT_FALSE(leases.Take(desk, now_).value());
}

TEST_F(ClassesTest, ADeadlineMovesUntilItHasPassed) {
  const Class made = Made(100);
  ClassTerms later = made.terms;
  later.deadline_s += 100;
  const auto moved = classes_->Change(made, later, now_);
  ASSERT_TRUE(moved) << moved.error().why;
  Pass(200);
  ClassTerms again = later;
  again.deadline_s += 1000;
  EXPECT_EQ(classes_->Change(*moved, again, now_).error().status, 409);
  later.jobs_a_day = 7;
  EXPECT_EQ(classes_->Change(*moved, later, now_)->terms.jobs_a_day, 7);
}

TEST_F(ClassesTest, AClassThatIsClosedStaysClosed) {
  const Class made = classes_->Make({"kernels", 0, 3, 2, ""}, now_).value();
  const auto closed = classes_->Close(made, now_);
  ASSERT_TRUE(closed) << closed.error().why;
  EXPECT_TRUE(IsOver(*classes_->Find(made.id).value(), now_.utc_s));
  EXPECT_EQ(classes_->Close(*closed, now_).error().status, 409);
  ClassTerms later = closed->terms;
  later.deadline_s += 1000;
  EXPECT_EQ(classes_->Change(*closed, later, now_).error().status, 409);
}

TEST_F(ClassesTest, AMembersJobsHaveTheLimitsOfTheClass) {
  const Class made = Made(100);
  const Account member{1, "ada", Role::kStudent, made.id}, mentor{2, "m", Role::kMentor, made.id},
      outside{3, "o", Role::kStudent, 0};
  EXPECT_EQ(classes_->JobLimits(member, {}, now_)->made_a_day_max, 3);
  EXPECT_EQ(classes_->JobLimits(outside, {}, now_)->made_a_day_max, 500);
  Pass(100);
  EXPECT_EQ(classes_->JobLimits(member, {}, now_).error().status, 403);
  EXPECT_TRUE(classes_->JobLimits(mentor, {}, now_));
}

}  // namespace
}  // namespace assay
