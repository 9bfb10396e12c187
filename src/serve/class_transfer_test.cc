#include "serve/class_transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "model/sample_verdicts.h"
#include "model/verdict_json.h"
#include "serve/class_room.h"
#include "serve/class_testing.h"
#include "serve/serve_testing.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two servers: a class is made on the first one, and goes to the second.
class ClassTransferTest : public testing::Test {
 protected:
  ClassTransferTest() : folder_(TemporaryFolder::Create().value()) {
    here_ = Hall::Open({.folder = folder_.path().string() + "/here"}, Catalogue()).value();
    there_ = Hall::Open({.folder = folder_.path().string() + "/there"}, Catalogue()).value();
    ClassRoom room(*here_, Tars());
    of_ = room.classes.Make({"kernels", now_.utc_s + 1000, 3, 9, ""}, now_).value();
    ada_ = room.accounts.Make("ada", Role::kStudent, of_.id, now_).value();
    mentor_ = room.accounts.Make("M. Entor", Role::kMentor, 0, now_).value();
    there_mentor_ =
        ClassRoom(*there_, Tars()).accounts.Make("root", Role::kMentor, 0, now_).value();
  }

  Job Judge(const std::string& source, const std::string& id) {
    NewJob asked;
    asked.author = ada_;
    asked.problem = "softmax";
    asked.size = "small";
    asked.name = "mine.cpp";
    asked.source_hash = here_->archive().Put(source).value();
    EXPECT_EQ(here_->jobs().Submit(asked, now_)->result, Submission::kAccepted);
    KnownRunner facts;
    facts.name = "local";
    facts.device = "cpu";
    const Account server = here_->accounts().ServerAccount(now_).value();
    const KnownRunner runner = here_->leases().Meet(server, facts, true, now_).value();
    const LeasedJob leased = *here_->leases().Take(runner, now_).value();
    Verdict verdict = SampleVerdict(Outcome::kFaster);
    verdict.id = id;
    verdict.problem.name = "softmax";
    verdict.problem.size.clear();
    verdict.candidate.hash = Sha256Hex(source);
    EXPECT_EQ(here_->End(leased.job.id, leased.lease, VerdictToJson(verdict, -1), now_).value(),
              Ending::kCounted);
    return *here_->jobs().Find(leased.job.id).value();
  }
  void SendWorklog(MatchBuilder builder) {
    ClassRoom room(*here_, Tars());
    const std::vector<TarFile> files = FilesOf(builder);
    const auto entry =
        room.worklogs.Keep(ada_, of_, files, ReadUploadedWorklog(files).value(), now_).value();
    Marks marks;
    marks.points["depth"] = 25;
    const KeptMarks last = room.grades.Last(entry.id).value();
    EXPECT_TRUE(room.grades.Give(entry, of_, marks, {last.revision, entry.uploads}, mentor_, now_));
  }
  std::string Exported() {
    ClassRoom room(*here_, Tars());
    return ExportClass(room.parts, of_, now_).value();
  }
  Granted<ImportedClass> Import(const std::string& bytes) {
    ClassRoom room(*there_, Tars());
    return ImportClass(room.parts, bytes, there_mentor_, now_);
  }
  // The class file with a change to its files.
  std::string Changed(const std::function<void(std::vector<TarFile>*)>& change) {
    std::vector<TarFile> files = Tars().Read(Exported(), kClassFileLimits).value();
    change(&files);
    return Tars().Write(files, TarForm::kGzip).value();
  }

  TemporaryFolder folder_;
  Instant now_{1'800'000'000, 5000};
  std::unique_ptr<Hall> here_, there_;
  Class of_;
  Account ada_, mentor_, there_mentor_;
};

TEST_F(ClassTransferTest, AnotherServerHasAllOfTheClass) {
  Judge("int a;", "ab12");
  MatchBuilder builder = LostMatch();
  SendWorklog(builder);
  builder.Measure(Player::kHand, "v4", "at 3 us", SpeedVerdict("aaaaaaaaaaa4", 1.1));
  SendWorklog(builder);
  const auto imported = Import(Exported());
  ASSERT_TRUE(imported) << imported.error().why;
  EXPECT_EQ(imported->members, 2U);  // the mentor who marked comes along
  EXPECT_EQ(imported->jobs, 1U);
  EXPECT_EQ(imported->worklogs, 1U);
  EXPECT_TRUE(imported->renamed.empty());

  ClassRoom room(*there_, Tars());
  const Class of = *room.classes.Find(imported->made.id).value();
  EXPECT_EQ(of.terms.name, "kernels");
  EXPECT_EQ(of.key, of_.key);
  const auto entries = room.worklogs.OfClass(of.id).value();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].uploads, 2);
  const auto marks = room.grades.All(entries[0].id).value();
  ASSERT_EQ(marks.size(), 2U);
  EXPECT_EQ(marks[1].mentor, "M. Entor");
  EXPECT_EQ(marks[1].marks.points.at("depth"), 25);
  // Both sheets say the same.
  ClassRoom here(*here_, Tars());
  EXPECT_EQ(SheetOfClass(room.parts, of).value(), SheetOfClass(here.parts, of_).value());
  // The verdict stands on the board, and nobody takes it for the server's own.
  ASSERT_TRUE(there_->Settle());
  const Board* board = there_->CaughtUpBoard().value();
  const BoardRow* row = board->Find("ab12");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->entry.author, "ada");
  EXPECT_EQ(row->entry.runner, "imported");
  EXPECT_TRUE(row->own_runner);
  EXPECT_EQ(there_->archive().Get(row->entry.source_hash).value(), "int a;");
}

TEST_F(ClassTransferTest, AClassComesOnce) {
  Judge("int a;", "ab12");
  const std::string file = Exported();
  ASSERT_TRUE(Import(file));
  const auto again = Import(file);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().status, 409);
  EXPECT_EQ(there_->accounts().All()->size(), 2U);
  // Nor onto the server that it is from.
  ClassRoom room(*here_, Tars());
  EXPECT_EQ(ImportClass(room.parts, file, mentor_, now_).error().status, 409);
}

TEST_F(ClassTransferTest, NamesThatAreTakenGetANumber) {
  there_->accounts().Make("Ada", Role::kStudent, 0, now_).value();
  const auto imported = Import(Exported());
  ASSERT_TRUE(imported) << imported.error().why;
  EXPECT_THAT(imported->renamed,
              ElementsAre(std::pair<std::string, std::string>("ada", "ada (2)")));
  EXPECT_EQ(there_->accounts().FindByName("ada (2)").value()->class_id, imported->made.id);
}

TEST_F(ClassTransferTest, TheFileHasNoSecrets) {
  ClassRoom room(*here_, Tars());
  const auto invited = room.classes.Invite(of_, {}, now_).value();
  const auto joined = room.classes.Join(invited.code, "bob", now_).value();
  const auto files = Tars().Read(Exported(), kClassFileLimits).value();
  for (const TarFile& file : files)
    for (const std::string& secret :
         {invited.code, joined.token, Sha256Hex(invited.code), Sha256Hex(joined.token)})
      EXPECT_EQ(file.content.find(secret), std::string::npos) << file.path;
}

TEST_F(ClassTransferTest, PeopleReadItWithoutAssay) {
  SendWorklog(LostMatch());
  std::vector<std::string> paths;
  const std::vector<TarFile> files = Tars().Read(Exported(), kClassFileLimits).value();
  for (const TarFile& file : files) paths.push_back(file.path);
  EXPECT_THAT(paths,
              testing::IsSupersetOf({"README", "class.json", "rubric.toml", "sheet.csv",
                                     "worklogs/1/worklog.toml", "worklogs/1/facts.jsonl",
                                     "worklogs/1/marks.toml", "worklogs/1/versions/v1.cpp"}));
}

TEST_F(ClassTransferTest, ChangedFilesAreRefusedAndNothingComesIn) {
  Judge("int a;", "ab12");
  SendWorklog(LostMatch());
  const auto edit = [](std::string_view beginning, std::string_view from, std::string_view to) {
    return [=](std::vector<TarFile>* files) {
      for (TarFile& file : *files)
        if (const size_t at = file.content.find(from);
            file.path.starts_with(beginning) && at != std::string::npos)
          file.content.replace(at, from.size(), to);
    };
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {Changed(edit("sources/", "int a", "int b")), "was changed"},
      {Changed(edit("worklogs/1/facts", "Three", "Seven")), "missing or was changed"},
      {Changed(edit("class.json", "assay.class/1", "assay.class/9")), "newer version"},
      {Changed(edit("class.json", "\"judge\"", "\"hack\"")), "judge"},
      {Changed(edit("class.json", "\"author\": \"ada\"", "\"author\": \"eve\"")), "no member"},
      {Changed(edit("class.json", "\"finalists\": []",
                    R"("finalists": [{"author": "ada", "board": "b", "best": 1, "job": 1},)"
                    R"( {"author": "ada", "board": "b", "best": 1, "job": 1}])")),
       "is there twice"},
      {Changed(edit("verdicts/", "ab12", "ab13")), "not on its source"},
      {Changed([](auto* files) {
         std::erase_if(*files, [](auto& file) { return file.path.starts_with("verdicts/"); });
       }),
       "is missing"},
      {Changed([](auto* files) {
         std::erase_if(*files, [](auto& file) { return file.path == "class.json"; });
       }),
       "no class.json"},
      {"not a tar", "no whole tar"}};
  for (const auto& [bytes, why] : cases) {
    const auto imported = Import(bytes);
    ASSERT_FALSE(imported) << why;
    EXPECT_EQ(imported.error().status, 400);
    EXPECT_THAT(imported.error().why, HasSubstr(why));
  }
  ClassRoom room(*there_, Tars());
  EXPECT_TRUE(room.classes.All()->empty());
  EXPECT_EQ(room.accounts.All()->size(), 1U);
}

TEST_F(ClassTransferTest, JobsThatHaveNotEndedStayBehind) {
  Judge("int a;", "ab12");
  NewJob asked;
  asked.author = ada_;
  asked.problem = "softmax";
  asked.name = "b.cpp";
  asked.source_hash = here_->archive().Put("int b;").value();
  ASSERT_TRUE(here_->jobs().Submit(asked, now_));
  EXPECT_EQ(Import(Exported())->jobs, 1U);
}

TEST_F(ClassTransferTest, RulesOfTheClassHoldInTheHall) {
  UseRulesOfClasses(*here_);
  const Job job = Judge("int a;", "ab12");
  const Board* board = here_->CaughtUpBoard().value();
  const BoardEntry entry = board->Find("ab12")->entry;
  const Account bob = here_->accounts().Make("bob", Role::kStudent, of_.id, now_).value();
  EXPECT_EQ(here_->source_hidden_until_s(ada_, entry, now_).value(), 0);
  EXPECT_EQ(here_->source_hidden_until_s(bob, entry, now_).value(), of_.terms.deadline_s);
  // A mentor who judged it again, or beside another one, showed it to all.
  const Account mentor = here_->accounts().Make("head", Role::kMentor, 0, now_).value();
  BoardEntry repeat = entry;
  repeat.author = mentor.name;
  repeat.job = 0;
  EXPECT_EQ(here_->source_hidden_until_s(ada_, repeat, now_).value(), 0);
  EXPECT_EQ(here_->source_hidden_until_s(mentor, repeat, now_).value(), 0);
  EXPECT_EQ(here_->source_hidden_until_s(bob, repeat, now_).value(), of_.terms.deadline_s);
  NewJob compare;
  compare.author = mentor;
  compare.kind = JobKind::kCompare;
  compare.problem = job.problem;
  compare.name = "b.cpp";
  compare.source_hash = here_->archive().Put("int bobs;").value();
  compare.opponent_hash = job.source_hash;
  NewJob bobs = compare;
  bobs.author = bob;
  bobs.kind = JobKind::kJudge;
  bobs.opponent_hash.clear();
  ASSERT_TRUE(here_->jobs().Submit(bobs, now_));
  repeat.job = here_->jobs().Submit(compare, now_)->job.id;
  repeat.source_hash = compare.source_hash;
  for (const Account& one : {ada_, bob})
    EXPECT_EQ(here_->source_hidden_until_s(one, repeat, now_).value(), of_.terms.deadline_s);
  EXPECT_EQ(here_->source_hidden_until_s(mentor, repeat, now_).value(), 0);
  here_->jobs().Cancel(2, now_).value();
  EXPECT_EQ(here_->submit_terms(ada_, now_)->deadline_s, of_.terms.deadline_s);
  EXPECT_EQ(here_->submit_terms(ada_, now_)->limits.made_a_day_max, 3);
  EXPECT_EQ(here_->submit_terms(ada_, now_)->refusal, "");
  now_.utc_s += 1000;
  EXPECT_EQ(here_->source_hidden_until_s(bob, entry, now_).value(), 0);
  EXPECT_THAT(here_->submit_terms(ada_, now_)->refusal, HasSubstr("is over"));
  EXPECT_EQ(TendClasses(*here_, now_).value(), 1);
  EXPECT_EQ(TendClasses(*here_, now_).value(), 0);
}

}  // namespace
}  // namespace assay
