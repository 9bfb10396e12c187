#include "queue/spool_queue.h"

#include "queue/open_queue.h"
#include "queue/work_queue_conformance_test.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct SpoolEngine {
  static std::string Place(const fs::path& folder) { return (folder / "new" / "spool").string(); }
  static Result<std::unique_ptr<WorkQueue>> Open(const std::string& place, QueueTerms terms) {
    return OpenQueue(place, terms);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Spool, WorkQueueConformance, SpoolEngine);

class SpoolFolder : public ::testing::Test {
 protected:
  SpoolFolder()
      : folder_(TemporaryFolder::Create().value()), place_((folder_.path() / "q").string()) {}
  std::unique_ptr<SpoolQueue> Open() {
    return SpoolQueue::Open(place_, {60, 3}, [this] { return now_ns_; }).value();
  }
  void Pass(double seconds) { now_ns_ += static_cast<int64_t>(seconds * 1e9); }
  static NewWork Work(const std::string& key) { return {"run", key, "g", "cpu", 0, "{}"}; }
  static WorkerFacts Worker() { return {"w", "n1", "cpu", "", "", "", ""}; }
  std::vector<std::string> Names(const char* kind) const {
    return SpoolFiles::Names(fs::path(place_) / kind);
  }

  const TemporaryFolder folder_;
  const std::string place_;
  int64_t now_ns_ = 1;
};

TEST_F(SpoolFolder, ClocksOfOtherMachinesDoNotMatter) {
  const auto pilot = Open(), controller = Open();
  ASSERT_TRUE(pilot->Add(std::vector{Work("a")}));
  const auto claimed = pilot->Claim(Worker(), 1);
  ASSERT_EQ(claimed->size(), 1U);
  for (const auto& file : fs::directory_iterator(fs::path(place_) / "workers"))
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(5));
  EXPECT_EQ(*controller->Expire(), 0);
  Pass(50);
  EXPECT_TRUE(pilot->Beat(Worker(), *claimed)->empty());
  EXPECT_EQ(*controller->Expire(), 0);
  Pass(50);
  EXPECT_EQ(*controller->Expire(), 0) << "the worker was heard 50 s ago";
  Pass(20);
  EXPECT_EQ(*controller->Expire(), 1);
}

// A controller was killed after it had written the work, and before the work could be claimed.
TEST_F(SpoolFolder, AnInterruptedAddIsFinishedByTheNext) {
  const auto queue = Open();
  ASSERT_EQ(*queue->Add(std::vector{Work("a")}), 1);
  for (const char* kind : {"todo", "added"})
    for (const auto& file : fs::recursive_directory_iterator(fs::path(place_) / kind))
      if (file.is_regular_file()) fs::remove(file);
  EXPECT_EQ(queue->Counts("run")->queued, 0);
  EXPECT_EQ(*queue->Add(std::vector{Work("a")}), 0);
  EXPECT_EQ(queue->Claim(Worker(), 1)->size(), 1U);
}

// A controller was killed between a token and the mark that it was added, and the token was claimed
// before the next controller came: the work has two tokens.
TEST_F(SpoolFolder, ASecondTokenDoesNotEndTheWorkTwice) {
  const auto queue = Open();
  ASSERT_EQ(*queue->Add(std::vector{Work("a")}), 1);
  const auto first = queue->Claim(Worker(), 1);
  for (const auto& file : fs::recursive_directory_iterator(fs::path(place_) / "added"))
    if (file.is_regular_file()) fs::remove(file);
  ASSERT_EQ(*queue->Add(std::vector{Work("a")}), 0);
  WorkerFacts other = Worker();
  other.name = "other";
  const auto second = queue->Claim(other, 1);
  ASSERT_EQ(second->size(), 1U);
  EXPECT_TRUE(*queue->End(other, second->front(), {"{}", "", false}));
  EXPECT_FALSE(*queue->End(Worker(), first->front(), {"{}", "", false}));
  EXPECT_EQ(queue->Ended("run", 0, 10)->size(), 1U);
}

// A server has a run for each job: none of it may be left once the job has ended.
TEST_F(SpoolFolder, NothingIsLeftOfARunThatIsForgotten) {
  const auto pilot = Open(), controller = Open();
  NewWork other = Work("b");
  other.run = "another run";
  ASSERT_TRUE(controller->Add(std::vector{Work("a"), other}));
  const auto first = pilot->Claim(Worker(), 1).value(), second = pilot->Claim(Worker(), 1).value();
  ASSERT_EQ(first[0].key + second[0].key, "ab");
  const std::string token = Names("claims")[0];
  EXPECT_TRUE(*pilot->End(Worker(), first[0], {"{}", "", false}));
  ASSERT_EQ(controller->Ended("run", 0, 9)->size(), 1U);
  controller->Forget("run");
  for (const char* kind : {"works", "added", "claims"}) EXPECT_THAT(Names(kind), SizeIs(1)) << kind;
  for (const char* kind : {"ends", "todo"}) EXPECT_THAT(Names(kind), IsEmpty()) << kind;
  EXPECT_FALSE(*pilot->End(Worker(), first[0], {"{}", "", false})) << "said a second time";

  // A pilot was killed between the end and the removal of its claim, which a silent worker's is.
  ASSERT_TRUE(SpoolFiles::Move(fs::path(place_) / "claims" / Names("claims")[0],
                               fs::path(place_) / "claims" / token));
  Pass(100);
  EXPECT_EQ(*controller->Expire(), 0) << "seen for the first time";
  Pass(100);
  EXPECT_EQ(*controller->Expire(), 1);
  EXPECT_THAT(*Open()->Claim(Worker(), 9), IsEmpty());
  EXPECT_THAT(Names("todo"), IsEmpty());
}

TEST_F(SpoolFolder, RefusesAFolderOfSomethingElse) {
  ASSERT_TRUE(WriteFileAtomically(fs::path(place_) / "thesis.tex", "x"));
  const auto queue = OpenQueue(place_, {});
  ASSERT_FALSE(queue);
  EXPECT_EQ(queue.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(queue.error().message, HasSubstr("thesis.tex"));
}

TEST_F(SpoolFolder, RefusesAQueueOfAnotherForm) {
  ASSERT_TRUE(
      WriteFileAtomically(fs::path(place_) / "assay-queue.json", R"({"schema":"assay.queue/7"})"));
  const auto queue = OpenQueue(place_, {});
  ASSERT_FALSE(queue);
  EXPECT_THAT(queue.error().message, HasSubstr("assay.queue/7"));
  EXPECT_THAT(queue.error().message, HasSubstr("assay.queue/1"));
}

TEST_F(SpoolFolder, AnUnusableFolderIsAnErrorThatNamesIt) {
  const auto queue = OpenQueue("/proc/no-queue", {});
  ASSERT_FALSE(queue);
  EXPECT_EQ(queue.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(queue.error().message, HasSubstr("/proc/no-queue"));
}

TEST_F(SpoolFolder, LeavesNoTemporaryFiles) {
  const auto queue = Open();
  ASSERT_TRUE(queue->Add(std::vector{Work("a"), Work("b")}));
  const auto claimed = queue->Claim(Worker(), 2);
  for (const ClaimedWork& work : *claimed)
    EXPECT_TRUE(*queue->End(Worker(), work, {"{}", "", false}));
  EXPECT_TRUE(queue->Workers());
  EXPECT_TRUE(Names("tmp").empty());
  EXPECT_TRUE(Names("todo").empty());
  EXPECT_TRUE(Names("claims").empty());
}

TEST(SpoolNames, ATokenIsReadAsItWasWritten) {
  const NewWork work{"run", "key", "group", "cuda", 7, "{}"};
  SpoolToken token{SpoolStem(work, 42), 2, 1, "0123456789abcdef"};
  const auto read = ParseSpoolToken(token.FileName());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->stem, token.stem);
  EXPECT_EQ(read->attempt, 2);
  EXPECT_EQ(read->failures, 1);
  EXPECT_EQ(read->worker, token.worker);
  EXPECT_EQ(read->device(), "cuda");
  EXPECT_EQ(read->priority(), "492");
  for (const char* name : {"", ".nfs0001", "a.1.2", "a-b-c-d-e-f.x.2", "a-b-c-d-e-f.1"})
    EXPECT_FALSE(ParseSpoolToken(name)) << name;
}

}  // namespace
}  // namespace assay
