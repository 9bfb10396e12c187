#include "serve/hall.h"

#include <gmock/gmock.h>

#include "archive/sqlite_store.h"
#include "base/hash.h"
#include "model/sample_verdicts.h"
#include "model/verdict_json.h"
#include "serve/private_file.h"
#include "serve/serve_testing.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HallTest : public ServeTest {
 protected:
  void OpenAgain() override {
    hall_.reset();
    auto hall = Hall::Open({.folder = place()}, Catalogue());
    ASSERT_TRUE(hall) << hall.error().message;
    hall_ = std::move(*hall);
  }
  // A job of ann's that a runner has.
  LeasedJob Running(const std::string& source) {
    Accounts accounts = hall_->accounts();
    auto ann = accounts.FindByName("ann").value();
    if (!ann) ann = accounts.Make("ann", Role::kStudent, 0, now_).value();
    NewJob asked;
    asked.author = *ann;
    asked.problem = "softmax";
    asked.size = "small";
    asked.name = "mine.cpp";
    asked.source_hash = hall_->archive().Put(source).value();
    EXPECT_EQ(hall_->jobs().Submit(asked, now_)->result, Submission::kAccepted);
    KnownRunner facts;
    facts.name = "local";
    facts.device = "cpu";
    const Account server = accounts.ServerAccount(now_).value();
    const KnownRunner runner = hall_->leases().Meet(server, facts, true, now_).value();
    return *hall_->leases().Take(runner, now_).value();
  }
  static std::string VerdictOn(const std::string& source, const std::string& id,
                               Outcome outcome = Outcome::kFaster) {
    Verdict verdict = SampleVerdict(outcome);
    verdict.id = id;
    verdict.problem.name = "softmax";
    verdict.problem.size.clear();
    verdict.candidate.hash = Sha256Hex(source);
    return VerdictToJson(verdict, -1);
  }
  std::vector<Record> Verdicts() {
    RecordQuery query;
    query.kind = RecordKind::kVerdict;
    query.oldest_first = true;
    return hall_->archive().Find(query).value();
  }

  std::unique_ptr<Hall> hall_;
};

TEST_F(HallTest, AVerdictThatEndsAJobIsInTheArchiveAndOnTheBoard) {
  const LeasedJob leased = Running("int a;");
  EXPECT_EQ(hall_->End(leased.job.id, leased.lease, VerdictOn("int a;", "ab12"), now_).value(),
            Ending::kCounted);
  ASSERT_EQ(Verdicts().size(), 1u);
  EXPECT_EQ(hall_->archive().Get(Verdicts()[0].source).value(), "int a;");
  const Board* board = hall_->CaughtUpBoard().value();
  const BoardRow* row = board->Find("ab12");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->entry.author, "ann");
  EXPECT_EQ(row->entry.job, leased.job.id);
  EXPECT_EQ(row->entry.size, "small");
  EXPECT_EQ(row->entry.runner, "local");
  EXPECT_FALSE(row->own_runner);
  EXPECT_GT(row->entry.ci_low, 1);
  const std::string before = row->entry.time;
  OpenAgain();
  EXPECT_EQ(hall_->CaughtUpBoard().value()->rows().size(), 1u);
  EXPECT_EQ(hall_->CaughtUpBoard().value()->Find("ab12")->entry.time, before);
}

TEST_F(HallTest, TwoArchivesAreNotMixed) {
  hall_.reset();
  const auto opened = [&](const std::string& archive) {
    const auto hall = Hall::Open({.folder = place(), .archive = archive}, Catalogue());
    return hall ? "" : hall.error().message;
  };
  const std::string url = "postgresql://me@127.0.0.1:1/hall";
  EXPECT_THAT(opened("other.sqlite"), HasSubstr("takes postgresql://"));
  EXPECT_THAT(opened(url), HasSubstr("copy it by assay archive copy"));
  std::filesystem::remove(place() + "/archive.sqlite");
  EXPECT_THAT(opened(url), HasSubstr("127.0.0.1"));  // nobody is there
  EXPECT_FALSE(std::filesystem::exists(place() + "/archive-place"));
  ASSERT_TRUE(WriteFileAtomically(place() + "/archive-place", "another@db/hall\n"));
  EXPECT_THAT(opened(""), HasSubstr("is another@db/hall: give it by --archive"));
  EXPECT_THAT(opened(url), HasSubstr("is another@db/hall, not postgresql://me@127.0.0.1:1/hall"));
}

TEST_F(HallTest, ATokensFileIsPrivateFromItsFirstInstant) {
  using std::filesystem::perms;
  const std::string path = folder_->path().string() + "/token";
  ASSERT_TRUE(WriteFileAtomically(path, "an older one, which others may read"));
  ASSERT_TRUE(WritePrivateFile(path, "secret\n"));
  EXPECT_EQ(std::filesystem::status(path).permissions(), perms::owner_read | perms::owner_write);
  EXPECT_EQ(ReadFile(path, 100).value(), "secret\n");
  EXPECT_FALSE(WritePrivateFile(path + "/none", "secret\n"));
}

// In a folder that was made before, by its default mode, others could read the archive.
TEST_F(HallTest, OthersReadNothingOfIt) {
  using std::filesystem::perms;
  hall_.reset();
  std::filesystem::remove_all(place());
  std::filesystem::create_directories(place());
  std::filesystem::permissions(place(), perms::owner_all | perms::others_all);
  const auto others_may = [&](const std::string& file) {
    const perms mode = std::filesystem::status(place() + "/" + file).permissions();
    return (mode & (perms::group_all | perms::others_all)) != perms::none;
  };
  OpenAgain();
  for (const char* file : {"archive.sqlite", "archive.sqlite-wal", "serve.sqlite"})
    EXPECT_FALSE(others_may(file)) << file;
  hall_.reset();
  // Those of an earlier version are mended.
  for (const char* file : {"archive.sqlite", "serve.sqlite"})
    std::filesystem::permissions(place() + "/" + file, perms::owner_all | perms::others_read);
  OpenAgain();
  for (const char* file : {"archive.sqlite", "archive.sqlite-wal", "serve.sqlite"})
    EXPECT_FALSE(others_may(file)) << file;
}

TEST_F(HallTest, TheBoardCanBeMadeAnew) {
  for (const std::string source : {"int a;", "int b;"}) {
    const LeasedJob leased = Running(source);
    const std::string id = source == "int a;" ? "aaaa" : "bbbb";
    ASSERT_TRUE(hall_->End(leased.job.id, leased.lease, VerdictOn(source, id), now_));
  }
  const auto times = [&] {
    std::vector<std::string> all;
    for (const BoardRow& row : hall_->CaughtUpBoard().value()->rows())
      all.push_back(row.entry.verdict + row.entry.author + row.entry.time);
    return all;
  };
  const auto before = times();
  ASSERT_TRUE(hall_->database().Number("DELETE FROM board"));
  ASSERT_TRUE(hall_->database().Number("DELETE FROM settings WHERE name = 'board sequence'"));
  OpenAgain();
  EXPECT_EQ(times(), before);
  EXPECT_EQ(before.size(), 2u);
}

TEST_F(HallTest, AnEndThatTheLastProcessDidNotFinishIsFinishedOnce) {
  const LeasedJob leased = Running("int a;");
  const std::string verdict = VerdictOn("int a;", "ab12");
  // The job has ended, and the process with it, before the archive heard of it...
  ASSERT_EQ(hall_->leases()
                .EndWithVerdict(leased.job.id, leased.lease, verdict, "ab12", "faster", now_)
                .value(),
            Ending::kCounted);
  EXPECT_TRUE(Verdicts().empty());
  OpenAgain();
  EXPECT_EQ(Verdicts().size(), 1u);
  // ...or after it, before that was noted.
  auto insert = hall_->database().Prepare("INSERT INTO endings(job, verdict) VALUES(?, ?)").value();
  ASSERT_TRUE(insert.Bind(leased.job.id).Bind(verdict).Step());
  OpenAgain();
  EXPECT_EQ(Verdicts().size(), 1u);
  EXPECT_EQ(hall_->End(leased.job.id, leased.lease, verdict, now_).value(), Ending::kRepeated);
}

TEST_F(HallTest, AVerdictOnSomethingElseIsRefusedAndTheJobGoesOn) {
  const LeasedJob leased = Running("int a;");
  const auto refusal = [&](const std::string& text) {
    const auto ended = hall_->End(leased.job.id, leased.lease, text, now_);
    return ended ? std::string("none") : ended.error().message;
  };
  EXPECT_THAT(refusal(VerdictOn("int b;", "ab12")), HasSubstr("another source"));
  EXPECT_THAT(refusal("{}"), HasSubstr("schema"));
  EXPECT_THAT(refusal(VerdictOn("int a;", "<script>")), HasSubstr("no id"));
  EXPECT_EQ(hall_->jobs().Find(leased.job.id).value()->state, JobState::kRunning);
  EXPECT_EQ(refusal(VerdictOn("int a;", "ab12")), "none");
  const LeasedJob next = Running("int a;");
  const auto again = hall_->End(next.job.id, next.lease, VerdictOn("int a;", "ab12"), now_);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("a record with this verdict's id"));
}

TEST_F(HallTest, VerdictsAgainstAnotherCandidateAreNotOnTheBoard) {
  Verdict verdict = SampleVerdict(Outcome::kFaster);
  const BaselineResult result = verdict.speed->baselines.begin()->second;
  verdict.speed->headline = "against";
  verdict.speed->baselines = {{"against", result}};
  NewRecord record;
  record.facts = {RecordKind::kVerdict, "a.cpp", verdict.id, "softmax", "faster"};
  record.content = VerdictToJson(verdict, -1);
  ASSERT_TRUE(hall_->archive().Append(std::vector{record}));
  EXPECT_TRUE(hall_->CaughtUpBoard().value()->rows().empty());
}

TEST_F(HallTest, ViewsStayUntilTheArchiveGrows) {
  const auto first = hall_->Standings({.p = 1}).value();
  EXPECT_EQ(hall_->Standings({.p = 1}).value(), first);
  EXPECT_NE(hall_->Standings({.p = 2}).value(), first);
  const LeasedJob leased = Running("int a;");
  ASSERT_TRUE(hall_->End(leased.job.id, leased.lease, VerdictOn("int a;", "ab12"), now_));
  const auto then = hall_->Standings({.p = 1}).value();
  EXPECT_NE(then, first);
  ASSERT_EQ(then->players.size(), 1u);
  EXPECT_EQ(then->players[0].name, "ann");
  EXPECT_EQ(hall_->BoardsOf({.problem = "softmax"}).value()->size(), 1u);
}

TEST_F(HallTest, ATextOfTheBoardIsWrittenOnceUntilTheArchiveGrows) {
  int written = 0;
  const auto write = [&]() -> Result<std::string> { return std::to_string(++written); };
  EXPECT_EQ(*hall_->TextOfBoard("page", {.p = 1}, write).value(), "1");
  EXPECT_EQ(*hall_->TextOfBoard("page", {.p = 1}, write).value(), "1");
  EXPECT_EQ(*hall_->TextOfBoard("page", {.p = 2}, write).value(), "2");
  EXPECT_EQ(*hall_->TextOfBoard("json", {.p = 1}, write).value(), "3");
  const LeasedJob leased = Running("int a;");
  ASSERT_TRUE(hall_->End(leased.job.id, leased.lease, VerdictOn("int a;", "ab12"), now_));
  EXPECT_EQ(*hall_->TextOfBoard("page", {.p = 1}, write).value(), "4");
  // An error is nobody's text.
  const auto fail = []() -> Result<std::string> { return UsageError("no"); };
  EXPECT_FALSE(hall_->TextOfBoard("page", {.p = 3}, fail));
  EXPECT_EQ(*hall_->TextOfBoard("page", {.p = 3}, write).value(), "5");
}

}  // namespace
}  // namespace assay
