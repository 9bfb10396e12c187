#include "serve/finals.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/leases.h"
#include "serve/serve_testing.h"

namespace assay {
namespace {

class FinalsTest : public ServeTest {
 protected:
  void OpenAgain() override {
    ServeTest::OpenAgain();
    accounts_.emplace(*database_);
    classes_.emplace(*database_, *accounts_);
    jobs_.emplace(*database_, limits_);
    finals_.emplace(*database_, *classes_, *jobs_);
  }
  Class Made() { return classes_->Make({"kernels", now_.utc_s + 1000, 3, 2, ""}, now_).value(); }
  Account Member(const Class& of, const std::string& name, Role role = Role::kStudent) {
    return accounts_->Make(name, role, of.id, now_).value();
  }
  int64_t Submit(const Account& author, const std::string& problem) {
    NewJob asked;
    asked.author = author;
    asked.problem = problem;
    asked.size = "tiny";
    asked.name = "a.cpp";
    asked.source_hash = "hash" + std::to_string(++sources_);
    return jobs_->Submit(asked, now_)->job.id;
  }
  void Run(const std::string& sql) {
    SqliteStatement statement = database_->Prepare(sql).value();
    ASSERT_TRUE(statement.Step()) << sql;
  }
  // As a runner and the board's projection would.
  void Judge(int64_t job, double speedup, const std::string& outcome = "faster",
             bool own_runner = false) {
    Run(
        fmt::format("UPDATE jobs SET state = 'done', ended_s = 1, outcome = '{0}', "
                    "verdict = 'v{1}' WHERE id = {1} RETURNING 1",
                    outcome, job));
    Run(fmt::format(
        "INSERT INTO board SELECT {0}, id, verdict, problem, size, 'cpu', 'float32', 'native', '', "
        "'student', outcome, 3, 0, {1}, {1} * 0.9, {1} * 1.1, 0, 100, 0, '', source, '', {2}, '', "
        "0 FROM jobs WHERE id = {0} RETURNING 1",
        job, speedup, int{own_runner}));
  }
  std::vector<Job> Asked() {
    JobQuery query;
    query.state = JobState::kQueued;
    std::vector<Job> found = jobs_->List(query).value();
    std::erase_if(found, [](const Job& job) { return job.kind != JobKind::kFinalist; });
    return found;
  }

  QueueLimits limits_;
  int sources_ = 0;
  std::optional<Accounts> accounts_;
  std::optional<Classes> classes_;
  std::optional<Jobs> jobs_;
  std::optional<Finals> finals_;
};

TEST_F(FinalsTest, TheBestOfEachMemberAndBoardIsJudgedOnceMore) {
  const Class of = Made();
  const Account ada = Member(of, "ada"), model = Member(of, "model", Role::kMachine),
                mentor = Member(of, "m", Role::kMentor), outside = Somebody("outside");
  Judge(Submit(ada, "softmax"), 1.2);
  const int64_t best = Submit(ada, "softmax");
  Judge(best, 1.9);
  Judge(Submit(ada, "gelu"), 0.4, "slower");
  Judge(Submit(ada, "wrong"), 0, "wrong");
  Judge(Submit(model, "softmax"), 3);
  Judge(Submit(mentor, "softmax"), 9);
  Judge(Submit(outside, "softmax"), 9);
  EXPECT_EQ(finals_->Tend(now_).value(), 0);
  EXPECT_EQ(classes_->Find(of.id).value()->closed_s, 0);
  Pass(1000);
  EXPECT_EQ(finals_->Tend(now_).value(), 3);
  EXPECT_EQ(classes_->Find(of.id).value()->closed_s, now_.utc_s);
  const auto asked = Asked();
  ASSERT_EQ(asked.size(), 3U);
  const auto final_of_ada = std::find_if(asked.begin(), asked.end(), [&](const Job& job) {
    return job.author.id == ada.id && job.problem == "softmax";
  });
  ASSERT_NE(final_of_ada, asked.end());
  EXPECT_EQ(final_of_ada->source_hash, jobs_->Find(best).value()->source_hash);
  // Once is once, after a start, and with the clock set back.
  OpenAgain();
  EXPECT_EQ(finals_->Tend(now_).value(), 0);
  now_.utc_s -= 5000;
  EXPECT_EQ(finals_->Tend(now_).value(), 0);
  EXPECT_EQ(Asked().size(), 3U);
}

TEST_F(FinalsTest, TheyWaitForJobsThatCameBeforeTheDeadline) {
  const Class of = Made();
  const Account ada = Member(of, "ada");
  Judge(Submit(ada, "softmax"), 1.2);
  const int64_t late = Submit(ada, "softmax");
  Pass(1000);
  EXPECT_EQ(finals_->Tend(now_).value(), 0);
  EXPECT_NE(classes_->Find(of.id).value()->closed_s, 0);
  Judge(late, 2.5);
  EXPECT_EQ(finals_->Tend(now_).value(), 1);
  const auto rows = finals_->Of(of.id).value();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].best.id, late);
  EXPECT_DOUBLE_EQ(rows[0].best_speedup, 2.5);
  EXPECT_EQ(rows[0].final_speedup, 0);
  Judge(rows[0].final.id, 2.1);
  EXPECT_DOUBLE_EQ(finals_->Of(of.id)->front().final_speedup, 2.1);
}

// A job for a GPU, where no runner has one, delayed the finals of the whole class for ever.
TEST_F(FinalsTest, AJobThatNobodyTakesDelaysItsAuthorAlone) {
  const Class of = Made();
  const Account ada = Member(of, "ada"), bob = Member(of, "bob");
  Judge(Submit(ada, "softmax"), 1.2);
  Judge(Submit(bob, "softmax"), 1.3);
  const int64_t stuck = Submit(bob, "gelu");
  Pass(1000);
  EXPECT_EQ(finals_->Tend(now_).value(), 1);
  EXPECT_EQ(Asked().front().author.id, ada.id);
  const std::map<int64_t, std::string> awaited = {{bob.id, "bob"}};
  EXPECT_EQ(finals_->Awaited(of.id).value(), awaited);
  EXPECT_EQ(classes_->Find(of.id).value()->finals_s, 0);
  Run(fmt::format("UPDATE jobs SET state = 'cancelled', ended_s = 1 WHERE id = {} RETURNING 1",
                  stuck));
  EXPECT_EQ(finals_->Tend(now_).value(), 1);
  EXPECT_TRUE(finals_->Awaited(of.id)->empty());
  EXPECT_NE(classes_->Find(of.id).value()->finals_s, 0);
  EXPECT_EQ(Asked().size(), 2U);
}

TEST_F(FinalsTest, AFullQueueOnlyDelaysThem) {
  limits_.queued_max = 1;
  OpenAgain();
  const Class of = Made();
  const Account ada = Member(of, "ada"), bob = Member(of, "bob");
  Judge(Submit(ada, "softmax"), 1.2);
  Judge(Submit(bob, "softmax"), 1.3);
  Pass(1000);
  EXPECT_EQ(finals_->Tend(now_).value(), 1);
  EXPECT_EQ(finals_->Tend(now_).value(), 0);
  Judge(Asked().front().id, 1.1);
  EXPECT_EQ(finals_->Tend(now_).value(), 1);
  EXPECT_EQ(finals_->Tend(now_).value(), 0);
  EXPECT_EQ(finals_->Of(of.id)->size(), 2U);
}

TEST_F(FinalsTest, WhatAnOwnRunnerSaysIsInNoContention) {
  const Class of = Made();
  const Account ada = Member(of, "ada");
  Judge(Submit(ada, "softmax"), 97, "faster", true);
  const int64_t honest = Submit(ada, "softmax");
  Judge(honest, 1.2);
  Judge(Submit(ada, "gelu"), 97, "faster", true);
  Pass(1000);
  EXPECT_EQ(finals_->Tend(now_).value(), 1);
  ASSERT_EQ(Asked().size(), 1U);
  EXPECT_EQ(Asked().front().source_hash, jobs_->Find(honest).value()->source_hash);
}

// A member's own runner held the member's job, or gave it back again and again: the finals of the
// whole class waited for it.
TEST_F(FinalsTest, NoOwnRunnerDelaysThem) {
  const Class of = Made();
  const Account ada = Member(of, "ada");
  Judge(Submit(ada, "gelu"), 1.2);
  const int64_t held = Submit(ada, "softmax");
  Leases leases(*database_, {});
  KnownRunner facts;
  facts.name = "desk";
  facts.device = "cpu";
  const KnownRunner own = leases.Meet(ada, facts, false, now_).value();
  ASSERT_TRUE(leases.Take(own, now_).value());
  Pass(1000);
  EXPECT_EQ(finals_->Tend(now_).value(), 0);
  EXPECT_EQ(jobs_->Find(held).value()->state, JobState::kQueued);
  EXPECT_FALSE(leases.Take(own, now_).value()) << "after the deadline its verdicts are of no use";
  Judge(held, 1.3);
  EXPECT_EQ(finals_->Tend(now_).value(), 2);
}

// The server's key of a final could be guessed, and used for another request before.
TEST_F(FinalsTest, NoKeyOfAMembersStopsThem) {
  const Class of = Made();
  const Account ada = Member(of, "ada");
  const int64_t best = Submit(ada, "softmax");
  NewJob first;
  first.author = ada;
  first.problem = "gelu";
  first.name = "a.cpp";
  first.key = fmt::format("final of class {} job {}", of.id, best);
  Judge(jobs_->Submit(first, now_)->job.id, 0, "wrong");
  Judge(best, 1.2);
  Pass(1000);
  EXPECT_EQ(finals_->Tend(now_).value(), 1);
}

// A runner with another version of the problem's file failed a final, for good.
TEST_F(FinalsTest, AnotherRunnerOrAMentorAsksAgain) {
  const Class of = Made();
  Judge(Submit(Member(of, "ada"), "softmax"), 1.2);
  Pass(1000);
  ASSERT_EQ(finals_->Tend(now_).value(), 1);
  const int64_t final_job = Asked().front().id;
  Leases leases(*database_, {});
  KnownRunner facts;
  facts.name = "desk";
  facts.device = "cpu";
  const RunnerError outdated{"usage", "another version of the file"};
  const KnownRunner old = leases.Meet(Somebody("old"), facts, true, now_).value();
  const KnownRunner good = leases.Meet(Somebody("good"), facts, true, now_).value();
  auto leased = leases.Take(old, now_).value();
  ASSERT_TRUE(leased);
  EXPECT_EQ(leases.EndWithError(final_job, leased->lease, outdated, now_).value(),
            Ending::kRequeued);
  EXPECT_FALSE(leases.Take(old, now_).value()) << "another one is there that may do better";
  EXPECT_TRUE(finals_->AskAgain(of.id, now_)->empty());
  leased = leases.Take(good, now_).value();
  ASSERT_TRUE(leased);
  EXPECT_EQ(leases.EndWithError(final_job, leased->lease, outdated, now_).value(),
            Ending::kCounted);
  EXPECT_EQ(jobs_->Find(final_job).value()->state, JobState::kFailed);
  const auto again = finals_->AskAgain(of.id, now_).value();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(finals_->Of(of.id)->front().final.id, again.front());
  EXPECT_TRUE(finals_->AskAgain(of.id, now_)->empty());
  leased = leases.Take(good, now_).value();
  ASSERT_TRUE(leased);
  EXPECT_EQ(leased->job.id, again.front());
}

TEST_F(FinalsTest, AClassWithoutADeadlineHasNone) {
  const Class of = classes_->Make({"kernels", 0, 3, 2, ""}, now_).value();
  Judge(Submit(Member(of, "ada"), "softmax"), 1.2);
  Pass(100 * kDay_s);
  EXPECT_EQ(finals_->Tend(now_).value(), 0);
}

}  // namespace
}  // namespace assay
