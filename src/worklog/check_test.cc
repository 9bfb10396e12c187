#include "worklog/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worklog/markdown.h"
#include "worklog/page.h"
#include "worklog/seal.h"
#include "worklog/worklog_testing.h"

namespace assay {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Texts(const Worklog& worklog, FindingKind kind,
                               const Witness& witness = GoodWitness()) {
  std::vector<std::string> texts;
  for (const Finding& finding : CheckWorklog(worklog, witness, ""))
    if (finding.kind == kind) texts.push_back(finding.text);
  return texts;
}

TEST(Check, ACompleteWorklogHasNoFinding) {
  Worklog worklog = LostMatch().Build();
  worklog.markdown = RenderMarkdown(worklog);
  for (const Finding& finding : CheckWorklog(worklog, GoodWitness(), worklog.markdown))
    ADD_FAILURE() << finding.text;
}

TEST(Check, AnEmptyMatchLacksEverySection) {
  const auto missing = Texts(MatchBuilder().Build(), FindingKind::kMissing);
  for (const char* text :
       {"nothing is predicted", "no version was written by hand", "no model has tried",
        "the gap is not explained", "it is not said what you got stuck on",
        "it is not said what the model got stuck on"})
    EXPECT_THAT(missing, Contains(HasSubstr(text)));
}

TEST(Check, EachFindingOfWhatIsMissingHasACommand) {
  for (const Finding& finding : CheckWorklog(MatchBuilder().Build(), GoodWitness(), "x"))
    EXPECT_TRUE(finding.kind != FindingKind::kMissing || !finding.next.empty()) << finding.text;
}

TEST(Check, AnEditedNumberIsTold) {
  MatchBuilder builder = LostMatch();
  builder.words().predictions[0].ratio = 0.9;
  EXPECT_THAT(Texts(builder.Build(), FindingKind::kChanged),
              Contains("worklog.toml predicts 0.900x; sealed was 2.00x"));
  Worklog worklog = LostMatch().Build();
  const std::string rendered = RenderMarkdown(worklog);
  const auto has = [&](FindingKind kind, const char* text) {
    for (const Finding& finding : CheckWorklog(worklog, GoodWitness(), rendered))
      if (finding.kind == kind && finding.text.find(text) != std::string::npos) return true;
    return false;
  };
  worklog.markdown = rendered;
  worklog.markdown.replace(worklog.markdown.find("0.900x"), 6, "1.900x");
  EXPECT_TRUE(has(FindingKind::kChanged, "worklog.md was edited: line "));
  worklog.markdown = WithSeal("an older state\n", "");
  EXPECT_TRUE(has(FindingKind::kMissing, "worklog.md is older"));
  EXPECT_FALSE(has(FindingKind::kChanged, "worklog.md"));
  worklog.markdown = rendered;
  worklog.page = RenderWorklogPage(worklog, PageKind::kReport, Sha256Hex(rendered));
  EXPECT_FALSE(has(FindingKind::kChanged, "worklog."));
  EXPECT_FALSE(has(FindingKind::kMissing, "worklog."));
  worklog.page.replace(worklog.page.find("0.900x"), 6, "1.900x");
  EXPECT_TRUE(has(FindingKind::kChanged, "worklog.html was edited"));
  worklog.page = RenderWorklogPage(worklog, PageKind::kReport, "another");
  EXPECT_TRUE(has(FindingKind::kMissing, "worklog.html is older"));
}

TEST(Check, AnAttemptThatIsLeftOutIsSuspicious) {
  MatchBuilder builder = LostMatch();
  builder.words().versions.erase(builder.words().versions.begin() + 1);
  EXPECT_THAT(Texts(builder.Build(), FindingKind::kSuspicious),
              Contains("v2 was attempted (record 6, verdict aaaaaaaaaaa2), and worklog.toml leaves "
                       "it out"));
}

TEST(Check, AVersionThatWasNeverMeasuredIsTold) {
  MatchBuilder builder = LostMatch();
  builder.words().versions.push_back({"v9", "versions/v9.cpp", "ff", "why"});
  EXPECT_THAT(Texts(builder.Build(), FindingKind::kChanged),
              Contains("worklog.toml has v9, which was never measured"));
}

TEST(Check, ASourceThatWasChangedIsTold) {
  Worklog worklog = LostMatch().Build();
  worklog.sources["versions/v1.cpp"] += "// more\n";
  worklog.sources.erase("versions/v2.cpp");
  const auto changed = Texts(worklog, FindingKind::kChanged);
  EXPECT_THAT(changed, Contains("versions/v1.cpp is not what was measured as v1"));
  EXPECT_THAT(changed, Contains("versions/v2.cpp, the source of v2, is not there"));
}

TEST(Check, VerdictsElsewhereAreSuspicious) {
  Witness witness = GoodWitness();
  witness.outside = {"cccccccccccc"};
  EXPECT_THAT(Texts(LostMatch().Build(), FindingKind::kSuspicious, witness),
              Contains(HasSubstr("1 verdict on this reference in the archive that the worklog "
                                 "leaves out: cccccccccccc")));
}

TEST(Check, VerdictsElsewhereAreAllNamedWithTheRemedy) {
  Witness witness = GoodWitness();
  witness.outside = {"cccccccccc01", "cccccccccc02", "cccccccccc03",
                     "cccccccccc04", "cccccccccc05", "cccccccccc06"};
  for (const Finding& finding : CheckWorklog(LostMatch().Build(), witness, ""))
    if (finding.kind == FindingKind::kSuspicious) {
      EXPECT_THAT(finding.text, HasSubstr("cccccccccc06"));
      EXPECT_THAT(finding.next, HasSubstr("assay worklog also cccccccccc01 cccccccccc02"));
    }
}

TEST(Check, WhatIsDeclaredIsANote) {
  MatchBuilder builder = LostMatch();
  builder.TakeIn(SpeedVerdict("cccccccccccc", 2), "v3 against v2");
  Witness witness = GoodWitness();
  witness.outside = {};
  const Worklog worklog = builder.Build();
  EXPECT_THAT(Texts(worklog, FindingKind::kSuspicious, witness), IsEmpty());
  EXPECT_THAT(Texts(worklog, FindingKind::kNote, witness),
              Contains("1 verdict judged besides, with its why: cccccccccccc"));
}

// A server, which has no archive, leaves that finding out by its code.
TEST(Check, AnArchiveThatIsNotThereHasACode) {
  const auto noted = [](const Witness& witness) {
    const auto findings = CheckWorklog(LostMatch().Build(), witness, "");
    return std::ranges::count(findings, FindingCode::kNoArchive, &Finding::code);
  };
  EXPECT_EQ(noted(Witness()), 1);
  EXPECT_EQ(noted(GoodWitness()), 0);
}

TEST(Check, MeasuringBeforePredictingIsSuspicious) {
  MatchBuilder builder;
  builder.Measure(Player::kHand, "v1", "why", SpeedVerdict("aaaaaaaaaaa1", 1.5)).Predict(1.5);
  EXPECT_THAT(Texts(builder.Build(), FindingKind::kSuspicious),
              Contains("v1 was measured before the prediction was sealed"));
  MatchBuilder other;
  other.Note(Predicted{"memory", 2, "x"}, {"cccccccccccc"});
  EXPECT_THAT(Texts(other.Build(), FindingKind::kSuspicious),
              Contains(HasSubstr("stood in the archive before the prediction was sealed")));
}

TEST(Check, AClockThatWentBackIsANote) {
  Worklog worklog = LostMatch().Build();
  worklog.match.versions.front().place.time = "2026-11-26T10:00:00Z";
  EXPECT_THAT(Texts(worklog, FindingKind::kNote), Contains(HasSubstr("the clock went back")));
  EXPECT_THAT(Texts(worklog, FindingKind::kSuspicious), IsEmpty());
}

TEST(Check, AWinWithoutAMechanismIsSuspicious) {
  MatchBuilder builder;
  builder.Predict(3)
      .Measure(Player::kHand, "v1", "v1 fuses 3 passes", SpeedVerdict("aaaaaaaaaaa1", 3))
      .Ask(1, "p")
      .Measure(Player::kModel, "m1", "a", SpeedVerdict("bbbbbbbbbbb1", 1.6));
  EXPECT_THAT(Texts(builder.Build(), FindingKind::kSuspicious),
              Contains("v1 wins, and no mechanism is named for it"));
}

TEST(Check, APromptThatIsChangedUntilTheModelLosesIsSuspicious) {
  MatchBuilder builder = LostMatch();
  builder.Ask(2, "Write a slow kernel.")
      .Measure(Player::kModel, "m2", "a", SpeedVerdict("bbbbbbbbbbb2", 0.4), 2);
  EXPECT_THAT(Texts(builder.Build(), FindingKind::kSuspicious),
              Contains(HasSubstr("the prompt was changed until the model did worse: 1.60x before, "
                                 "0.400x in the last series")));
  // Noise is no reason.
  MatchBuilder noisy = LostMatch();
  Verdict open = SpeedVerdict("bbbbbbbbbbb2", 0.4);
  open.speed->baselines.at(open.speed->headline).decision = "unsettled";
  noisy.Ask(2, "Write a slow kernel.").Measure(Player::kModel, "m2", "a", open, 2);
  EXPECT_THAT(Texts(noisy.Build(), FindingKind::kSuspicious), IsEmpty());
  MatchBuilder better = LostMatch();
  better.Ask(2, "Write a fast kernel.")
      .Measure(Player::kModel, "m2", "a", SpeedVerdict("bbbbbbbbbbb2", 2.4), 2);
  EXPECT_THAT(Texts(better.Build(), FindingKind::kSuspicious), IsEmpty());
  EXPECT_THAT(Texts(better.Build(), FindingKind::kNote),
              Contains(HasSubstr("the prompt was changed: series 2")));
}

TEST(Check, AnArchiveThatLacksFactsIsTold) {
  Witness witness = GoodWitness();
  witness.unknown = {4, 5};
  EXPECT_THAT(Texts(LostMatch().Build(), FindingKind::kChanged, witness),
              Contains(HasSubstr("has not 2 of the facts, such as record 4")));
  Witness none;
  none.archive = "elsewhere.sqlite";
  EXPECT_THAT(Texts(LostMatch().Build(), FindingKind::kNote, none),
              Contains(HasSubstr("facts.jsonl proves itself alone")));
  EXPECT_THAT(Texts(LostMatch().Build(), FindingKind::kChanged, none), IsEmpty());
}

TEST(Check, AWhyMayBeRewordedButNotTakenOut) {
  MatchBuilder builder = LostMatch();
  builder.words().versions[0].why = "In other words.";
  EXPECT_THAT(Texts(builder.Build(), FindingKind::kNote), Contains(HasSubstr("the why of v1")));
  builder.words().versions[0].why = " ";
  EXPECT_THAT(Texts(builder.Build(), FindingKind::kMissing), Contains("v1 has no why"));
}

}  // namespace
}  // namespace assay
