#include "worklog/seal.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Seal, AnEditShows) {
  const std::string text = WithSeal("v1: 2.00x\nv2: 3.00x\n", "abc");
  EXPECT_TRUE(ReadSeal(text).whole);
  EXPECT_EQ(ReadSeal(text).subject, "abc");
  EXPECT_TRUE(ReadSeal(WithSeal("", "")).whole);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string edited = text;
    edited[i] = edited[i] == 'x' ? 'y' : 'x';
    EXPECT_FALSE(ReadSeal(edited).whole) << i;
  }
  EXPECT_FALSE(ReadSeal(text + "more\n").whole);
  EXPECT_FALSE(ReadSeal("v1: 2.00x\n").whole);
  EXPECT_FALSE(ReadSeal("").whole);
}

TEST(Seal, ASealInTheTextIsNotTheLast) {
  const std::string inner = WithSeal("a\n", "");
  EXPECT_TRUE(ReadSeal(WithSeal(inner, "s")).whole);
}

}  // namespace
}  // namespace assay
