#include "queue/postgres_queue.h"

#include "archive/postgres_testing.h"
#include "base/clock.h"
#include "queue/open_queue.h"
#include "queue/postgres_roles.h"
#include "queue/work_queue_conformance_test.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct PostgresQueueEngine {
  static std::string Place(const std::filesystem::path&) {
    const auto server = PostgresServer::Shared();
    return server ? (*server)->NewDatabase() : "";
  }
  static Result<std::unique_ptr<WorkQueue>> Open(const std::string& place, QueueTerms terms) {
    return OpenQueue(place, terms);
  }
  static std::string Unavailable() { return WhyNoPostgres(); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Postgres, WorkQueueConformance, PostgresQueueEngine);

class PostgresWorks : public OnPostgres {
 protected:
  std::unique_ptr<PostgresQueue> Open() const { return PostgresQueue::Open(url_, {60, 3}).value(); }
  std::unique_ptr<PostgresQueue> OpenAs(const std::string& role) const {
    return PostgresQueue::Open(server_->AsRole(url_, role), {60, 3}).value();
  }
  static NewWork Work(const std::string& key, const std::string& run = "run") {
    return {run, key, "softmax", "cpu", 0, "{\"source\":\"'\\\"{},\"}"};
  }
  static WorkerFacts Worker(const std::string& name = "one") {
    return {name, "node", "cpu", "a \"model\", {1}", "1.0", "", ""};
  }
};

TEST_F(PostgresWorks, TextArrivesAsItWasSent) {
  const auto queue = Open();
  ASSERT_EQ(queue->Add(std::vector{Work("k,\"\\{")}).value(), 1);
  const auto claimed = queue->Claim(Worker(), 1).value();
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(claimed[0].key, "k,\"\\{");
  EXPECT_EQ(claimed[0].request, Work("").request);
  EXPECT_EQ(queue->Workers()->front().facts.model, "a \"model\", {1}");
}

TEST_F(PostgresWorks, RunsTakeTurnsWhereNoneHoldsMore) {
  const auto queue = Open();
  std::vector<NewWork> works;
  for (int i = 0; i < 4; ++i)
    for (const char* run : {"first", "second"}) works.push_back(Work(fmt::format("{}", i), run));
  ASSERT_TRUE(queue->Add(works));
  std::string order;
  for (int i = 0; i < 4; ++i) {
    const auto claimed = queue->Claim(Worker(), 1).value();
    order += claimed[0].run[0];
    ASSERT_TRUE(*queue->End(Worker(), claimed[0], {"{}", ""}));
  }
  EXPECT_EQ(order, "fsfs");
}

TEST_F(PostgresWorks, EndsKeepTheirNumbersWhileOthersAreMade) {
  const auto queue = Open(), other = Open();
  std::vector<NewWork> works;
  for (int i = 0; i < 30; ++i) works.push_back(Work(fmt::format("{}", i)));
  ASSERT_TRUE(queue->Add(works));
  int64_t after = 0, read = 0;
  for (int i = 0; i < 10; ++i) {
    const std::vector<ClaimedWork> claimed = queue->Claim(Worker(), 3).value();
    for (const ClaimedWork& work : claimed) ASSERT_TRUE(*queue->End(Worker(), work, {"{}", ""}));
    const std::vector<EndedWork> ended = other->Ended("run", after, 2).value();
    for (const EndedWork& work : ended) {
      EXPECT_GT(work.sequence, after);
      after = work.sequence;
      ++read;
    }
  }
  read += std::ssize(other->Ended("run", after, 100).value());
  EXPECT_EQ(read, 30);
  EXPECT_EQ(other->Counts("run")->judged, 30);
}

TEST_F(PostgresWorks, ARestartOfTheServerLosesNothing) {
  const auto queue = Open();
  std::vector<NewWork> works;
  for (int i = 0; i < 60; ++i) works.push_back(Work(fmt::format("{}", i)));
  ASSERT_TRUE(queue->Add(works));
  int ended = 0;
  for (int i = 0; i < 60; ++i) {
    const auto claimed = queue->Claim(Worker(), 1);
    ASSERT_TRUE(claimed) << claimed.error().message;
    if (claimed->empty()) break;
    if (i == 20 || i == 40) server_->Crash();
    const auto counts = queue->End(Worker(), claimed->front(), {"{}", ""});
    ASSERT_TRUE(counts) << counts.error().message;
    if (*counts) ++ended;
  }
  // A claim that the crash forgot waits again; an end that counted stays.
  EXPECT_EQ(std::ssize(queue->Ended("run", 0, 100).value()), ended);
  const QueueCounts counts = queue->Counts("run").value();
  EXPECT_EQ(counts.judged, ended);
  EXPECT_EQ(counts.judged + counts.queued + counts.claimed, 60);
}

TEST_F(PostgresWorks, WaitHearsOfWorkAndOfEnds) {
  const auto queue = Open(), other = Open();
  ASSERT_TRUE(queue->Wait(1));  // begins to listen
  ASSERT_TRUE(other->Add(std::vector{Work("a")}));
  const int64_t begin_ns = MonotonicNs();
  ASSERT_TRUE(queue->Wait(20'000));
  const auto claimed = other->Claim(Worker(), 1).value();
  ASSERT_TRUE(*other->End(Worker(), claimed[0], {"{}", ""}));
  ASSERT_TRUE(queue->Wait(20'000));
  EXPECT_LT(MonotonicNs() - begin_ns, int64_t{20'000'000'000});
}

TEST_F(PostgresWorks, AWorkerReadsNothingButWhatItClaims) {
  server_->Sql(url_, "DROP ROLE IF EXISTS pilots; CREATE ROLE pilots LOGIN");
  ASSERT_TRUE(GrantRights(url_, "pilots", "worker", {}));
  const auto owner = Open();
  ASSERT_TRUE(owner->Add(std::vector{Work("a")}));
  const auto pilot = OpenAs("pilots");
  const auto claimed = pilot->Claim(Worker(), 1).value();
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(claimed[0].request, Work("a").request);
  EXPECT_FALSE(*owner->End(Worker(), claimed[0], {"{}", ""})) << "another role holds it";
  EXPECT_TRUE(pilot->Beat(Worker(), claimed)->empty());
  EXPECT_TRUE(*pilot->End(Worker(), claimed[0], {"{}", ""}));
  auto connection = PostgresConnection::Open(server_->AsRole(url_, "pilots")).value();
  for (const char* sql :
       {"SELECT * FROM assay.works", "SELECT * FROM assay.claims", "SELECT * FROM assay.ends",
        "SELECT assay.queue_ended('run', 0, 9)", "SELECT assay.queue_cancel('run')",
        "SELECT assay.claimed_by('one', '')", "UPDATE assay.quotas SET queued_max = 0"}) {
    const auto refused = connection.Query(sql);
    ASSERT_FALSE(refused) << sql;
    EXPECT_THAT(refused.error().message, HasSubstr("assay archive grant")) << sql;
  }
  EXPECT_FALSE(pilot->Ended("run", 0, 9));
  EXPECT_FALSE(pilot->Add(std::vector{Work("b")}));
}

TEST_F(PostgresWorks, ControllersOfTwoRolesDoNotMeet) {
  for (const char* role : {"alice", "bob"}) {
    server_->Sql(url_, fmt::format("DROP ROLE IF EXISTS {0}; CREATE ROLE {0} LOGIN", role));
    ASSERT_TRUE(GrantRights(url_, role, "controller", {3, 1}));
  }
  const auto alice = OpenAs("alice"), bob = OpenAs("bob");
  ASSERT_TRUE(alice->Add(std::vector{Work("a"), Work("b")}));
  EXPECT_EQ(bob->Add(std::vector{Work("a")}).value(), 1) << "his run of the same name is another";
  EXPECT_EQ(bob->Counts("run")->queued, 1);
  ASSERT_TRUE(bob->Cancel("run"));
  EXPECT_EQ(bob->Ended("run", 0, 9)->size(), 1U);
  EXPECT_THAT(alice->Ended("run", 0, 9).value(), IsEmpty());
  EXPECT_EQ(Open()->Counts("")->queued, 2) << "the owner sees all";
  const auto refused = alice->Add(std::vector{Work("c"), Work("d")});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("would have 4 works queued, and may have 3"));
  EXPECT_EQ(alice->Counts("run")->queued, 2);
  const auto pilot = Open();
  EXPECT_EQ(pilot->Claim(Worker(), 1)->size(), 1U);
  EXPECT_THAT(pilot->Claim(Worker("two"), 1).value(), IsEmpty()) << "one of hers at a time";
}

}  // namespace
}  // namespace assay
