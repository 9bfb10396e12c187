#include "cluster/queue_conductor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "cluster/cluster_testing.h"
#include "cluster/node_classes.h"
#include "cluster/pilot_script.h"
#include "cluster/ssh_pilots.h"
#include "worker/protocol.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// Pilots within the test: each look judges what is queued.
class PilotsHere : public Pilots {
 public:
  explicit PilotsHere(std::function<Result<void>()> tend) : tend_(std::move(tend)) {}
  Result<std::vector<std::string>> Tend(const PilotDemand&, std::span<const KnownWorker>) override {
    ASSAY_RETURN_IF_ERROR(tend_());
    return std::vector<std::string>{};
  }
  void End() override { ended = true; }
  bool ended = false;

 private:
  const std::function<Result<void>()> tend_;
};

class QueueConductorTest : public ::testing::Test {
 protected:
  QueueConductorTest() : queue_(at_.Open()), pilot_(at_.Open()) {
    plan_.problems.push_back({"twice", 1, 1, {at_.Problem(), "", {}}, "a"});
    for (const char* text : {"first", "second", "third"})
      plan_.items.push_back(
          {0, std::ssize(plan_.items), CandidateFromText(std::string(text) + ".py", text).value()});
    terms_.device = "cpu";
  }
  // Ends up to `most` works, the one of `fails` with an error.
  void JudgeSome(int most, const std::string& fails = "no candidate") {
    const WorkerFacts worker{"w", "n1", "cpu", "", "", "", ""};
    for (int i = 0; i < most; ++i) {
      const auto claimed = pilot_->Claim(worker, 1);
      if (claimed->empty()) return;
      const bool good = claimed->front().request.find(fails) == std::string::npos;
      const WorkEnd end =
          good ? WorkEnd{VerdictToJson(SampleVerdict(Outcome::kFaster), -1), "", false}
               : WorkEnd{"", R"({"kind":"environment","message":"no disk"})", false};
      EXPECT_TRUE(*pilot_->End(worker, claimed->front(), end));
    }
  }
  ConductEnd Run(const std::vector<size_t>& items, const std::function<void()>& tend,
                 const std::function<Result<void>(const RunRow&)>& keep = {}) {
    return RunWith(
        items,
        [&]() -> Result<void> {
          tend();
          return {};
        },
        keep);
  }
  ConductEnd RunWith(const std::vector<size_t>& items, std::function<Result<void>()> tend,
                     const std::function<Result<void>(const RunRow&)>& keep = {}) {
    ConductEvents events;
    events.notice = [&](const std::string& text) { notices_.push_back(text); };
    events.date = [] { return std::string("2026-11-28T00:00:00Z"); };
    events.rows = [&](std::vector<JudgedItem> judged) -> Result<void> {
      for (JudgedItem& each : judged) {
        if (keep) ASSAY_RETURN_IF_ERROR(keep(each.row));
        rows_.push_back(std::move(each.row));
      }
      ++batches_;
      return {};
    };
    PilotsHere pilots(std::move(tend));
    QueueRunTerms run;
    run.run = "run";
    run.supervisor.tend_s = 0;
    QueueConductor conductor(plan_, terms_, *queue_, &pilots, run, events);
    const std::vector<RunRow> earlier = rows_;
    const ConductEnd end = conductor.Run(items, earlier, StopToken(stop_));
    EXPECT_TRUE(pilots.ended);
    return end;
  }

  const FolderWithQueue at_;
  std::unique_ptr<WorkQueue> queue_, pilot_;
  RunPlan plan_;
  AskedTerms terms_;
  std::vector<RunRow> rows_;
  std::vector<std::string> notices_;
  int batches_ = 0;  // in which they came
  std::atomic<bool> stop_{false};
};

TEST_F(QueueConductorTest, EachItemGetsItsRow) {
  const ConductEnd end = Run({0, 1, 2}, [&] { JudgeSome(2); });
  EXPECT_FALSE(end.error);
  ASSERT_EQ(rows_.size(), 3U);
  for (const RunRow& row : rows_) EXPECT_TRUE(row.verdict);
}

TEST_F(QueueConductorTest, AControllerThatIsStartedAgainReadsWhatWasJudgedMeanwhile) {
  const ConductEnd first = Run({0, 1, 2}, [&] { stop_ = true; });
  ASSERT_TRUE(first.error);
  EXPECT_EQ(first.error->kind, ErrorKind::kInterrupted);
  EXPECT_EQ(first.left, 3U);
  JudgeSome(2);
  stop_ = false;
  queue_ = at_.Open();
  EXPECT_FALSE(Run({0, 1, 2}, [&] { JudgeSome(3); }).error);
  EXPECT_EQ(rows_.size(), 3U);
  EXPECT_EQ(queue_->Counts("run")->judged, 3);
}

TEST_F(QueueConductorTest, PilotsThatCannotBeLookedAfterForAWhileEndNothing) {
  int looks = 0;
  const ConductEnd end = RunWith({0, 1, 2}, [&]() -> Result<void> {
    if (++looks == 1) return EnvironmentError("squeue did not answer within 20 s, and was ended");
    JudgeSome(3);
    return {};
  });
  EXPECT_FALSE(end.error);
  EXPECT_EQ(rows_.size(), 3U);
  EXPECT_THAT(notices_, Contains(HasSubstr("squeue did not answer within 20 s, and was ended; it "
                                           "is tried again")));
}

TEST_F(QueueConductorTest, PilotsThatCanNeverStartEndTheRun) {
  const ConductEnd end =
      RunWith({0, 1, 2}, []() -> Result<void> { return UsageError("invalid partition"); });
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->message, "invalid partition");
  EXPECT_EQ(end.left, 3U);
}

TEST_F(QueueConductorTest, EndsThatWaitTogetherAreKeptTogether) {
  EXPECT_FALSE(Run({0, 1, 2}, [&] { JudgeSome(3); }).error);
  EXPECT_EQ(rows_.size(), 3U);
  EXPECT_EQ(batches_, 1);
}

TEST_F(QueueConductorTest, AnErrorIsARowAndIsTriedAgainByTheNextCall) {
  EXPECT_FALSE(Run({0, 1, 2}, [&] { JudgeSome(3, "second"); }).error);
  ASSERT_EQ(rows_.size(), 3U);
  const auto failed = std::ranges::find_if(rows_, [](const RunRow& row) { return !row.verdict; });
  ASSERT_NE(failed, rows_.end());
  EXPECT_EQ(failed->sample, 1);
  EXPECT_THAT(failed->error->message, HasSubstr("no disk"));
  EXPECT_FALSE(Run({1}, [&] { JudgeSome(1); }).error);
  ASSERT_EQ(rows_.size(), 4U);
  EXPECT_TRUE(rows_[3].verdict);
}

TEST_F(QueueConductorTest, ARowThatCannotBeKeptEndsTheRun) {
  const ConductEnd end = Run(
      {0, 1, 2}, [&] { JudgeSome(3); },
      [](const RunRow&) -> Result<void> { return EnvironmentError("the disk is full"); });
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->message, "the disk is full");
  EXPECT_EQ(end.left, 3U);
}

KnownWorker OnNode(const std::string& node, const std::string& measures) {
  KnownWorker worker;
  worker.facts = {node + "-w", node, "cpu", "a model", "", "", measures};
  return worker;
}

TEST(NodeClasses, ANodeThatIsSlowerThanItsClassIsOdd) {
  std::vector<KnownWorker> workers{
      OnNode("n1", R"({"bandwidth":100,"noise":0.01})"),
      OnNode("n2", R"({"bandwidth":104,"noise":0.011})"), OnNode("n3", R"({"bandwidth":50})"),
      OnNode("n4", R"({"bandwidth":102,"noise":0.05})"), OnNode("n5", "")};
  const auto odd = OddNodes(workers);
  ASSERT_EQ(odd.size(), 2U);
  EXPECT_EQ(odd[0].worker, "n3-w");
  EXPECT_THAT(odd[0].why, HasSubstr("bandwidth is 50, and that of other nodes with a model 102"));
  EXPECT_EQ(odd[1].worker, "n4-w");
  workers.resize(2);
  EXPECT_TRUE(OddNodes(workers).empty()) << "two nodes are no class";
}

CommandAnswer Bash(const std::string& script) {
  return RealCommands().Run({"bash"}, script, 20).value();
}

TEST(PilotScript, RefusesAProgramThatIsNotTheControllers) {
  const CommandAnswer other = Bash(PilotScript({"/bin/true", std::string(64, '0'), "", "", {}}));
  EXPECT_EQ(other.exit_code, 8);
  EXPECT_THAT(other.errors, HasSubstr("/bin/true is not the controller's Assay"));
  const CommandAnswer none = Bash(PilotScript({"/no/assay", std::string(64, '0'), "", "", {}}));
  EXPECT_EQ(none.exit_code, 8);
  EXPECT_THAT(none.errors, HasSubstr("there is no /no/assay"));
}

TEST(PilotScript, StartsTheProgramOfABundleThatItUnpacksOnce) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string at = folder.path().string();
  ASSERT_EQ(Bash("cd " + at +
                 " && mkdir -p assay/bin && printf '#!/bin/sh\\necho \"got $1\"\\n' > "
                 "assay/bin/assay && chmod +x assay/bin/assay && tar -czf b.tar.gz assay")
                .exit_code,
            0);
  const std::string hash = Bash("sha256sum < " + at + "/b.tar.gz").output.substr(0, 64);
  const std::string script =
      "export TMPDIR=" + at + "\n" + PilotScript({"", "", at + "/b.tar.gz", hash, {"it's"}});
  EXPECT_EQ(Bash(script).output, "got it's\n");
  std::filesystem::remove(at + "/b.tar.gz");
  EXPECT_EQ(Bash(script).output, "got it's\n") << "it is there from the first time";
  const std::string damaged =
      "export TMPDIR=" + at + "\n" +
      PilotScript({"", "", at + "/assay/bin/assay", std::string(64, '1'), {}});
  EXPECT_THAT(Bash(damaged).errors, HasSubstr("is damaged"));
}

// A program `ssh` of the test's own, which runs the command here.
TEST(SshPilots, APilotEndsWithItsControllerAndIsStartedAgainAfterAFailure) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string at = folder.path().string();
  ASSERT_EQ(Bash("printf '#!/bin/bash\\nexec bash -c \"${@: -1}\"\\n' > " + at +
                 "/ssh && chmod +x " + at + "/ssh")
                .exit_code,
            0);
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", (at + ":" + path).c_str(), 1);
  int64_t now_ns = 1;
  SshPilotTerms terms;
  terms.hosts = {"good", "bad"};
  terms.logs = at;
  terms.failures_max = 2;
  terms.script = "echo \"it's up\"; [ -e " + at + "/all-good ] || { touch " + at +
                 "/all-good; exit 8; }; cat; echo gone";
  SshPilots pilots(terms, [&] { return now_ns; });
  std::vector<std::string> said;
  for (int i = 0; i < 200 && said.empty(); ++i) {
    const auto lines = pilots.Tend({5, 0}, {});
    ASSERT_TRUE(lines) << lines.error().message;
    said.insert(said.end(), lines->begin(), lines->end());
    ::poll(nullptr, 0, 20);
  }
  EXPECT_THAT(said, Contains(HasSubstr("ended with exit code 8")));
  now_ns += 3'000'000'000;
  EXPECT_TRUE(pilots.Tend({5, 0}, {}));
  ::poll(nullptr, 0, 200);
  pilots.End();
  ::setenv("PATH", path.c_str(), 1);
  const std::string logs =
      ReadFile(at + "/good.log", 1000).value_or("") + ReadFile(at + "/bad.log", 1000).value_or("");
  EXPECT_THAT(logs, HasSubstr("it's up"));
  EXPECT_THAT(logs, HasSubstr("gone")) << "the end of its input ended it";
}

}  // namespace
}  // namespace assay
