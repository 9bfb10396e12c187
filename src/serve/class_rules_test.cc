#include "serve/class_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::HasSubstr;

constexpr int64_t kNow = 1'800'000'000;

Class ClassUntil(int64_t deadline_s) {
  Class of;
  of.id = 3;
  of.terms.name = "kernels";
  of.terms.deadline_s = deadline_s;
  return of;
}

Account Member(int64_t id, Role role, int64_t class_id) { return {id, "a", role, class_id}; }

TEST(ClassRules, TermsAreChecked) {
  ClassTerms terms{"kernels", kNow + 60, 10, 5, ""};
  EXPECT_TRUE(CheckClassTerms(terms, kNow));
  EXPECT_FALSE(CheckClassTerms(terms, kNow + 60));
  for (const std::string& name : {std::string(), std::string("a\nb"), std::string("a\x1b[31m"),
                                  std::string("\xff"), std::string(101, 'x')}) {
    ClassTerms other = terms;
    other.name = name;
    EXPECT_FALSE(CheckClassTerms(other, kNow)) << name;
  }
  terms.jobs_a_day = 0;
  EXPECT_FALSE(CheckClassTerms(terms, kNow));
  terms.jobs_a_day = 1;
  terms.rubric = "schema = \"assay.rubric/1\"\n";
  EXPECT_THAT(CheckClassTerms(terms, kNow).error().message, HasSubstr("[[bucket]]"));
}

TEST(ClassRules, ADeadlineThatPassedStaysPassed) {
  Class of = ClassUntil(kNow);
  EXPECT_FALSE(IsOver(of, kNow - 1));
  EXPECT_TRUE(IsOver(of, kNow));
  of.closed_s = kNow;
  EXPECT_TRUE(IsOver(of, kNow - 1'000'000));
  EXPECT_FALSE(IsOver(ClassUntil(0), kNow));
}

TEST(ClassRules, CodeOfOthersIsHiddenUntilTheDeadline) {
  const Class of = ClassUntil(kNow);
  const Account author = Member(1, Role::kStudent, 3), other = Member(2, Role::kStudent, 3),
                mentor = Member(4, Role::kMentor, 3), server_mentor = Member(5, Role::kMentor, 0),
                stranger = Member(6, Role::kMentor, 9), nobody;
  const auto sees = [&](const Account& viewer, int64_t now_s) {
    return MaySeeSource(viewer, author, &of, now_s);
  };
  EXPECT_TRUE(sees(author, kNow - 1));
  EXPECT_TRUE(sees(mentor, kNow - 1));
  EXPECT_TRUE(sees(server_mentor, kNow - 1));
  EXPECT_FALSE(sees(other, kNow - 1));
  EXPECT_FALSE(sees(stranger, kNow - 1));
  EXPECT_FALSE(sees(nobody, kNow - 1));
  EXPECT_TRUE(sees(other, kNow));
  // Without an id nobody is the author.
  EXPECT_FALSE(MaySeeSource(nobody, Account(), &of, kNow - 1));
  EXPECT_TRUE(MaySeeSource(other, author, nullptr, kNow));
}

TEST(ClassRules, MentorsManageTheirOwnClass) {
  const Class of = ClassUntil(0);
  EXPECT_TRUE(MayManage(Member(1, Role::kMentor, 0), of));
  EXPECT_TRUE(MayManage(Member(1, Role::kMentor, 3), of));
  EXPECT_FALSE(MayManage(Member(1, Role::kMentor, 4), of));
  EXPECT_FALSE(MayManage(Member(1, Role::kStudent, 3), of));
  EXPECT_FALSE(MayManage(Member(1, Role::kMachine, 3), of));
  EXPECT_FALSE(IsMember(Member(1, Role::kStudent, 0), of));
}

TEST(ClassRules, AQuotaCountsTheLastDay) {
  const Class of = ClassUntil(0);
  std::vector<int64_t> sent = {kNow - kDay_s - 1, kNow - kDay_s + 600, kNow - 10};
  EXPECT_FALSE(RefuseToTake(of, sent, 3, "worklog", kNow));
  const auto refusal = RefuseToTake(of, sent, 2, "worklog", kNow);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 429);
  EXPECT_EQ(refusal->retry_after_s, 600);
  EXPECT_THAT(refusal->why, HasSubstr("10 min"));
  // The clock was set back: later times count, and the wait is bounded.
  sent = {kNow + 30 * kDay_s, kNow + 31 * kDay_s};
  const auto back = RefuseToTake(of, sent, 2, "worklog", kNow);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->retry_after_s, kDay_s);
}

TEST(ClassRules, AfterTheDeadlineNothingIsTaken) {
  const auto refusal = RefuseToTake(ClassUntil(kNow), {}, 5, "worklog", kNow);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 403);
  EXPECT_THAT(refusal->why, HasSubstr("deadline of kernels is over"));
}

TEST(ClassRules, InvitationsEnd) {
  Invitation invitation;
  invitation.ends_s = kNow;
  EXPECT_FALSE(RefuseInvitation(invitation, kNow - 1));
  EXPECT_THAT(RefuseInvitation(invitation, kNow)->why, HasSubstr("is over"));
  invitation.used = 1;
  EXPECT_THAT(RefuseInvitation(invitation, kNow - 1)->why, HasSubstr("used up"));
  invitation.revoked = true;
  EXPECT_EQ(RefuseInvitation(invitation, kNow - 1)->status, 410);
}

TEST(ClassRules, AFinalistIsTheSurestOfAnAccountAndBoard) {
  const std::vector<Contender> contenders = {
      {1, 10, "softmax", "a", 1.5}, {2, 10, "softmax", "b", 1.9}, {3, 10, "softmax", "c", 1.9},
      {4, 10, "gelu", "d", 0.4},    {5, 11, "softmax", "e", 1.2},
  };
  const auto finalists = Finalists(contenders);
  ASSERT_EQ(finalists.size(), 3U);
  EXPECT_EQ(finalists[0].verdict, "d");
  EXPECT_EQ(finalists[1].verdict, "b");
  EXPECT_EQ(finalists[2].verdict, "e");
  EXPECT_TRUE(Finalists({}).empty());
}

}  // namespace
}  // namespace assay
