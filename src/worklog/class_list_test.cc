#include "worklog/class_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "worklog/class_page.h"
#include "worklog/worklog_testing.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Rubric StyleRubric() {
  return ParseRubric(
             "schema = \"assay.rubric/1\"\n[[bucket]]\nkey = \"style\"\nname = \"Style\"\n"
             "line = [{points = 5, text = \"reads well\"}]\n",
             "rubric.toml")
      .value();
}

// A class whose worklogs have ids and sources of their own, unless a test says otherwise.
class ClassList : public testing::Test {
 protected:
  ClassEntry& Add(const std::string& folder, const std::string& author,
                  const Rubric& rubric = ParseRubric(DefaultRubricText(), "default").value()) {
    Worklog worklog = LostMatch().Build();
    worklog.words.author = author;
    worklog.words.id = folder;
    for (VersionFact& version : worklog.match.versions)
      if (version.said.player == Player::kHand) version.said.source_hash += folder;
    worklogs_.push_back(std::move(worklog));
    grades_.push_back(GradeWorklog(worklogs_.back(), {}, rubric, {}).value());
    entries_.push_back({folder, &worklogs_.back(), &grades_.back(), "", "", "", {}});
    return entries_.back();
  }

  void AddBroken(const std::string& folder) {
    ClassEntry entry;
    entry.folder = folder;
    entry.trouble = "facts.jsonl line 6: the fact was changed";
    entries_.push_back(entry);
  }

  std::deque<Worklog> worklogs_;
  std::deque<Grade> grades_;
  std::vector<ClassEntry> entries_;
};

TEST_F(ClassList, ABrokenFolderHidesNobody) {
  Add("a", "Ada");
  AddBroken("b");
  Add("c", "Carl");
  const std::string table = ClassTable(entries_);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 5);  // head, three worklogs, summary
  EXPECT_THAT(table, HasSubstr("not graded: facts.jsonl line 6: the fact was changed"));
  EXPECT_THAT(table, HasSubstr("3 worklogs: 1 not graded, 0 suspicious, 0 alike, 2 not fully"));
  const std::string csv = ClassCsv(entries_);
  EXPECT_THAT(csv, HasSubstr("\na,a,Ada,softmax,not marked,"));
  EXPECT_THAT(csv, HasSubstr("\nb,,,,not graded,"));
  EXPECT_THAT(csv, HasSubstr("\nc,c,Carl,softmax,"));
  std::vector<long> columns;
  for (size_t at = 0, end; (end = csv.find('\n', at)) != std::string::npos; at = end + 1)
    columns.push_back(std::ranges::count(csv.substr(at, end - at), ','));
  EXPECT_THAT(columns, testing::Each(columns.front()));
  const std::string page = RenderClassPage(entries_);
  EXPECT_THAT(page, HasSubstr("the fact was changed"));
  EXPECT_THAT(page, HasSubstr("Carl"));
}

TEST_F(ClassList, AllMayBeBroken) {
  AddBroken("b");
  EXPECT_THAT(ClassCsv(entries_), HasSubstr("\nb,,,,not graded,,,,"));
  EXPECT_THAT(RenderClassPage(entries_), HasSubstr("not graded"));
}

TEST_F(ClassList, OneWorklogInTwoFoldersIsTold) {
  Add("a", "Ada");
  Add("b", "Bob");
  Add("c", "Carl");
  worklogs_[1].words.id = "a";
  FindAlike(entries_);
  EXPECT_THAT(entries_[0].alike, ElementsAre("the same worklog, by its id, as b (Bob)"));
  EXPECT_THAT(entries_[1].alike, ElementsAre("the same worklog, by its id, as a (Ada)"));
  EXPECT_THAT(entries_[2].alike, IsEmpty());
  EXPECT_THAT(ClassTable(entries_), HasSubstr("2 alike"));
  EXPECT_THAT(ClassCsv(entries_), HasSubstr("as b (Bob)"));
  EXPECT_THAT(RenderClassPage(entries_), HasSubstr("as b (Bob)"));
}

TEST_F(ClassList, SourcesOfAnotherAuthorAreTold) {
  Add("a", "Ada");
  Add("b", "Bob");
  Add("a2", "Ada");
  const auto hash = [&](size_t worklog, size_t version) -> std::string& {
    return worklogs_[worklog].match.versions[version].said.source_hash;
  };
  hash(1, 0) = hash(0, 0);
  hash(1, 2) = hash(0, 1);
  hash(2, 2) = hash(0, 2);  // her own
  FindAlike(entries_);
  EXPECT_THAT(entries_[1].alike, ElementsAre("the sources of v1, v3 are also in a (Ada)"));
  EXPECT_THAT(entries_[0].alike, ElementsAre("the sources of v1, v2 are also in b (Bob)"));
  // The model's answer is the same in all three, which is nobody's copy.
  EXPECT_THAT(entries_[2].alike, IsEmpty());
}

TEST_F(ClassList, ARubricOfOnesOwnIsSetApart) {
  Add("a", "Ada", StyleRubric());
  Add("b", "Bob");
  Add("c", "Carl");
  SetOtherRubricsApart(entries_);
  EXPECT_EQ(entries_[0].grade, nullptr);
  EXPECT_THAT(entries_[0].trouble, HasSubstr("--rubric FILE"));
  EXPECT_NE(entries_[1].grade, nullptr);
  EXPECT_THAT(ClassCsv(entries_), HasSubstr("\na,a,Ada,softmax,not graded,"));
}

TEST_F(ClassList, AClassFitsAScreen) {
  for (int i = 0; i < 30; ++i) Add("class/" + std::to_string(i), "A");
  grades_[3].open = {std::string(500, 'x')};
  grades_[4].lift = "lifted by M: a demonstration";
  const std::string table = ClassTable(entries_);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 32);
  EXPECT_THAT(table, HasSubstr("not marked  suspicious: xxx"));
  EXPECT_THAT(table, HasSubstr("lifted by M: a demonstration"));
  EXPECT_THAT(table, Not(HasSubstr(std::string(100, 'x'))));
}

}  // namespace
}  // namespace assay
