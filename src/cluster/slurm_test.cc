#include "cluster/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/cluster_testing.h"
#include "cluster/slurm_pilots.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(Slurm, SubmitsAnArrayAndReadsItsId) {
  std::string script;
  FakeCommands commands([&](const auto&, const std::string& input) {
    script = input;
    return CommandAnswer{0, "42;cluster\n", ""};
  });
  Slurm slurm({"assay-1", "gpu", "gpu:1", "2:00:00", "/shared/logs"}, commands);
  EXPECT_EQ(*slurm.Submit(3, "#!/bin/bash\n"), "42");
  EXPECT_EQ(script, "#!/bin/bash\n");
  for (const char* word : {"sbatch", "--array=0-2", "--partition=gpu", "--gres=gpu:1",
                           "--time=2:00:00", "--requeue", "--output=/shared/logs/%A_%a.log"})
    EXPECT_THAT(commands.calls[0], Contains(word));
}

TEST(Slurm, QuotesWhatItsCommandsSay) {
  FakeCommands commands([](const auto&, const auto&) {
    return CommandAnswer{1, "", "sbatch: error: invalid partition specified: gpus\n"};
  });
  const auto refused = Slurm({"assay-1"}, commands).Submit(1, "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage) << "it stays wrong";
  EXPECT_THAT(refused.error().message, HasSubstr("invalid partition specified: gpus"));
  FakeCommands down([](const auto&, const auto&) {
    return CommandAnswer{1, "", "slurm_load_jobs error: Unable to contact slurm controller\n"};
  });
  const auto jobs = Slurm({"assay-1"}, down).Jobs();
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().kind, ErrorKind::kEnvironment) << "it may pass";
  EXPECT_THAT(jobs.error().message, HasSubstr("Unable to contact slurm controller"));
}

TEST(Slurm, ReadsJobsAndPassesOverOtherLines) {
  const auto jobs =
      ParseJobs("12_0|RUNNING|n1|None\n\nslurm: a warning\n12_1|PENDING||Resources\n");
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].id, "12_0");
  EXPECT_EQ(jobs[0].node, "n1");
  EXPECT_EQ(jobs[1].reason, "Resources");
  EXPECT_TRUE(jobs[1].IsAlive());
  EXPECT_FALSE((SlurmJob{"1", "COMPLETING", "", ""}).IsAlive());
}

TEST(Slurm, ReadsTimeLimits) {
  const std::pair<const char*, double> limits[] = {{"30", 1800},        {"30:15", 1815},
                                                   {"2:00:00", 7200},   {"1-12", 129600},
                                                   {"1-12:30", 131400}, {"1-00:00:10", 86410}};
  for (const auto& [text, seconds] : limits) EXPECT_EQ(*ParseSlurmTime(text), seconds) << text;
  for (const char* wrong : {"", "x", "1:2:3:4", "-5", "1-", "0", "2h"})
    EXPECT_FALSE(ParseSlurmTime(wrong)) << wrong;
}

TEST(Commands, AProgramThatHangsIsEnded) {
  const auto answer = RealCommands().Run({"sleep", "60"}, "", 0.2);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("sleep did not answer"));
}

TEST(Commands, GivesInputAndReturnsWhatAProgramSays) {
  const auto answer = RealCommands().Run({"sh", "-c", "cat; echo no >&2; exit 3"}, "yes", 20);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->output, "yes");
  EXPECT_EQ(answer->errors, "no\n");
  EXPECT_EQ(answer->exit_code, 3);
  const auto missing = RealCommands().Run({"no-such-program"}, "", 20);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("not installed"));
}

// A cluster whose squeue tells `jobs`.
class SlurmPilotsTest : public ::testing::Test {
 protected:
  SlurmPilotsTest()
      : commands_([this](const auto& words, const auto&) -> Result<CommandAnswer> {
          if (words[0] == "squeue") return CommandAnswer{0, jobs_, ""};
          if (words[0] == "sbatch") return CommandAnswer{0, "7\n", ""};
          return CommandAnswer{0, "", ""};
        }),
        slurm_({"assay-1"}, commands_),
        pilots_({2, "script", 90, 3, folder_.path().string()}, slurm_, [this] { return now_ns_; }) {
  }
  void Pass(double seconds) { now_ns_ += static_cast<int64_t>(seconds * 1e9); }
  static KnownWorker Heard(const std::string& job, double silent_s) {
    KnownWorker worker;
    worker.facts.job = job;
    worker.silent_s = silent_s;
    return worker;
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  std::string jobs_;
  int64_t now_ns_ = 1;
  FakeCommands commands_;
  Slurm slurm_;
  SlurmPilots pilots_;
};

TEST_F(SlurmPilotsTest, FindsTheArrayOfAnEarlierController) {
  jobs_ = "7_0|RUNNING|n1|None\n7_1|PENDING||Resources\n";
  const auto lines = pilots_.Tend({10, 0}, {});
  ASSERT_TRUE(lines);
  EXPECT_EQ(commands_.Count("sbatch"), 0U);
  EXPECT_THAT(*lines, Contains(HasSubstr("waits: Resources")));
}

TEST_F(SlurmPilotsTest, StartsWhatIsMissingAndNoMoreThanThereIsWork) {
  jobs_ = "7_0|RUNNING|n1|None\n";
  EXPECT_TRUE(pilots_.Tend({10, 0}, {}));
  EXPECT_THAT(commands_.calls.back(), Contains("--array=0-0"));
  EXPECT_TRUE(pilots_.Tend({1, 0}, {}));
  EXPECT_EQ(commands_.Count("sbatch"), 1U);
}

TEST_F(SlurmPilotsTest, AJobThatShowsRunningAndNeverLaunchedIsReplaced) {
  jobs_ = "7_0|RUNNING|n1|None\n7_1|RUNNING|n2|None\n";
  EXPECT_TRUE(pilots_.Tend({10, 0}, {}));
  Pass(100);
  const auto lines = pilots_.Tend({10, 0}, std::vector{Heard("7_0", 3)});
  ASSERT_TRUE(lines);
  EXPECT_THAT(*lines, Contains(HasSubstr("7_1 on n2 runs, and its worker is silent")));
  EXPECT_THAT(commands_.calls, Contains(std::vector<std::string>{"scancel", "7_1"}));
  EXPECT_EQ(commands_.Count("sbatch"), 1U);
}

TEST_F(SlurmPilotsTest, PilotsThatOnlyEndStopTheRunWithTheirLastWords) {
  ASSERT_TRUE(WriteFileAtomically(folder_.path() / "7_0.log", "assay: no sandbox here\n"));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pilots_.Tend({10, 0}, {}));
  const auto end = pilots_.Tend({10, 0}, {});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(end.error().message, HasSubstr("no sandbox here"));
  EXPECT_TRUE(pilots_.Tend({10, 1}, {})) << "a verdict between shows that some can judge";
}

}  // namespace
}  // namespace assay
