#include "serve/jobs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "serve/jobs_testing.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
TEST_F(JobsTest, AnAcceptedJobIsThereAfterTheProcessEnded) {
  NewJob asked = Ask(Somebody("ann"));
  asked.set = {{"ROWS", "64"}};
  asked.size = "tiny";
  const Submitted submitted = jobs().Submit(asked, now_).value();
  EXPECT_EQ(submitted.result, Submission::kAccepted);
  OpenAgain();
  const Job job = *jobs().Find(submitted.job.id).value();
  EXPECT_EQ(job.state, JobState::kQueued);
  EXPECT_EQ(job.place, 1);
  EXPECT_EQ(job.author.name, "ann");
  EXPECT_EQ(job.set.at("ROWS"), "64");
  EXPECT_EQ(job.made, "2027-01-15T08:00:00Z");
  EXPECT_THAT(EventsOf(job.id), ElementsAre(R"({"event":"queued"})"));
}

TEST_F(JobsTest, OldestFirstAmongAccountsThatTakeTurns) {
  const Account ann = Somebody("ann"), ben = Somebody("ben"), cas = Somebody("cas");
  std::vector<int64_t> of_ann;
  for (int i = 0; i < 4; ++i) of_ann.push_back(Submit(ann));
  const int64_t of_ben = Submit(ben), of_cas = Submit(cas), second_of_ben = Submit(ben);
  EXPECT_EQ(jobs().Find(of_ben).value()->place, 2) << "beside the first of ann's";
  EXPECT_EQ(jobs().Find(of_ann[3]).value()->place, 7);
  EXPECT_EQ(Take(), of_ann[0]);
  EXPECT_EQ(Take(), of_ben);
  EXPECT_EQ(Take(), of_cas);
  EXPECT_EQ(Take(), of_ann[1]);
  EXPECT_EQ(Take(), second_of_ben);
  // Idle time is no credit: a newcomer comes next, but its second job waits for its turn.
  const Account dan = Somebody("dan");
  const int64_t of_dan = Submit(dan), second_of_dan = Submit(dan);
  EXPECT_EQ(Take(), of_dan);
  EXPECT_EQ(Take(), of_ann[2]);
  EXPECT_EQ(Take(), second_of_dan);
  EXPECT_EQ(Take(), of_ann[3]);
  EXPECT_EQ(Take(), 0);
}

TEST_F(JobsTest, ThirtyAtOnceKeepTheirOrder) {
  std::vector<int64_t> ids;
  for (int i = 0; i < 30; ++i) ids.push_back(Submit(Somebody(fmt::format("student {}", i))));
  for (int i = 0; i < 30; ++i)
    EXPECT_EQ(jobs().Find(ids[static_cast<size_t>(i)]).value()->place, i + 1);
  for (const int64_t id : ids) EXPECT_EQ(Take(), id);
}

TEST_F(JobsTest, TheSameKeyIsTheSameJob) {
  NewJob asked = Ask(Somebody("ann"));
  asked.key = "once";
  const Submitted first = jobs().Submit(asked, now_).value();
  const Submitted again = jobs().Submit(asked, now_).value();
  EXPECT_EQ(again.result, Submission::kKnown);
  EXPECT_EQ(again.job.id, first.job.id);
  asked.size = "large";
  EXPECT_EQ(jobs().Submit(asked, now_).value().result, Submission::kKeyReused);
  asked.author = Somebody("ben");
  EXPECT_EQ(jobs().Submit(asked, now_).value().result, Submission::kAccepted)
      << "a key is one's own";
}

TEST_F(JobsTest, AFullQueueAndSpentQuotasAreRefused) {
  const Account ann = Somebody("ann"), ben = Somebody("ben");
  const QueueLimits limits{.queued_max = 3, .queued_by_account_max = 2, .made_a_day_max = 3};
  const auto submit = [&](const Account& author) {
    return jobs(limits).Submit(Ask(author), now_).value();
  };
  submit(ann);
  submit(ann);
  EXPECT_EQ(submit(ann).result, Submission::kQuotaSpent);
  submit(ben);
  const Submitted full = submit(ben);
  EXPECT_EQ(full.result, Submission::kQueueFull);
  EXPECT_GT(full.retry_after_s, 0);
  EXPECT_THAT(full.why, HasSubstr("try again later"));
  const auto end_two = [&] {
    for (int i = 0; i < 2; ++i) {
      Take();
      ASSERT_TRUE(leases_->EndWithVerdict(taken_->job.id, taken_->lease, "{}", "v", "tie", now_));
    }
  };
  end_two();
  EXPECT_EQ(submit(ann).result, Submission::kAccepted);
  end_two();
  Pass(3600);
  EXPECT_EQ(submit(ann).result, Submission::kQuotaSpent) << "three a day";
  now_.utc_s -= 7200;
  EXPECT_EQ(submit(ann).result, Submission::kQuotaSpent) << "the clock was set back";
  Pass(26 * 3600);
  EXPECT_EQ(submit(ann).result, Submission::kAccepted);
}

TEST_F(JobsTest, AJobEndsOnceUnderItsLease) {
  const int64_t id = Submit(Somebody("ann"));
  ASSERT_EQ(Take(), id);
  EXPECT_EQ(leases_->EndWithVerdict(id, "another", "{}", "v1", "tie", now_).value(),
            Ending::kNotCounted);
  EXPECT_EQ(leases_->EndWithVerdict(id, "", "{}", "v1", "tie", now_).value(), Ending::kNotCounted);
  EXPECT_EQ(leases_->EndWithVerdict(id, taken_->lease, "{\"a\":1}", "v1", "tie", now_).value(),
            Ending::kCounted);
  // A reply that was lost: the runner asks again, also after the server was started again.
  EXPECT_EQ(leases_->EndWithVerdict(id, taken_->lease, "{}", "v2", "tie", now_).value(),
            Ending::kRepeated);
  OpenAgain();
  EXPECT_EQ(leases_->EndWithVerdict(id, taken_->lease, "{}", "v2", "tie", now_).value(),
            Ending::kRepeated);
  EXPECT_EQ(leases_->EndWithError(id, taken_->lease, {"usage", "no"}, now_).value(),
            Ending::kRepeated);
  EXPECT_FALSE(jobs().Cancel(id, now_).value());
  const Job job = *jobs().Find(id).value();
  EXPECT_EQ(job.state, JobState::kDone);
  EXPECT_EQ(job.verdict, "v1");
  EXPECT_EQ(job.outcome, "tie");
  ASSERT_EQ(leases_->NotArchived()->size(), 1u);
  EXPECT_EQ(leases_->NotArchived()->front().verdict, "{\"a\":1}");
  ASSERT_TRUE(leases_->Archived(id));
  EXPECT_THAT(leases_->NotArchived().value(), IsEmpty());
  EXPECT_FALSE(database_->Number(
      fmt::format("UPDATE jobs SET state = 'queued', ended_s = 0 WHERE id = {}", id)));
}

TEST_F(JobsTest, ASilentRunnersJobIsJudgedAgainAndItsResultDoesNotCount) {
  const int64_t id = Submit(Somebody("ann")), later = Submit(Somebody("ben"));
  ASSERT_EQ(Take(), id);
  const std::string old_lease = taken_->lease;
  Pass(50);
  EXPECT_TRUE(leases_->Renew(id, old_lease, R"({"event":"progress"})", now_).value());
  Pass(50);
  EXPECT_THAT(leases_->Expire(now_).value(), IsEmpty());
  Pass(11);
  EXPECT_THAT(leases_->Expire(now_).value(), ElementsAre(id));
  EXPECT_FALSE(leases_->Renew(id, old_lease, "", now_).value());
  EXPECT_EQ(jobs().Find(id).value()->place, 1) << "before " << later;
  ASSERT_EQ(Take(), id);
  EXPECT_EQ(leases_->EndWithVerdict(id, old_lease, "{}", "v1", "tie", now_).value(),
            Ending::kNotCounted);
  EXPECT_EQ(StateOf(id), JobState::kRunning);
  EXPECT_EQ(leases_->EndWithVerdict(id, taken_->lease, "{}", "v2", "tie", now_).value(),
            Ending::kCounted);
  EXPECT_EQ(jobs().Find(id).value()->attempts, 2);
}

TEST_F(JobsTest, AfterThreeAttemptsItFailsWithoutAVerdict) {
  const int64_t id = Submit(Somebody("ann"));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Take(), id);
    Pass(61);
    leases_->Expire(now_).value();
  }
  const Job job = *jobs().Find(id).value();
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_THAT(job.failure, HasSubstr("in 3 attempts; the last one: its runner fell silent"));
  EXPECT_EQ(job.verdict, "");
  EXPECT_THAT(EventsOf(id).back(), HasSubstr(R"("state":"failed")"));
  EXPECT_EQ(Take(), 0);
}

TEST_F(JobsTest, ARunnerThatNeverEndsLosesItsJob) {
  const int64_t id = Submit(Somebody("ann"));
  ASSERT_EQ(Take(), id);
  for (int i = 0; i < 30; ++i) {
    Pass(30);
    if (!leases_->Renew(id, taken_->lease, "", now_).value()) break;
  }
  EXPECT_FALSE(leases_->Renew(id, taken_->lease, "", now_).value());
  EXPECT_THAT(leases_->Expire(now_).value(), ElementsAre(id));
}

TEST_F(JobsTest, LeasesOutliveTheServerAndAClockThatIsSetBack) {
  const int64_t id = Submit(Somebody("ann"));
  ASSERT_EQ(Take(), id);
  OpenAgain();
  now_ = {now_.utc_s - 3600, 10};  // another boot, an hour before
  EXPECT_THAT(leases_->Expire(now_).value(), IsEmpty());
  Pass(59);
  EXPECT_THAT(leases_->Expire(now_).value(), IsEmpty());
  EXPECT_TRUE(leases_->Renew(id, taken_->lease, "", now_).value());
  Pass(61);
  EXPECT_THAT(leases_->Expire(now_).value(), ElementsAre(id));
}

TEST_F(JobsTest, ErrorsOfARunner) {
  const Account ann = Somebody("ann");
  const int64_t gives_back = Submit(ann), broken = Submit(ann);
  ASSERT_EQ(Take(), gives_back);
  EXPECT_EQ(
      leases_->EndWithError(gives_back, taken_->lease, {"interrupted", "Ctrl-C"}, now_).value(),
      Ending::kRequeued);
  EXPECT_EQ(jobs().Find(gives_back).value()->attempts, 0);
  ASSERT_EQ(Take(), gives_back);
  EXPECT_EQ(
      leases_->EndWithError(gives_back, taken_->lease, {"environment", "no disk"}, now_).value(),
      Ending::kRequeued);
  EXPECT_EQ(jobs().Find(gives_back).value()->attempts, 1);
  ASSERT_EQ(Take(), gives_back);
  ASSERT_EQ(Take(), broken);
  EXPECT_EQ(leases_->EndWithError(broken, taken_->lease, {"usage", "no such size"}, now_).value(),
            Ending::kCounted);
  EXPECT_EQ(jobs().Find(broken).value()->failure, "no such size");
}

TEST_F(JobsTest, ACancelledJobStopsItsRunner) {
  const int64_t id = Submit(Somebody("ann"));
  ASSERT_EQ(Take(), id);
  EXPECT_TRUE(jobs().Cancel(id, now_).value());
  EXPECT_FALSE(jobs().Cancel(id, now_).value());
  EXPECT_FALSE(leases_->Renew(id, taken_->lease, "", now_).value());
  EXPECT_EQ(leases_->EndWithVerdict(id, taken_->lease, "{}", "v", "tie", now_).value(),
            Ending::kNotCounted);
  EXPECT_EQ(StateOf(id), JobState::kCancelled);
}

TEST_F(JobsTest, ListsAreByAccountStateAndPage) {
  const Account ann = Somebody("ann"), ben = Somebody("ben");
  const int64_t first = Submit(ann), second = Submit(ben), third = Submit(ann);
  const auto ids = [&](const JobQuery& query) {
    std::vector<int64_t> found;
    const auto listed = jobs().List(query).value();
    for (const Job& job : listed) found.push_back(job.id);
    return found;
  };
  EXPECT_THAT(ids({}), ElementsAre(third, second, first));
  EXPECT_THAT(ids({.account = ann.id}), ElementsAre(third, first));
  EXPECT_THAT(ids({.before = third, .limit = 1}), ElementsAre(second));
  EXPECT_THAT(ids({.state = JobState::kQueued}), ElementsAre(first, second, third));
  EXPECT_EQ(jobs().Queue()->queued, 3);
}

TEST_F(JobsTest, EventsAreBounded) {
  const int64_t id = Submit(Somebody("ann"));
  Leases leases(*database_, LeaseLimits{.events_max = 5});
  const LeasedJob taken = *leases.Take(ServersRunner(), now_).value();
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(leases.Renew(id, taken.lease, R"({"event":"progress"})", now_).value());
  EXPECT_TRUE(leases.Renew(id, taken.lease, std::string(20'000, 'x'), now_).value());
  EXPECT_EQ(EventsOf(id).size(), 5u);
  EXPECT_EQ(leases.EndWithVerdict(id, taken.lease, "{}", "v", "tie", now_).value(),
            Ending::kCounted);
  const auto events = jobs().Events(id, 4, 100).value();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events.back().number, 6);
  EXPECT_THAT(events.back().body, HasSubstr(R"("verdict":"v")"));
}

}  // namespace
}  // namespace assay
