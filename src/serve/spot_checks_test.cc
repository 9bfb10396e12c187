#include "serve/spot_checks.h"

#include <gmock/gmock.h>

#include <limits>

#include "base/hash.h"
#include "model/sample_verdicts.h"
#include "model/verdict_json.h"
#include "serve/hall.h"
#include "serve/serve_testing.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Verdict WithSpeed(double low, double high, Outcome outcome = Outcome::kFaster) {
  Verdict verdict = SampleVerdict(outcome);
  BaselineResult& result = verdict.speed->baselines.at(verdict.speed->headline);
  result.ci_low = low;
  result.speedup = (low + high) / 2;
  result.certified_speedup = 0.97 * low;
  result.ci_high = high;
  return verdict;
}

TEST(CompareCheckedTest, IntervalsThatOverlapAgree) {
  const auto result = [](const Verdict& first, const Verdict& again) {
    return CompareChecked(first, again).result;
  };
  EXPECT_EQ(result(WithSpeed(1.2, 1.3), WithSpeed(1.25, 1.4)), CheckResult::kAgrees);
  EXPECT_EQ(result(WithSpeed(97, 98), WithSpeed(1.2, 1.3)), CheckResult::kDiffers);
  EXPECT_THAT(CompareChecked(WithSpeed(97, 98), WithSpeed(1.2, 1.3)).text,
              HasSubstr("97.5x [97.0x, 98.0x] first"));
  EXPECT_EQ(result(WithSpeed(1.2, 1.3), SampleVerdict(Outcome::kWrong)), CheckResult::kDiffers);
  EXPECT_EQ(result(SampleVerdict(Outcome::kWrong), SampleVerdict(Outcome::kWrong)),
            CheckResult::kAgrees);
  // A clear case ends before it has an interval: every honest one seemed to differ.
  Verdict clear = WithSpeed(3.9, 4.1);
  BaselineResult& eager = clear.speed->baselines.at("eager");
  eager.ci_low = eager.ci_high = std::numeric_limits<double>::quiet_NaN();
  eager.certified_speedup = 3;
  EXPECT_EQ(result(clear, WithSpeed(4.1, 4.3)), CheckResult::kAgrees);
  EXPECT_EQ(result(clear, WithSpeed(1.2, 1.3)), CheckResult::kDiffers);
  EXPECT_THAT(CompareChecked(clear, WithSpeed(4.1, 4.3)).text, HasSubstr("4.00x first, 4.20x"));
  // An interval so wide that all others overlap with it.
  Verdict wide = WithSpeed(1, 61);
  wide.speed->baselines.at("eager").certified_speedup = 20;
  EXPECT_EQ(result(wide, WithSpeed(1.2, 1.3)), CheckResult::kDiffers);
  // Unsettled is correct.
  EXPECT_EQ(result(SampleVerdict(Outcome::kUnsettled), SampleVerdict(Outcome::kWrong)),
            CheckResult::kDiffers);
  // Another device model says nothing of the speed, but that both are correct.
  Verdict elsewhere = WithSpeed(5, 6);
  elsewhere.machine.cpu = "another";
  EXPECT_EQ(result(WithSpeed(1.2, 1.3), elsewhere), CheckResult::kUndecided);
}

class SpotChecksTest : public ServeTest {
 protected:
  void OpenAgain() override {
    hall_.reset();
    hall_ = Hall::Open({.folder = place(), .spot_checks = share_}, Catalogue()).value();
  }
  Account Member(const std::string& name) {
    const auto known = hall_->accounts().FindByName(name).value();
    return known ? *known : hall_->accounts().Make(name, Role::kStudent, 0, now_).value();
  }
  KnownRunner PromotedRunner(const std::string& owner, const std::string& device = "cpu") {
    KnownRunner facts;
    facts.name = owner + "'s";
    facts.device = device;
    return hall_->leases().Meet(Member(owner), facts, true, now_).value();
  }
  int64_t Submit(const std::string& source) {
    NewJob asked;
    asked.author = Member("ann");
    asked.problem = "softmax";
    asked.name = "mine.py";
    asked.source_hash = hall_->archive().Put(source).value();
    return hall_->jobs().Submit(asked, now_)->job.id;
  }
  // Takes the next job by that runner, and ends it. Returns its id; 0: there was none for it.
  int64_t Judge(const KnownRunner& runner, double low, double high) {
    const auto leased = hall_->leases().Take(runner, now_).value();
    if (!leased) return 0;
    Verdict verdict = WithSpeed(low, high);
    verdict.id = Sha256Hex(leased->lease).substr(0, 12);
    verdict.problem.name = "softmax";
    verdict.problem.size.clear();
    verdict.candidate.hash = leased->job.source_hash;
    EXPECT_EQ(hall_->End(leased->job.id, leased->lease, VerdictToJson(verdict, -1), now_).value(),
              Ending::kCounted);
    return leased->job.id;
  }

  double share_ = 1;
  std::unique_ptr<Hall> hall_;
};

TEST_F(SpotChecksTest, AVerdictThatWasMadeUpIsJudgedAgainBySomebodyElse) {
  const KnownRunner liar = PromotedRunner("ben"), honest = PromotedRunner("cas");
  const int64_t job = Submit("a");
  EXPECT_EQ(Judge(liar, 97, 98), job);
  EXPECT_EQ(hall_->jobs().Queue()->queued, 1);
  EXPECT_EQ(Judge(liar, 97, 98), 0) << "not by the same owner's runner";
  const int64_t check = Judge(honest, 1.2, 1.3);
  ASSERT_NE(check, 0);
  const auto found = hall_->spot_checks().Of(job).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->job, check);
  EXPECT_EQ(found->runner, "cas's");
  EXPECT_EQ(found->result, "differs");
  EXPECT_THAT(hall_->spot_checks().Differing().value(),
              ElementsAre(hall_->jobs().Find(job).value()->verdict));
  EXPECT_EQ(hall_->spot_checks().ByRunner()->at(liar.id).differing, 1);
  // A checker that lied framed an honest runner, and stayed clean.
  EXPECT_EQ(hall_->spot_checks().ByRunner()->at(honest.id).differing, 1);
  // The check is nobody's entry, and is checked by nobody.
  EXPECT_EQ(hall_->CaughtUpBoard().value()->rows().size(), 1u);
  EXPECT_EQ(hall_->jobs().Queue()->queued, 0);
  EXPECT_EQ(hall_->jobs().OfAccount(Member("ann").id, now_)->made_today, 1);
}

TEST_F(SpotChecksTest, AnHonestVerdictAgrees) {
  const KnownRunner first = PromotedRunner("ben"), second = PromotedRunner("cas");
  const int64_t job = Submit("a");
  Judge(first, 1.2, 1.3);
  Judge(second, 1.25, 1.35);
  EXPECT_EQ(hall_->spot_checks().Of(job).value()->result, "agrees");
  EXPECT_THAT(hall_->spot_checks().Differing().value(), IsEmpty());
}

// The page said for ever that a job judges it again.
TEST_F(SpotChecksTest, ACheckThatFailedSaysSo) {
  const KnownRunner first = PromotedRunner("ben"), second = PromotedRunner("cas");
  const int64_t job = Submit("a");
  Judge(first, 1.2, 1.3);
  EXPECT_FALSE(hall_->spot_checks().Of(job).value()->has_failed);
  const auto leased = hall_->leases().Take(second, now_).value();
  ASSERT_TRUE(leased);
  const RunnerError error{"usage", "another version of the file"};
  ASSERT_TRUE(hall_->leases().EndWithError(leased->job.id, leased->lease, error, now_));
  EXPECT_TRUE(hall_->spot_checks().Of(job).value()->has_failed);
}

TEST_F(SpotChecksTest, NoneIsAskedForThatNobodyCouldDo) {
  const KnownRunner alone = PromotedRunner("ben");
  PromotedRunner("dan", "cuda:0");  // of another kind
  const int64_t job = Submit("a");
  Judge(alone, 97, 98);
  EXPECT_FALSE(hall_->spot_checks().Of(job).value());
  PromotedRunner("cas");
  Pass(2 * kRunnerIsThereS);
  Submit("b");
  Judge(PromotedRunner("ben"), 97, 98);
  EXPECT_EQ(hall_->jobs().Queue()->queued, 0) << "the other one is away";
}

TEST_F(SpotChecksTest, TheServersOwnRunnersAreNotChecked) {
  PromotedRunner("cas");
  KnownRunner facts;
  facts.name = "local";
  facts.device = "cpu";
  const Account server = hall_->accounts().ServerAccount(now_).value();
  const KnownRunner own = hall_->leases().Meet(server, facts, true, now_).value();
  const int64_t job = Submit("a");
  Judge(own, 1.2, 1.3);
  EXPECT_FALSE(hall_->spot_checks().Of(job).value());
}

TEST_F(SpotChecksTest, AShareOfNothingChecksNothing) {
  share_ = 0;
  OpenAgain();
  PromotedRunner("cas");
  const int64_t job = Submit("a");
  Judge(PromotedRunner("ben"), 97, 98);
  EXPECT_FALSE(hall_->spot_checks().Of(job).value());
}

// A server's file of the version before knows no spot checks: its jobs stay as they are.
TEST_F(SpotChecksTest, JobsOfAnOlderFileStay) {
  const int64_t job = Submit("a");
  KnownRunner facts;
  facts.name = "desk";
  facts.device = "cpu";
  const KnownRunner own = hall_->leases().Meet(Member("ann"), facts, false, now_).value();
  ASSERT_NE(Judge(own, 1.2, 1.3), 0);
  const auto verdict = hall_->jobs().Find(job).value()->verdict;
  for (const char* sql :
       {"DROP INDEX jobs_by_source", "ALTER TABLE board DROP COLUMN own_constants",
        "DROP TABLE refusals", "DROP TABLE spot_checks", "DROP TRIGGER jobs_end_once",
        "UPDATE jobs SET own_runner = 0", "ALTER TABLE jobs DROP COLUMN own_runner",
        "PRAGMA user_version = 2"})
    ASSERT_TRUE(hall_->database().Number(sql)) << sql;
  OpenAgain();
  const Job kept = *hall_->jobs().Find(job).value();
  EXPECT_EQ(kept.verdict, verdict);
  EXPECT_TRUE(kept.own_runner);
  EXPECT_EQ(hall_->jobs().Events(job, 0, 10)->size(), 3u);
  EXPECT_FALSE(hall_->database().Number("UPDATE jobs SET state = 'queued', ended_s = 0"));
  EXPECT_GT(Submit("b"), job);
}

}  // namespace
}  // namespace assay
