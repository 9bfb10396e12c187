#include "worklog/match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worklog/facts_text.h"
#include "worklog/worklog_testing.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Match, VersionsHaveTheirVerdictsAndPredictions) {
  const Worklog worklog = LostMatch().Build();
  const Match& match = worklog.match;
  EXPECT_TRUE(match.breaks.empty());
  ASSERT_EQ(match.versions.size(), 4u);
  EXPECT_EQ(match.Find("v2")->verdict->id, "aaaaaaaaaaa2");
  EXPECT_EQ(match.Find("v2")->prediction, 0);
  EXPECT_EQ(match.Find("m1")->said.answer, 1);
  EXPECT_EQ(match.Best(Player::kHand)->said.version, "v3");
  EXPECT_EQ(match.Best(Player::kModel)->said.version, "m1");
  EXPECT_EQ(match.Best(Player::kTogether), nullptr);
  EXPECT_EQ(match.NextVersion(Player::kHand), "v4");
  EXPECT_EQ(match.NextVersion(Player::kTogether), "t1");
}

TEST(Match, AMissingFactBreaksTheChain) {
  MatchBuilder builder = LostMatch();
  // Attempt, verdict and measurement of v2.
  auto& facts = builder.facts();
  facts.erase(facts.begin() + 5, facts.begin() + 8);
  const auto match = ReadMatch(facts);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->Find("v2"), nullptr);
  ASSERT_EQ(match->breaks.size(), 1u);
  EXPECT_THAT(match->breaks[0], HasSubstr("a fact is missing before record 9"));
}

TEST(Match, AVerdictThatIsMissingIsTold) {
  MatchBuilder builder = LostMatch();
  auto& facts = builder.facts();
  ASSERT_EQ(facts[3].record.facts.kind, RecordKind::kVerdict);
  facts.erase(facts.begin() + 3);
  const auto match = ReadMatch(facts);
  ASSERT_TRUE(match);
  EXPECT_FALSE(match->Find("v1")->verdict);
  EXPECT_THAT(match->breaks, ElementsAre("the verdict on v1 is missing"));
}

TEST(Match, ItBeginsWithItsBeginning) {
  EXPECT_FALSE(ReadMatch({}));
  MatchBuilder builder = LostMatch();
  builder.facts().erase(builder.facts().begin());
  EXPECT_FALSE(ReadMatch(builder.facts()));
}

TEST(Match, ASecondRunOfASourceIsNotTheBest) {
  MatchBuilder builder = LostMatch();
  builder.Measure(Player::kHand, "v4", "the same once more", SpeedVerdict("aaaaaaaaaaa4", 1.2));
  auto attempt = std::find_if(builder.facts().begin(), builder.facts().end(), [](const Fact& fact) {
    return fact.content.find("\"version\":\"v4\",\"player\"") != std::string::npos;
  });
  ASSERT_NE(attempt, builder.facts().end());
  Worklog worklog = builder.Build();
  worklog.match.versions.back().said.source_hash = worklog.match.Find("v1")->said.source_hash;
  EXPECT_EQ(worklog.match.Best(Player::kHand)->said.version, "v3");
}

// A judgement on a busy machine used up a version's name.
TEST(Match, OnlyWhatHasNoDecisionIsMeasuredAgain) {
  MatchBuilder builder = LostMatch();
  Verdict noisy = SpeedVerdict("aaaaaaaaaaa4", 1.2);
  noisy.speed->baselines.at(noisy.speed->headline).decision = "unsettled";
  builder.Measure(Player::kHand, "v4", "on a busy machine", noisy);
  const Match match = builder.Build().match;
  const auto hash = [&](const char* name) { return match.Find(name)->said.source_hash; };
  ASSERT_NE(match.Undecided(Player::kHand, hash("v4")), nullptr);
  EXPECT_EQ(match.Undecided(Player::kHand, hash("v4"))->said.version, "v4");
  EXPECT_EQ(match.Undecided(Player::kModel, hash("v4")), nullptr);
  EXPECT_EQ(match.Undecided(Player::kHand, hash("v2")), nullptr) << "it has its decision";
}

Verdict WithDecision(Verdict verdict, const std::string& decision, double low, double high) {
  BaselineResult& speed = verdict.speed->baselines.at(verdict.speed->headline);
  speed.decision = decision;
  speed.ci_low = low;
  speed.ci_high = high;
  return verdict;
}

// 15.5x from a disturbed machine stood above 10.4x from a quiet one.
TEST(Match, AnUnsettledVersionIsNotTheBestWhereADecidedOneStands) {
  MatchBuilder builder;
  builder.Predict(4)
      .Measure(Player::kHand, "v1", "chains",
               WithDecision(SpeedVerdict("aaaaaaaaaaa1", 15.5), "unsettled", 8.94, 16.1))
      .Measure(Player::kHand, "v2", "prefetches", SpeedVerdict("aaaaaaaaaaa2", 10.4));
  EXPECT_EQ(builder.Build().match.Best(Player::kHand)->said.version, "v2");
}

TEST(Match, TheLowerEndOfTheIntervalTellsTheBest) {
  MatchBuilder builder;
  builder.Predict(4)
      .Measure(Player::kHand, "v1", "wide",
               WithDecision(SpeedVerdict("aaaaaaaaaaa1", 3), "faster", 1.1, 5))
      .Measure(Player::kHand, "v2", "narrow",
               WithDecision(SpeedVerdict("aaaaaaaaaaa2", 2.5), "faster", 2.4, 2.6));
  EXPECT_EQ(builder.Build().match.Best(Player::kHand)->said.version, "v2");
}

// A failure of the judge took the source out of the race, though its second run was measured.
TEST(Match, ASourceWithoutASpeedIsNotItsFirstRun) {
  MatchBuilder builder;
  builder.Predict(4)
      .Measure(Player::kHand, "v1", "why", SampleVerdict(Outcome::kCrashed))
      .Measure(Player::kHand, "v2", "why", SpeedVerdict("aaaaaaaaaaa2", 2));
  Match match = builder.Build().match;
  match.versions[0].said.source_hash = match.versions[1].said.source_hash;
  ASSERT_NE(match.Best(Player::kHand), nullptr);
  EXPECT_EQ(match.Best(Player::kHand)->said.version, "v2");
}

// 15.5x against 10.4x said the one; judged against each other, the other was faster.
TEST(Match, ADuelTellsMoreThanTwoRatios) {
  MatchBuilder builder = LostMatch();
  builder.Duel("v3", "m1", DuelVerdict("dddddddddd01", "v3", "m1", 1.25));
  const Worklog worklog = builder.Build();
  const Match& match = worklog.match;
  const SpeedRatio ratio = Between(match, *match.Find("v3"), *match.Find("m1"));
  EXPECT_TRUE(ratio.direct);
  EXPECT_TRUE(ratio.Apart());
  EXPECT_DOUBLE_EQ(ratio.value, 1.25);
  const SpeedRatio back = Between(match, *match.Find("m1"), *match.Find("v3"));
  EXPECT_DOUBLE_EQ(back.value, 0.8);
  EXPECT_LT(back.low, 0.8);
  EXPECT_GT(back.high, 0.8);
  EXPECT_THAT(RaceText(match, Player::kHand, Player::kModel),
              HasSubstr("judged against each other: v3 is faster"));
}

TEST(Match, OfSeveralDuelsTheFirstDecisionCounts) {
  MatchBuilder builder = LostMatch();
  builder
      .Duel("v3", "m1",
            WithDecision(DuelVerdict("dddddddddd01", "v3", "m1", 2), "unsettled", 0.5, 4))
      .Duel("v3", "m1", DuelVerdict("dddddddddd02", "v3", "m1", 0.7))
      .Duel("v3", "m1", DuelVerdict("dddddddddd03", "v3", "m1", 1.3));
  const Match match = builder.Build().match;
  EXPECT_EQ(match.Duel(*match.Find("m1"), *match.Find("v3"))->verdict->id, "dddddddddd02");
}

TEST(Match, ADuelOfOtherSourcesDoesNotCount) {
  MatchBuilder builder = LostMatch();
  builder.Duel("v3", "m1", DuelVerdict("dddddddddd01", "v2", "m1", 1.25));
  const Match match = builder.Build().match;
  EXPECT_EQ(match.Duel(*match.Find("v3"), *match.Find("m1")), nullptr);
}

TEST(Match, WhatIsDeclaredIsNotLeftOut) {
  MatchBuilder builder = LostMatch();
  builder.Note(Predicted{"memory", 2, "x"}, {"cccccccccccc", "dddddddddddd"});
  builder.TakeIn(SpeedVerdict("cccccccccccc", 2), "v1 against v2");
  const Match match = builder.Build().match;
  EXPECT_THAT(match.outside, ElementsAre("dddddddddddd"));
  ASSERT_EQ(match.besides.size(), 1u);
  EXPECT_THAT(BesidesText(match, match.besides[0]), HasSubstr("cccccccccccc: "));
}

// A version passed by the luck of its draws; another seed found it wrong.
TEST(Match, ASourceThatWasFoundWrongIsWrong) {
  MatchBuilder builder = LostMatch();
  Verdict wrong = SampleVerdict(Outcome::kWrong);
  wrong.id = "cccccccccccc";
  wrong.candidate.hash = Sha256Hex("// v3\n");
  builder.TakeIn(wrong, "the seed that sank v4");
  const Match match = builder.Build().match;
  EXPECT_EQ(match.Find("v3")->refuted, "cccccccccccc");
  EXPECT_EQ(match.Best(Player::kHand)->said.version, "v2");
  EXPECT_THAT(GatesText(*match.Find("v3")), HasSubstr("cccccccccccc found this source wrong"));
}

TEST(Match, OtherVerdictsAreRememberedOnce) {
  MatchBuilder builder;
  builder.Note(Predicted{"memory", 2, "x"}, {"cccccccccccc"});
  builder.Measure(Player::kHand, "v1", "why", SpeedVerdict("aaaaaaaaaaa1", 1.5));
  builder.Note(Predicted{"memory", 3, "y"}, {"cccccccccccc", "dddddddddddd", "aaaaaaaaaaa1"});
  const Worklog worklog = builder.Build();
  EXPECT_THAT(worklog.match.before, ElementsAre("cccccccccccc"));
  EXPECT_THAT(worklog.match.outside, ElementsAre("cccccccccccc", "dddddddddddd"));
}

TEST(Match, ARaceIsToldWithItsInterval) {
  const Worklog worklog = LostMatch().Build();
  const SpeedRatio ratio =
      Between(worklog.match, *worklog.match.Find("v3"), *worklog.match.Find("m1"));
  EXPECT_NEAR(ratio.value, 0.9 / 1.6, 1e-12);
  EXPECT_LT(ratio.low, ratio.value);
  EXPECT_GT(ratio.high, ratio.value);
  EXPECT_TRUE(ratio.Apart());
  EXPECT_FALSE(ratio.direct);
  EXPECT_THAT(RaceText(worklog.match, Player::kHand, Player::kModel), HasSubstr("m1 is faster"));
}

TEST(Match, WhatIsNotSettledIsNotTold) {
  MatchBuilder builder;
  Verdict open = SpeedVerdict("aaaaaaaaaaa1", 3);
  open.speed->baselines.at(open.speed->headline).decision = "unsettled";
  builder.Predict(2)
      .Measure(Player::kHand, "v1", "why", open)
      .Ask(1, "p")
      .Measure(Player::kModel, "m1", "a", SpeedVerdict("bbbbbbbbbbb1", 1.6));
  const Worklog worklog = builder.Build();
  EXPECT_THAT(RaceText(worklog.match, Player::kHand, Player::kModel), HasSubstr("too noisy"));
  EXPECT_THAT(PredictionText(worklog.match, *worklog.match.Find("v1")), HasSubstr("too noisy"));
}

TEST(Match, PredictionsStandBesideMeasurements) {
  const Worklog worklog = LostMatch().Build();
  EXPECT_THAT(PredictionText(worklog.match, *worklog.match.Find("v3")),
              HasSubstr("predicted 2.00x, measured 0.900x (0.891x to 0.909x): it is slower than "
                        "predicted"));
}

}  // namespace
}  // namespace assay
