#include "worklog/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::ElementsAre;

TEST(MatchEvent, EachKindComesBackAsItWas) {
  const std::vector<MatchEvent> events = {
      MatchBegun{"0123456789ab", "softmax", "ff", R"({"size":"tiny"})", 3},
      Predicted{"memory", 2.5, "because"},
      SeriesBegun{2, Player::kTogether, "pasted", "system", "prompt", "a chat"},
      Answered{2, 7, "again", "model", "stop", "text \"with\" quotes", "no code", 11, 12},
      Attempted{"t1", Player::kTogether, "versions/t1.cpp", "aa", "why", 7},
      Measured{"t1", "bb", "trouble"},
      Besides{"cc", "what the prefetch is worth"},
      Dueled{"v1", "m2", "dd", "trouble"}};
  for (const MatchEvent& event : events) {
    const std::string text = MatchNoteToJson({event, "previous", {"id1", "id2"}});
    const auto note = MatchNoteFromJson(text);
    ASSERT_TRUE(note) << text;
    EXPECT_EQ(note->event.index(), event.index());
    EXPECT_EQ(note->previous, "previous");
    EXPECT_THAT(note->outside, ElementsAre("id1", "id2"));
    EXPECT_EQ(MatchNoteToJson(*note), text);
  }
}

TEST(MatchEvent, OtherTextIsRefused) {
  for (const char* text : {"", "{}", "[]", "null", R"({"schema":"assay.match/1"})",
                           R"({"schema":"assay.match/1","event":"won"})",
                           R"({"schema":"assay.match/2","event":"begun"})"})
    EXPECT_FALSE(MatchNoteFromJson(text)) << text;
}

TEST(MatchEvent, AVersionsFileLiesInTheFolder) {
  const auto read = [](const char* version, const char* file) {
    return MatchNoteFromJson(
               MatchNoteToJson({Attempted{version, Player::kHand, file, "aa", "why", 0}, "", {}}))
        .has_value();
  };
  EXPECT_TRUE(read("v1", "versions/v1.cpp"));
  EXPECT_TRUE(read("m12", "versions/m12.cu"));
  for (const auto& [version, file] :
       std::vector<std::pair<const char*, const char*>>{{"v1", "/etc/passwd"},
                                                        {"v1", "versions/../../secret"},
                                                        {"v1", "versions/v1/../x"},
                                                        {"v1", "../v1.cpp"},
                                                        {"v1", "versions/v2.cpp"},
                                                        {"v1", ""},
                                                        {"../v1", "versions/../v1.cpp"},
                                                        {"<b>", "versions/<b>.cpp"},
                                                        {"v", "versions/v.cpp"},
                                                        {"", ""}})
    EXPECT_FALSE(read(version, file)) << version << " " << file;
}

TEST(MatchEvent, PlayersHaveNames) {
  for (const Player player : {Player::kHand, Player::kModel, Player::kTogether})
    EXPECT_EQ(PlayerFromName(PlayerName(player)), player);
  EXPECT_FALSE(PlayerFromName("me"));
}

}  // namespace
}  // namespace assay
