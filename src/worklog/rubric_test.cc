#include "worklog/rubric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worklog/evidence.h"
#include "worklog/worklog_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;

Rubric Default() { return ParseRubric(DefaultRubricText(), "default").value(); }

Grade GradeOf(const Worklog& worklog, const Marks& marks = {}) {
  return GradeWorklog(worklog, CheckWorklog(worklog, GoodWitness(), ""), Default(), marks).value();
}

TEST(Rubric, TheShippedOneHasItsFourBuckets) {
  const Rubric rubric = Default();
  ASSERT_EQ(rubric.buckets.size(), 4u);
  const double points[] = {30, 30, 30, 10};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(rubric.buckets[i].Points(), points[i]);
}

TEST(Rubric, AWorklogThatLosesEveryRaceAndExplainsItHasAllPoints) {
  const Worklog worklog = LostMatch().Build();
  for (const VersionFact* version : worklog.match.Of(Player::kHand))
    ASSERT_LT(version->Speed()->ci_high, 1);
  const Grade grade = GradeOf(worklog);
  for (const GradedBucket& bucket : grade.buckets)
    for (const GradedLine& line : bucket.lines)
      EXPECT_TRUE(line.met) << line.line.text << ": " << line.found;
  EXPECT_EQ(grade.mark, 100);
}

TEST(Rubric, SpeedEarnsNothing) {
  MatchBuilder fast;
  fast.Predict(3).Measure(Player::kHand, "v1", "fast", SpeedVerdict("aaaaaaaaaaa1", 30));
  MatchBuilder slow;
  slow.Predict(3).Measure(Player::kHand, "v1", "fast", SpeedVerdict("aaaaaaaaaaa1", 0.3));
  EXPECT_LE(GradeOf(fast.Build()).mark, GradeOf(slow.Build()).mark + 3);
}

TEST(Rubric, WhatIsHiddenCostsAllHonestyUntilItIsLifted) {
  MatchBuilder builder = LostMatch();
  builder.words().versions.erase(builder.words().versions.begin());
  const Worklog worklog = builder.Build();
  Marks marks;
  marks.points["honesty"] = 10;
  EXPECT_EQ(GradeOf(worklog, marks).buckets.back().mark, 0);
  EXPECT_FALSE(GradeOf(worklog).suspicious.empty());
  marks.lifted = "v1 was the mentor's demonstration";
  const Grade grade = GradeOf(worklog, marks);
  EXPECT_EQ(grade.buckets.back().mark, 10);
  EXPECT_THAT(RenderGrade(grade, worklog), HasSubstr("lifted by the mentor"));
}

TEST(Rubric, AMarkForHonestyIsKeptUntilTheLift) {
  MatchBuilder builder = LostMatch();
  builder.words().versions.erase(builder.words().versions.begin());
  const Worklog worklog = builder.Build();
  Marks marks;
  marks.points["honesty"] = 9;
  const Grade grade = GradeOf(worklog, marks);
  EXPECT_EQ(grade.buckets.back().mark, 0);
  EXPECT_EQ(WithheldText(grade),
            "honesty stays 0 until what is suspicious is lifted by --lift WHY; your mark of 9 is "
            "kept, and counts from then on");
  EXPECT_THAT(RenderGrade(grade, worklog), HasSubstr(WithheldText(grade)));
  marks.lifted = "v1 was my demonstration";
  EXPECT_EQ(WithheldText(GradeOf(worklog, marks)), "");
  EXPECT_EQ(GradeOf(worklog, marks).buckets.back().mark, 9);
}

TEST(Rubric, ALiftIsAboutWhatTheMentorSaw) {
  MatchBuilder builder = LostMatch();
  builder.words().versions.erase(builder.words().versions.begin());
  const Worklog worklog = builder.Build();
  Witness witness = GoodWitness();
  std::vector<Finding> findings = CheckWorklog(worklog, witness, "");
  Marks marks;
  marks.mentor = "M";
  marks.lifted = "v1 was my demonstration";
  for (const Finding& finding : findings)
    if (finding.kind == FindingKind::kSuspicious) marks.lifted_findings.push_back(finding.text);
  ASSERT_EQ(marks.lifted_findings.size(), 1u);
  findings = LiftFindings(findings, marks);
  EXPECT_FALSE(Any(findings, FindingKind::kSuspicious));
  EXPECT_TRUE(Any(findings, FindingKind::kLifted));
  const Grade lifted = GradeWorklog(worklog, findings, Default(), marks).value();
  EXPECT_EQ(lifted.buckets.back().mark, 10);  // without a mark: nothing else speaks against it
  EXPECT_EQ(lifted.lift, "lifted by M: v1 was my demonstration");
  // A later finding was never lifted.
  witness.outside = {"cccccccccccc"};
  const Grade later =
      GradeWorklog(worklog, CheckWorklog(worklog, witness, ""), Default(), marks).value();
  EXPECT_FALSE(later.lifted);
  EXPECT_EQ(later.open.size(), 1u);
  EXPECT_EQ(later.suspicious.size(), 2u);
  EXPECT_EQ(later.buckets.back().mark, 0);
}

TEST(Rubric, MarksStandAboveTheEvidence) {
  Marks marks;
  marks.points["depth"] = 12.5;
  const Grade grade = GradeOf(LostMatch().Build(), marks);
  EXPECT_EQ(grade.mark, 82.5);
  EXPECT_TRUE(grade.buckets[1].marked);
  EXPECT_EQ(grade.buckets[1].proposed, 30);
}

TEST(Rubric, AMarkMustFitItsBucket) {
  const Worklog worklog = LostMatch().Build();
  const auto findings = CheckWorklog(worklog, GoodWitness(), "");
  Marks marks;
  marks.points["depth"] = 31;
  EXPECT_THAT(GradeWorklog(worklog, findings, Default(), marks).error().message,
              HasSubstr("depth takes 0 to 30 points, not 31"));
  marks.points = {{"style", 3}};
  EXPECT_THAT(GradeWorklog(worklog, findings, Default(), marks).error().message,
              HasSubstr("the rubric has no bucket style; it has correctness (30)"));
}

TEST(Rubric, AModelThatNeverGetsItRightIsAResult) {
  MatchBuilder builder = LostMatch();
  Worklog worklog = builder.Build();
  Verdict wrong = SampleVerdict(Outcome::kWrong);
  for (VersionFact& version : worklog.match.versions)
    if (version.said.player == Player::kModel) version.verdict = wrong;
  const EvidenceRule* rule = FindEvidence("model-gates");
  EXPECT_TRUE(rule->look(worklog, {}).met);
  worklog.words.stuck.pop_back();
  EXPECT_FALSE(rule->look(worklog, {}).met);
}

// Sources that do not compile, with words of 38 points around them.
TEST(Rubric, WhatDidNotPassGivesNoPoints) {
  Worklog worklog = LostMatch().Build();
  const auto mark_of = [&] { return GradeOf(worklog, {}).mark; };
  EXPECT_EQ(mark_of(), 100);
  const auto fail = [&](Player player) {
    for (VersionFact& version : worklog.match.versions)
      if (version.said.player == player) {
        version.verdict = SampleVerdict(Outcome::kBuildFailed);
        version.verdict->correctness.reset();
      }
  };
  fail(Player::kHand);
  for (const char* line : {"hand-correct", "three-versions", "whys-tied", "hand-stuck",
                           "both-measured", "gap-explained"}) {
    const LineEvidence evidence = FindEvidence(line)->look(worklog, {});
    EXPECT_FALSE(evidence.met) << line << ": " << evidence.found;
  }
  EXPECT_LT(mark_of(), 50);
  fail(Player::kModel);
  EXPECT_EQ(mark_of(), 0);
}

TEST(Rubric, ThreeVersionsMustHavePassed) {
  Worklog worklog = LostMatch().Build();
  EXPECT_TRUE(FindEvidence("three-versions")->look(worklog, {}).met);
  for (VersionFact& version : worklog.match.versions)
    if (version.said.version == "v2") version.verdict = SampleVerdict(Outcome::kWrong);
  const LineEvidence evidence = FindEvidence("three-versions")->look(worklog, {});
  EXPECT_FALSE(evidence.met);
  EXPECT_EQ(evidence.found, "2 versions by hand passed gate 1");
}

TEST(Rubric, LossesMustBeStated) {
  MatchBuilder builder = LostMatch();
  builder.words().prose[static_cast<size_t>(Section::kHeadToHead)] = "All is well, by 3 of 4.";
  const LineEvidence evidence = FindEvidence("losses-stated")->look(builder.Build(), {});
  EXPECT_FALSE(evidence.met);
  EXPECT_THAT(evidence.found, HasSubstr("lost against the model and the reference"));
}

TEST(Rubric, AMentorMayChangeIt) {
  const auto rubric = ParseRubric(
      "schema = \"assay.rubric/1\"\n[[bucket]]\nkey = \"style\"\nname = \"Style\"\n"
      "line = [{points = 5, text = \"reads well\"}]\n",
      "rubric.toml");
  ASSERT_TRUE(rubric) << rubric.error().message;
  const Worklog worklog = LostMatch().Build();
  Marks marks;
  EXPECT_EQ(GradeWorklog(worklog, {}, *rubric, marks)->mark, 0);
  marks.points["style"] = 4;
  EXPECT_EQ(GradeWorklog(worklog, {}, *rubric, marks)->mark, 4);
}

TEST(Rubric, FaultsNameTheLine) {
  const auto fault = [](const std::string& text) {
    const auto rubric = ParseRubric("schema = \"assay.rubric/1\"\n" + text, "r.toml");
    return rubric ? std::string("none") : rubric.error().message;
  };
  EXPECT_THAT(fault(""), HasSubstr("at least one [[bucket]]"));
  EXPECT_THAT(fault("[[bucket]]\nkey = \"a\"\n"), HasSubstr("a key and a name"));
  EXPECT_THAT(fault("[[bucket]]\nkey = \"a\"\nname = \"A\"\nline = [{evidence = \"luck\", points = "
                    "1, text = \"t\"}]\n"),
              HasSubstr("no such evidence: luck"));
  EXPECT_THAT(
      fault("[[bucket]]\nkey = \"a\"\nname = \"A\"\nline = [{points = -1, text = \"t\"}]\n"),
      HasSubstr("line 5: points"));
  EXPECT_THAT(fault("[bucket"), HasSubstr("mend the line"));
}

TEST(Rubric, MarksComeBackAsTheyWere) {
  Marks marks{"0123456789ab",
              "ff",
              "A \"mentor\"",
              "note",
              "why",
              {"v1 is \"missing\"", "b"},
              {{"depth", 12.5}, {"honesty", 0}}};
  const auto read = ParseMarks(MarksText(marks), "marks.toml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(MarksText(*read), MarksText(marks));
  EXPECT_FALSE(ParseMarks("schema = \"assay.marks/1\"\n[points]\ndepth = \"many\"\n", "m"));
}

TEST(Rubric, ANoteIsAddedToNotesThatStand) {
  Marks marks;
  AddBelow("show v2's \\profile", &marks.note);
  AddBelow("and \"why\"", &marks.note);
  AddBelow("and \"why\"", &marks.note);  // the same command twice
  EXPECT_EQ(marks.note, "show v2's \\profile\nand \"why\"");
  EXPECT_EQ(ParseMarks(MarksText(marks), "marks.toml")->note, marks.note);
}

TEST(Rubric, CsvHasALineAWorklog) {
  MatchBuilder builder = LostMatch();
  builder.words().author = "=HYPERLINK(\"x\"), \"A\"";
  const Worklog worklog = builder.Build();
  const Grade grade = GradeOf(worklog);
  EXPECT_THAT(GradeCsvHeader(grade), HasSubstr("folder,worklog,author,problem,correctness"));
  EXPECT_EQ(GradeCsvLine(grade, worklog, "a,b"),
            "\"a,b\",0123456789ab,\"'=HYPERLINK(\"\"x\"\"), \"\"A\"\"\",softmax,not marked,30,"
            "not marked,30,not marked,30,not marked,10,not marked,100,0,no\n");
}

TEST(Rubric, WhatNobodyMarkedIsNoMark) {
  const Worklog worklog = LostMatch().Build();
  Marks marks;
  EXPECT_EQ(TotalText(GradeOf(worklog)), "not marked");
  marks.points["depth"] = 25;
  const Grade some = GradeOf(worklog, marks);
  EXPECT_EQ(TotalText(some), "25 of 30; not marked: correctness, analysis, honesty");
  EXPECT_THAT(RenderGrade(some, worklog),
              HasSubstr("depth, Depth of the attempt by hand: 25; evidence for 30 of 30"));
  EXPECT_THAT(RenderGrade(some, worklog), HasSubstr(": not marked; evidence for 10 of 10"));
  EXPECT_THAT(GradeCsvLine(some, worklog, "a"), HasSubstr(",not marked,30,25,30,not marked,30,"));
  for (const char* key : {"correctness", "analysis"}) marks.points[key] = 20;
  marks.points["honesty"] = 10;
  EXPECT_EQ(TotalText(GradeOf(worklog, marks)), "75 of 100");
  EXPECT_THAT(GradeCsvLine(GradeOf(worklog, marks), worklog, "a"), HasSubstr(",75,100,0,no"));
  EXPECT_EQ(BucketKeys(Default()), "correctness (30), depth (30), analysis (30), honesty (10)");
}

}  // namespace
}  // namespace assay
