#include "serve/leases.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "serve/jobs_testing.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LeasesTest : public JobsTest {};

TEST_F(LeasesTest, ARunnerTakesItsOwnersJobsUnlessItIsPromoted) {
  const Account ann = Somebody("ann"), ben = Somebody("ben");
  const int64_t of_ann = Submit(ann), of_ben = Submit(ben), of_gpu = Submit(ben, "b.cu");
  KnownRunner facts;
  facts.name = "desk";
  facts.device = "cpu";
  KnownRunner own = leases_->Meet(ben, facts, false, now_).value();
  EXPECT_EQ(leases_->Take(own, now_).value()->job.id, of_ben);
  EXPECT_FALSE(leases_->Take(own, now_).value());
  ASSERT_TRUE(leases_->Promote(own.id, true, now_).value());
  own = leases_->Meet(ben, facts, false, now_).value();
  EXPECT_TRUE(own.promoted);
  EXPECT_EQ(leases_->Take(own, now_).value()->job.id, of_ann);
  EXPECT_FALSE(leases_->Take(own, now_).value()) << "of_gpu needs a GPU";
  EXPECT_EQ(leases_->Take(ServersRunner("cuda:0"), now_).value()->job.id, of_gpu);
  EXPECT_EQ(leases_->Runners(now_)->size(), 2u);
  EXPECT_FALSE(leases_->Promote(99, true, now_).value());
}

// A student's promoted runner judged the student's jobs and final: 60x, first, unmarked.
TEST_F(LeasesTest, APromotedRunnerTakesNoJobOfItsOwners) {
  const Account ben = Somebody("ben");
  const int64_t of_ben = Submit(ben);
  NewJob asked = Ask(ben);
  asked.kind = JobKind::kFinalist;
  const int64_t final_job = jobs().Submit(asked, now_).value().job.id;
  KnownRunner facts;
  facts.name = "desk";
  facts.device = "cpu";
  const KnownRunner desk = leases_->Meet(ben, facts, false, now_).value();
  ASSERT_TRUE(leases_->Promote(desk.id, true, now_).value());
  EXPECT_FALSE(leases_->Take(desk, now_).value());
  EXPECT_TRUE(leases_->WaitsForNobody(of_ben, now_).value());
  EXPECT_TRUE(leases_->WaitsForNobody(final_job, now_).value());
  const Account mentor = Somebody("head", Role::kMentor);
  const int64_t of_mentor = Submit(mentor);
  const KnownRunner head = leases_->Meet(mentor, facts, false, now_).value();
  ASSERT_TRUE(leases_->Promote(head.id, true, now_).value());
  EXPECT_EQ(leases_->Take(head, now_).value()->job.id, of_ben);
  EXPECT_EQ(leases_->Take(head, now_).value()->job.id, of_mentor) << "a mentor manages the server";
  EXPECT_EQ(leases_->Take(head, now_).value()->job.id, final_job);
}

// A student's own runner took the student's final, and made a speedup up.
TEST_F(LeasesTest, AnOwnRunnerTakesNoFinalAndNoSpotCheck) {
  const Account ben = Somebody("ben");
  NewJob asked = Ask(ben);
  asked.kind = JobKind::kFinalist;
  const int64_t final_job = jobs().Submit(asked, now_).value().job.id;
  asked.kind = JobKind::kSpotCheck;
  const int64_t check = jobs().Submit(asked, now_).value().job.id;
  KnownRunner facts;
  facts.name = "desk";
  facts.device = "cpu";
  const KnownRunner own = leases_->Meet(ben, facts, false, now_).value();
  EXPECT_FALSE(leases_->Take(own, now_).value());
  const int64_t judged = Submit(ben);
  const auto taken = leases_->Take(own, now_).value();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->job.id, judged);
  EXPECT_TRUE(taken->job.own_runner);
  // A promotion that comes later does not make the verdict one that counts.
  ASSERT_TRUE(leases_->Promote(own.id, true, now_).value());
  ASSERT_TRUE(leases_->EndWithVerdict(judged, taken->lease, "{}", "v", "faster", now_));
  EXPECT_TRUE(jobs().Find(judged).value()->own_runner);
  EXPECT_EQ(Take(), final_job);
  EXPECT_FALSE(taken_->job.own_runner);
  EXPECT_EQ(Take(), check);
}

TEST_F(LeasesTest, ARunnerThatIsPromotedNoMoreLosesItsJob) {
  const int64_t id = Submit(Somebody("ann"));
  const Account ben = Somebody("ben");
  KnownRunner facts;
  facts.name = "desk";
  facts.device = "cpu";
  const KnownRunner desk = leases_->Meet(ben, facts, false, now_).value();
  ASSERT_TRUE(leases_->Promote(desk.id, true, now_).value());
  const auto taken = leases_->Take(desk, now_).value();
  ASSERT_TRUE(taken);
  ASSERT_TRUE(leases_->Promote(desk.id, false, now_).value());
  EXPECT_EQ(StateOf(id), JobState::kQueued);
  EXPECT_EQ(leases_->EndWithVerdict(id, taken->lease, "{}", "v", "faster", now_).value(),
            Ending::kNotCounted);
  EXPECT_EQ(jobs().Find(id).value()->attempts, 0);
}

TEST_F(LeasesTest, WhatTheServerAsksForCostsItsAuthorNothing) {
  const Account ann = Somebody("ann");
  const QueueLimits limits{.queued_max = 10, .queued_by_account_max = 2, .made_a_day_max = 2};
  NewJob asked = Ask(ann);
  for (const JobKind kind : {JobKind::kFinalist, JobKind::kSpotCheck, JobKind::kSpotCheck}) {
    asked.kind = kind;
    EXPECT_EQ(jobs(limits).Submit(asked, now_)->result, Submission::kAccepted);
  }
  EXPECT_EQ(jobs().OfAccount(ann.id, now_)->unended, 0);
  EXPECT_EQ(jobs(limits).Submit(Ask(ann), now_)->result, Submission::kAccepted);
  EXPECT_EQ(jobs(limits).Submit(Ask(ann), now_)->result, Submission::kAccepted);
  EXPECT_EQ(jobs(limits).Submit(Ask(ann), now_)->result, Submission::kQuotaSpent);
}

TEST_F(LeasesTest, ARunnerAtWorkIsSeen) {
  const int64_t id = Submit(Somebody("ann"));
  ASSERT_EQ(Take(), id);
  const std::string before = leases_->Runners(now_)->front().seen;
  Pass(30);
  EXPECT_TRUE(leases_->Renew(id, taken_->lease, "", now_).value());
  EXPECT_GT(leases_->Runners(now_)->front().seen, before);
}

// `softmax --size large` came back to the one runner three times, and stopped it.
TEST_F(LeasesTest, ASizeThatDoesNotFitEndsItsJobWhereNoOtherRunnerIs) {
  const Account ann = Somebody("ann");
  const int64_t first = Submit(ann), second = Submit(ann, "b.py");
  ASSERT_EQ(Take(), first);
  EXPECT_THAT(leases_->RefusedByAll(now_).value(), IsEmpty());
  EXPECT_EQ(leases_->EndWithError(first, taken_->lease, {"unjudged", "500 GB"}, now_).value(),
            Ending::kCounted);
  EXPECT_EQ(StateOf(first), JobState::kFailed);
  EXPECT_EQ(jobs().Find(first).value()->failure, "500 GB");
  EXPECT_THAT(leases_->RefusedByAll(now_).value(), ElementsAre(Leases::ProblemSize{"softmax", ""}));
  // The next one at this size is tried, since memory comes and goes.
  ASSERT_EQ(Take(), second);
  // A module that a Python candidate lacks says nothing of the size.
  EXPECT_EQ(leases_->EndWithError(second, taken_->lease, {"unjudged", "triton"}, now_).value(),
            Ending::kCounted);
  Pass(25 * 3600);
  ServersRunner();
  EXPECT_THAT(leases_->RefusedByAll(now_).value(), IsEmpty());
}

TEST_F(LeasesTest, ASizeThatDoesNotFitGoesToARunnerThatHasNotRefusedIt) {
  const int64_t id = Submit(Somebody("ann"));
  KnownRunner facts;
  facts.name = "large";
  facts.device = "cpu";
  const Account server = Accounts(*database_).ServerAccount(now_).value();
  const KnownRunner large = leases_->Meet(server, facts, true, now_).value();
  ASSERT_EQ(Take(), id);
  EXPECT_EQ(leases_->EndWithError(id, taken_->lease, {"unjudged", "500 GB"}, now_).value(),
            Ending::kRequeued);
  EXPECT_EQ(Take(), 0) << "the other one is next";
  EXPECT_THAT(leases_->RefusedByAll(now_).value(), IsEmpty());
  const auto taken = leases_->Take(large, now_).value();
  ASSERT_TRUE(taken);
  EXPECT_EQ(leases_->EndWithError(id, taken->lease, {"unjudged", "500 GB"}, now_).value(),
            Ending::kCounted);
  EXPECT_EQ(StateOf(id), JobState::kFailed);
  EXPECT_EQ(leases_->RefusedByAll(now_)->size(), 1u);
}

// Jobs that were cancelled at once filled the disk with sources, as did those beyond the quota.
TEST_F(LeasesTest, WhatIsRefusedIsNotKeptAndCancellingHasAnEnd) {
  const Account ann = Somebody("ann");
  const QueueLimits limits{.queued_max = 10, .queued_by_account_max = 5, .made_a_day_max = 2};
  int kept = 0;
  const auto submit = [&](const std::string& key = "") {
    NewJob asked = Ask(ann);
    asked.key = key;
    const auto keep = [&]() -> Result<void> {
      ++kept;
      return {};
    };
    return jobs(limits).Submit(asked, limits, now_, keep).value();
  };
  EXPECT_EQ(submit("once").result, Submission::kAccepted);
  EXPECT_EQ(submit("once").result, Submission::kKnown);
  EXPECT_EQ(kept, 1);
  for (int i = 1; i < 8; ++i) {
    const Submitted sent = submit();
    ASSERT_EQ(sent.result, Submission::kAccepted) << i;
    ASSERT_TRUE(jobs().Cancel(sent.job.id, now_).value());
  }
  EXPECT_EQ(submit().result, Submission::kQuotaSpent);
  EXPECT_EQ(kept, 8);
}

TEST_F(LeasesTest, AnOwnRunnerGivesAJobBackThriceAtMost) {
  const Account ben = Somebody("ben");
  const int64_t id = Submit(ben);
  KnownRunner facts;
  facts.name = "desk";
  facts.device = "cpu";
  const KnownRunner own = leases_->Meet(ben, facts, false, now_).value();
  for (int i = 0; i < 3; ++i) {
    const auto taken = leases_->Take(own, now_).value();
    ASSERT_TRUE(taken) << i;
    ASSERT_TRUE(leases_->EndWithError(id, taken->lease, {"interrupted", "back"}, now_));
  }
  EXPECT_EQ(StateOf(id), JobState::kFailed);
}

// One promoted runner leased all jobs of the queue at once.
TEST_F(LeasesTest, ARunnerHasFewJobsAtATimeAndAnAccountFewRunners) {
  const Account ben = Somebody("ben"), ann = Somebody("ann");
  for (int i = 0; i < 6; ++i) Submit(ann);
  KnownRunner facts;
  facts.name = "desk";
  facts.device = "cpu";
  const KnownRunner greedy = leases_->Meet(ben, facts, true, now_).value();
  std::vector<LeasedJob> held;
  while (auto taken = leases_->Take(greedy, now_).value()) held.push_back(*taken);
  EXPECT_EQ(held.size(), 4u);
  ASSERT_TRUE(leases_->EndWithVerdict(held[0].job.id, held[0].lease, "{}", "v", "tie", now_));
  EXPECT_TRUE(leases_->Take(greedy, now_).value());
  EXPECT_NE(Take(), 0) << "another one is not held up";
  for (int i = 1; i < 20; ++i) {
    facts.name = fmt::format("desk {}", i);
    ASSERT_TRUE(leases_->Meet(ben, facts, false, now_)) << i;
  }
  facts.name = "one more";
  EXPECT_FALSE(leases_->Meet(ben, facts, false, now_));
  facts.name = "desk 7";
  EXPECT_TRUE(leases_->Meet(ben, facts, false, now_));
}

// A class waited for ever: 'It is next.', and no runner took everybody's jobs.
TEST_F(LeasesTest, AJobThatNoRunnerTakesIsKnown) {
  const Account ann = Somebody("ann"), ben = Somebody("ben");
  const int64_t of_ann = Submit(ann), of_ben = Submit(ben);
  EXPECT_EQ(leases_->WaitingForNobody(now_).value(), 2);
  KnownRunner facts;
  facts.name = "desk";
  facts.device = "cpu";
  const KnownRunner desk = leases_->Meet(ben, facts, false, now_).value();
  EXPECT_TRUE(leases_->WaitsForNobody(of_ann, now_).value());
  EXPECT_FALSE(leases_->WaitsForNobody(of_ben, now_).value());
  ASSERT_TRUE(leases_->Promote(desk.id, true, now_).value());
  EXPECT_FALSE(leases_->WaitsForNobody(of_ann, now_).value());
  EXPECT_TRUE(leases_->WaitsForNobody(of_ben, now_).value()) << "it is promoted, and ben's";
  EXPECT_TRUE(leases_->Runners(now_)->front().is_there);
  Pass(kRunnerIsThereS + 1);
  EXPECT_FALSE(leases_->Runners(now_)->front().is_there);
  EXPECT_EQ(leases_->WaitingForNobody(now_).value(), 2);
}

}  // namespace
}  // namespace assay
