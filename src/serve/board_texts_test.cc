#include "serve/board_texts.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(BoardTexts, ATextIsFoundByItsNameAndAllOfItsQuery) {
  BoardTexts texts;
  const BoardQuery query{.p = 1.5, .problem = "gelu"};
  EXPECT_EQ(texts.Find("page", query), nullptr);
  const auto kept = texts.Keep("page", query, "text");
  EXPECT_EQ(*kept, "text");
  EXPECT_EQ(texts.Find("page", query), kept);
  EXPECT_EQ(texts.Find("json", query), nullptr);
  EXPECT_EQ(texts.Find("page", {.p = 1.5}), nullptr);
  EXPECT_EQ(texts.Find("page", {.p = 1.5000001, .problem = "gelu"}), nullptr);
  texts.Clear();
  EXPECT_EQ(texts.Find("page", query), nullptr);
  EXPECT_EQ(*kept, "text");
}

TEST(BoardTexts, TheLeastLatelyAskedForMakesRoom) {
  BoardTexts texts(10);
  texts.Keep("a", {}, "aaaa");
  texts.Keep("b", {}, "bbbb");
  EXPECT_NE(texts.Find("a", {}), nullptr);
  texts.Keep("c", {}, "cccc");
  EXPECT_NE(texts.Find("a", {}), nullptr);
  EXPECT_EQ(texts.Find("b", {}), nullptr);
  EXPECT_NE(texts.Find("c", {}), nullptr);
  // Room counts anew after all were dropped.
  texts.Clear();
  texts.Keep("d", {}, "0123456789");
  EXPECT_NE(texts.Find("d", {}), nullptr);
  // One that is larger than all may be leaves the others.
  EXPECT_EQ(texts.Keep("e", {}, "0123456789a")->size(), 11u);
  EXPECT_EQ(texts.Find("e", {}), nullptr);
  EXPECT_NE(texts.Find("d", {}), nullptr);
}

TEST(BoardTexts, SmallTextsMakeRoomByTheirNumber) {
  BoardTexts texts;
  for (size_t i = 0; i <= BoardTexts::kTextsMax; ++i) texts.Keep(std::to_string(i), {}, "");
  EXPECT_EQ(texts.Find("0", {}), nullptr);
  EXPECT_NE(texts.Find("1", {}), nullptr);
}

}  // namespace
}  // namespace assay
