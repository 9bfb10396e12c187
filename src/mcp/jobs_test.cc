#include "mcp/jobs.h"

#include <gmock/gmock.h>

#include "mcp/attempt.h"
#include "mcp/mcp_testing.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class JobsTest : public testing::Test {
 protected:
  McpJobs::Hooks Hooks() {
    return {[this] { return now_ns_; },
            [this](const McpJob& job) { told_.push_back("began " + job.handle); },
            [this](const McpJob& job) {
              told_.push_back(fmt::format("{} {}", McpJobStateName(job.state), job.handle));
            }};
  }
  static McpJob Job(const std::string& handle) {
    McpJob job;
    job.handle = handle;
    job.work = [](double) -> SeatWork { return nullptr; };
    return job;
  }
  int64_t now_ns_ = 0;
  std::vector<std::string> told_;
  FakeSeat seat_;
};

TEST_F(JobsTest, OneAfterTheOtherInTheirOrder) {
  Budget budget({.calls = 10, .seconds = 100, .job_seconds = 60});
  McpJobs jobs(seat_, budget, Hooks());
  ASSERT_TRUE(jobs.Add(Job("a"), false));
  ASSERT_TRUE(jobs.Add(Job("b"), false));
  ASSERT_TRUE(jobs.Add(Job("first"), true));
  jobs.Tick();
  EXPECT_EQ(jobs.Find("first")->state, McpJobState::kRunning);
  now_ns_ = 2'000'000'000;
  seat_.Finish(WorkDone{});
  jobs.Tick();
  EXPECT_EQ(jobs.Find("first")->state, McpJobState::kDone);
  EXPECT_EQ(jobs.Find("first")->seconds, 2);
  EXPECT_EQ(jobs.running(), "a");
  EXPECT_EQ(budget.calls_left(), 8);
  EXPECT_EQ(budget.seconds_left(), 98);
  seat_.Finish(EnvironmentError("no memory"));
  jobs.Tick();
  EXPECT_EQ(jobs.Find("a")->state, McpJobState::kFailed);
  EXPECT_THAT(told_, ElementsAre("began first", "done first", "began a", "failed a", "began b"));
}

TEST_F(JobsTest, ACancelledJobHasSpentItsCallAndItsTime) {
  Budget budget({.calls = 2, .seconds = 100});
  McpJobs jobs(seat_, budget, Hooks());
  ASSERT_TRUE(jobs.Add(Job("a"), false));
  ASSERT_TRUE(jobs.Add(Job("b"), false));
  jobs.Tick();
  EXPECT_TRUE(jobs.Cancel("b"));
  EXPECT_EQ(jobs.Find("b")->state, McpJobState::kCancelled);
  EXPECT_TRUE(jobs.Cancel("a"));
  EXPECT_TRUE(seat_.cancelled);
  now_ns_ = 5'000'000'000;
  seat_.Finish(Fail(ErrorKind::kInterrupted, "interrupted"));
  jobs.Tick();
  EXPECT_EQ(jobs.Find("a")->state, McpJobState::kCancelled);
  EXPECT_FALSE(jobs.Cancel("a"));
  EXPECT_EQ(budget.seconds_left(), 95);
  EXPECT_EQ(budget.calls_left(), 0);
  EXPECT_THAT(jobs.Add(Job("c"), false).error().message, HasSubstr("2 of 2 calls"));
  EXPECT_FALSE(jobs.busy());
}

TEST_F(JobsTest, AJobGetsWhatIsLeftAndThenNothingRuns) {
  Budget budget({.calls = 10, .seconds = 50, .job_seconds = 30});
  McpJobs jobs(seat_, budget, Hooks());
  for (const char* handle : {"a", "b", "c"}) ASSERT_TRUE(jobs.Add(Job(handle), false));
  jobs.Tick();
  EXPECT_EQ(jobs.Find("a")->seconds_max, 30);
  now_ns_ += 30'000'000'000;
  seat_.Finish(WorkDone{});
  jobs.Tick();
  EXPECT_DOUBLE_EQ(jobs.Find("b")->seconds_max, 20);
  now_ns_ += 21'000'000'000;
  seat_.Finish(WorkDone{});
  jobs.Tick();
  jobs.Tick();
  EXPECT_EQ(jobs.Find("c")->state, McpJobState::kFailed);
  EXPECT_THAT(jobs.Find("c")->done->error().message, HasSubstr("budget is spent"));
  EXPECT_FALSE(jobs.Add(Job("d"), true));
}

TEST_F(JobsTest, OnlySoManyWait) {
  Budget budget({.waiting_max = 2});
  McpJobs jobs(seat_, budget, Hooks());
  ASSERT_TRUE(jobs.Add(Job("a"), false));
  jobs.Tick();
  ASSERT_TRUE(jobs.Add(Job("b"), false));
  EXPECT_THAT(jobs.Add(Job("c"), false).error().message, HasSubstr("2 jobs wait"));
  EXPECT_EQ(budget.calls_left(), 98);
}

TEST_F(JobsTest, TheEndCancelsAll) {
  Budget budget({});
  McpJobs jobs(seat_, budget, Hooks());
  ASSERT_TRUE(jobs.Add(Job("a"), false));
  ASSERT_TRUE(jobs.Add(Job("b"), false));
  jobs.Tick();
  jobs.End();
  EXPECT_THAT(told_, ElementsAre("began a", "cancelled b", "cancelled a"));
}

TEST(Attempt, ASessionGoesOnWithWhatItSpent) {
  McpJob job;
  job.handle = "job-00000001";
  job.seconds_max = 60;
  job.seconds = 5;
  job.state = McpJobState::kDone;
  std::vector<std::string> contents;
  const auto keep = [&](const char* session, const char* what, bool free) {
    contents.push_back(RecordOfJob(session, what, job, free).content);
  };
  for (const char* what : {"asked", "began", "ended"}) keep("mine", what, false);
  for (const char* what : {"asked", "began", "ended"}) keep("another", what, false);
  job.handle = "job-00000002";  // its server was killed
  for (const char* what : {"asked", "began"}) keep("mine", what, false);
  job.handle = "job-00000003";
  keep("mine", "asked", true);
  contents.push_back(RecordOfCall("mine", "explain", McpJson::object(), "").content);
  const Spent spent = SpentBy("mine", contents);
  EXPECT_EQ(spent.calls, 2);
  EXPECT_EQ(spent.seconds, 65);
}

TEST(Attempt, ACallIsKeptWithoutItsSource) {
  const McpJson arguments = {{"problem", "gelu"}, {"source", "int x;"}, {"odd", {{"deep", 1}}}};
  const NewRecord record = RecordOfCall("mine", "kernel_check", arguments, "no");
  const McpJson content = McpJson::parse(record.content);
  EXPECT_EQ(content["what"], "refused");
  EXPECT_EQ(content["arguments"]["problem"], "gelu");
  EXPECT_EQ(content["arguments"]["source"].get<std::string>().size(), 64u);
  EXPECT_FALSE(content["arguments"].contains("odd"));
}

TEST(ThreadSeat, DoesWorkAndEndsItEarly) {
  ThreadSeat seat;
  EXPECT_FALSE(seat.Take());
  seat.Begin([](const WorkLook& look, StopToken) -> Result<WorkDone> {
    look("an event");
    WorkDone done;
    done.text = "done";
    return done;
  });
  seat.Join();
  EXPECT_EQ(seat.Newest(), "an event");
  EXPECT_EQ(seat.Take()->value().text, "done");
  EXPECT_FALSE(seat.Take());
}

TEST(ThreadSeat, WorkHearsThatItIsCancelled) {
  ThreadSeat seat;
  seat.Begin([](const WorkLook& look, StopToken stop) -> Result<WorkDone> {
    while (look("an event") && !stop.stopped()) std::this_thread::yield();
    return Fail(ErrorKind::kInterrupted, "interrupted");
  });
  while (seat.Newest().empty()) std::this_thread::yield();
  EXPECT_FALSE(seat.Take());
  seat.Cancel();
  std::optional<Result<WorkDone>> done;
  while (!done) done = seat.Take();
  EXPECT_EQ(done->error().kind, ErrorKind::kInterrupted);
  EXPECT_FALSE(seat.Take());
}

}  // namespace
}  // namespace assay
