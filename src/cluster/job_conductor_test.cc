#include "cluster/job_conductor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "cluster/cluster_testing.h"
#include "cluster/work_request.h"
#include "queue/spool_files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class CountedPilots : public Pilots {
 public:
  Result<std::vector<std::string>> Tend(const PilotDemand& demand,
                                        std::span<const KnownWorker>) override {
    works_left = demand.works_left;
    if (fails) return UsageError("no pilot can start");
    return std::vector<std::string>{};
  }
  void Forgive() override { fails = false; }
  void End() override { ++ends; }
  int64_t works_left = -1;
  int ends = 0;
  bool fails = false;
};

class JobConductorTest : public ::testing::Test {
 protected:
  JobConductorTest() : pilot_(at_.Open()) {
    OpenHall();
    ann_ = hall_->accounts().Make("ann", Role::kStudent, 0, now_).value();
    Begin();
  }
  void OpenHall() {
    conductor_.reset();
    hall_.reset();
    HallOptions options;
    options.folder = (at_.folder.path() / "hall").string();
    hall_ = Hall::Open(options,
                       Catalogue::Load({ASSAY_SOURCE_DIRECTORY "/problems"}, "/nowhere").value())
                .value();
  }
  // As another process of the server.
  void Begin() {
    conductor_.reset();
    queue_ = at_.Open();
    JobConductorTerms terms;
    terms.run = "run";
    terms.runner = "slurm cpu";
    terms.device = "cpu";
    terms.version = kAssayVersion;
    terms.folder = at_.folder.path() / "held";
    terms.supervisor.tend_s = 0;
    conductor_ = std::make_unique<JobConductor>(
        *hall_, *queue_, &pilots_, terms, SupervisorEvents{},
        [this](int64_t job) { changed_.push_back(job); }, [this] { return now_; });
    ASSERT_TRUE(conductor_->Open());
  }
  void Look() {
    const auto looked = conductor_->Look();
    ASSERT_TRUE(looked) << looked.error().message;
  }
  void Pass(int64_t seconds) {
    now_.utc_s += seconds;
    now_.steady_ms += 1000 * seconds;
  }
  int64_t Submit(const std::string& source) {
    NewJob asked;
    asked.author = ann_;
    asked.problem = "softmax";
    asked.size = "small";
    asked.name = "mine.cpp";
    asked.source_hash = hall_->archive().Put(source).value();
    return hall_->jobs().Submit(asked, now_)->job.id;
  }
  Job JobOf(int64_t id) { return hall_->jobs().Find(id)->value(); }
  // A pilot says that it is there.
  void Hear(const std::string& name = "w") {
    EXPECT_TRUE(pilot_->Beat({name, "n1", "cpu", "", "", "", ""}, {}));
  }
  std::vector<ClaimedWork> Claim() { return pilot_->Claim(worker_, 1).value(); }
  void JudgeOne(const std::string& error = "") {
    const auto claimed = Claim();
    ASSERT_EQ(claimed.size(), 1U);
    const auto request = ParseWorkRequest(claimed[0].request);
    ASSERT_TRUE(request) << request.error().message;
    Verdict verdict = SampleVerdict(Outcome::kFaster);
    verdict.id = "ab12";
    verdict.problem.name = request->job.problem;
    verdict.problem.hash = request->job.problem_hash;
    verdict.problem.size = "small";
    verdict.problem.set = hall_->catalogue().Find("softmax").value()->facts.sizes.at("small");
    verdict.candidate.hash = Sha256Hex(request->job.candidate.source);
    const WorkEnd end =
        error.empty() ? WorkEnd{VerdictToJson(verdict, -1), "", false} : WorkEnd{"", error, false};
    EXPECT_TRUE(*pilot_->End(worker_, claimed[0], end));
  }

  const WorkerFacts worker_{"w", "n1", "cpu", "", "", "", ""};
  const FolderWithQueue at_;
  Instant now_{1'800'000'000, 5000};
  std::unique_ptr<WorkQueue> queue_, pilot_;
  CountedPilots pilots_;
  std::unique_ptr<Hall> hall_;
  Account ann_;
  std::unique_ptr<JobConductor> conductor_;
  std::vector<int64_t> changed_;
};

TEST_F(JobConductorTest, AJobIsTakenOnceAPilotIsThereAndEndsByItsVerdict) {
  const int64_t job = Submit("int a;");
  Submit("int b;");
  Look();
  EXPECT_EQ(pilots_.works_left, 2);
  EXPECT_EQ(JobOf(job).state, JobState::kQueued) << "no lease runs while Slurm's queue is long";
  Hear();
  Look();
  EXPECT_EQ(JobOf(job).state, JobState::kRunning);
  EXPECT_EQ(hall_->jobs().Queue()->queued, 1) << "one pilot judges one job";
  JudgeOne();
  Look();
  EXPECT_EQ(JobOf(job).state, JobState::kDone);
  EXPECT_EQ(JobOf(job).verdict, "ab12");
  EXPECT_EQ(JobOf(job).runner, "slurm cpu");
  EXPECT_THAT(changed_, testing::Contains(job));
  EXPECT_EQ(hall_->jobs().Queue()->running, 1) << "the next one";
  EXPECT_THAT(SpoolFiles::Names(fs::path(at_.place) / "works"), testing::SizeIs(1))
      << "of it alone";
  EXPECT_THAT(SpoolFiles::Names(fs::path(at_.place) / "ends"), testing::IsEmpty());
}

TEST_F(JobConductorTest, TheWorkHasWhatTheJobSays) {
  Submit("int a;");
  Hear();
  Look();
  const auto claimed = Claim();
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(Json::parse(claimed[0].request)["assay"], kAssayVersion);
  const WorkRequest request = ParseWorkRequest(claimed[0].request).value();
  EXPECT_EQ(request.job.candidate.source, "int a;");
  EXPECT_EQ(request.job.size, "small");
  EXPECT_EQ(request.seconds_max, 600);
  EXPECT_FALSE(request.job.opponent);
  EXPECT_FALSE(claimed[0].request.contains("lease"));
}

TEST_F(JobConductorTest, AServerThatWasKilledGoesOnWithTheWorkInHand) {
  const int64_t job = Submit("int a;");
  Hear();
  Look();
  OpenHall();
  JudgeOne();
  Begin();
  Look();
  EXPECT_EQ(JobOf(job).state, JobState::kDone);
  EXPECT_EQ(JobOf(job).attempts, 1);
}

TEST_F(JobConductorTest, LeasesAreRenewedAndACancelledJobLeavesTheQueue) {
  const int64_t job = Submit("int a;");
  Hear();
  Look();
  const auto held = Claim();
  for (int i = 0; i < 10; ++i) {
    Pass(20);
    Look();
    EXPECT_TRUE(hall_->leases().Expire(now_)->empty());
  }
  EXPECT_TRUE(*hall_->jobs().Cancel(job, now_));
  Pass(20);
  Look();
  EXPECT_EQ(pilot_->Beat(worker_, held)->size(), 1U) << "the pilot hears of it";
}

TEST_F(JobConductorTest, AFailureOfTheMachinePutsTheJobBackAndAWrongJobFails) {
  const int64_t job = Submit("int a;");
  Hear();
  Look();
  JudgeOne(R"({"kind":"environment","message":"no disk"})");
  Look();
  EXPECT_EQ(JobOf(job).state, JobState::kRunning) << "it was put back, and taken again";
  EXPECT_EQ(JobOf(job).attempts, 2);
  JudgeOne(R"({"kind":"unjudged","message":"it needs CUDA"})");
  Look();
  EXPECT_EQ(JobOf(job).state, JobState::kFailed);
  EXPECT_THAT(JobOf(job).failure, HasSubstr("it needs CUDA"));
}

TEST_F(JobConductorTest, TheEndGivesJobsBackAndEndsThePilots) {
  const int64_t job = Submit("int a;");
  Hear();
  Look();
  conductor_->End();
  EXPECT_EQ(JobOf(job).state, JobState::kQueued);
  EXPECT_EQ(JobOf(job).attempts, 0) << "that attempt does not count";
  EXPECT_EQ(pilots_.ends, 1);
  EXPECT_TRUE(Claim().empty());
  Begin();
  Look();
  EXPECT_EQ(JobOf(job).state, JobState::kRunning);
  JudgeOne();
  Look();
  EXPECT_EQ(JobOf(job).state, JobState::kDone);
}

TEST_F(JobConductorTest, PilotsThatCannotStartAreTriedAgainLater) {
  pilots_.fails = true;
  Submit("int a;");
  const auto looked = conductor_->Look();
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().message, "no pilot can start");
  Pass(400);
  Look();
}

}  // namespace
}  // namespace assay
