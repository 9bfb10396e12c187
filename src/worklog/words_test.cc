#include "worklog/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace assay {
namespace {

using testing::HasSubstr;

std::string Head() {
  Words words;
  words.id = "0123456789ab";
  words.problem = "softmax";
  words.author = "A. \"Quoted\" Author";
  words.tier = 3;
  return WordsHead(words);
}

TEST(Words, WhatIsAddedIsRead) {
  const std::string hostile = "a \"quote\", a \\ backslash,\n'''three''' \"\"\" and\ta tab\x01";
  const std::string text = Head() + WordsOf(PredictionWords{"ff", "memory", hostile, 2.5}) +
                           WordsOf(VersionWords{"v1", "versions/v1.cpp", "ee", hostile}) +
                           WordsOf(StuckWords{Player::kModel, hostile}) +
                           WordsOf(ClaimWords{"v1", Mechanism::kTensorCores, hostile});
  const auto words = ParseWords(text, "worklog.toml");
  ASSERT_TRUE(words) << words.error().message;
  EXPECT_EQ(words->author, "A. \"Quoted\" Author");
  EXPECT_EQ(words->tier, 3);
  ASSERT_EQ(words->predictions.size(), 1u);
  EXPECT_EQ(words->predictions[0].reason, hostile);
  EXPECT_EQ(words->predictions[0].ratio, 2.5);
  EXPECT_EQ(words->Find("v1")->why, hostile);
  EXPECT_EQ(words->StuckOf(Player::kModel).at(0)->text, hostile);
  EXPECT_EQ(words->ClaimsOf("v1").at(0)->mechanism, Mechanism::kTensorCores);
}

TEST(Words, AnyBytesOfTextComeBack) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    const size_t length = random() % 40;
    while (text.size() < length) text += "\"\\\n\t'#=[]ab\x7f\x1f \xc3\xa9"[random() % 14];
    if (text.find('\xc3') != std::string::npos) continue;  // half a character
    const auto words = ParseWords(Head() + WordsOf(StuckWords{Player::kHand, text}), "w");
    ASSERT_TRUE(words) << words.error().message;
    EXPECT_EQ(words->stuck.at(0).text, text);
  }
}

TEST(Words, FaultsNameTheLineAndTheRemedy) {
  const auto fault = [](const std::string& text) {
    const auto words = ParseWords(text, "worklog.toml");
    return words ? std::string("none") : words.error().message;
  };
  EXPECT_THAT(fault(""), HasSubstr("worklog.toml is empty: bring it back"));
  EXPECT_THAT(fault("  \n"), HasSubstr("is empty"));
  EXPECT_THAT(fault(Head() + "<<<<<<< HEAD\n"), HasSubstr("line 10: a merge left a conflict"));
  EXPECT_THAT(fault(Head() + "\xff\xfe"), HasSubstr("not UTF-8"));
  EXPECT_THAT(fault(Head() + "[[version\n"), HasSubstr("mend the line"));
  // Each part of such a key is a table within the last: the library would end the process.
  std::string deep = "a";
  for (int i = 0; i < 200'000; ++i) deep += ".a";
  EXPECT_THAT(fault(Head() + deep + " = 1\n"), HasSubstr("dots"));
  EXPECT_THAT(fault(Head() + "auther = \"x\"\n"), HasSubstr("line 10: no such key: auther"));
  EXPECT_THAT(fault(Head() + "version = 3\n"), HasSubstr("write [[version]]"));
  EXPECT_THAT(fault(Head() + "[[version]]\nname = 3\n"), HasSubstr("name is a string"));
  EXPECT_THAT(fault(Head() + "[[stuck]]\nplayer = \"me\"\ntext = \"\"\n"),
              HasSubstr("player is hand, model or together"));
  EXPECT_THAT(fault(Head() + "[[claim]]\nversion = \"v1\"\nmechanism = \"luck\"\ntext = \"\"\n"),
              HasSubstr("mechanism is one of memory-movement"));
  EXPECT_THAT(fault("schema = \"assay.worklog/2\"\n"), HasSubstr("this is no worklog, or a newer"));
}

TEST(Words, ProseIsWhatIsNotAComment) {
  EXPECT_EQ(SectionProse(SectionStub(Section::kPlan)), "");
  EXPECT_EQ(SectionProse("<!-- a -->\n\nwords <!-- b --> here\n"), "words  here");
  EXPECT_EQ(SectionProse("words <!-- without end"), "words");
  EXPECT_EQ(WordCount(" one  two\nthree "), 3u);
  EXPECT_EQ(WordCount(""), 0u);
}

// --mechanism had made a claim of the whole why, and a claim with a number stood beside it.
TEST(Words, ASecondClaimOfAMechanismTakesThePlaceOfTheFirst) {
  Words words;
  words.claims = {{"v1", Mechanism::kFusion, "the why"},
                  {"v1", Mechanism::kTiling, "blocks of 64"},
                  {"v2", Mechanism::kFusion, "another version"},
                  {"v1", Mechanism::kFusion, "20 us against 90 us"}};
  const auto claims = words.ClaimsOf("v1");
  ASSERT_EQ(claims.size(), 2u);
  EXPECT_EQ(claims[0]->text, "20 us against 90 us");
  EXPECT_EQ(claims[1]->text, "blocks of 64");
}

}  // namespace
}  // namespace assay
